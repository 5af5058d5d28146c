#include "simulator/page/run_json.h"

#include "compiler/ir/type.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "testing/machine.h"

namespace polynao::simulator {
namespace {

using Json = nlohmann::ordered_json;

RunResult Example() {
  RunResult result;
  result.cycles = 1000;
  result.cores.resize(2);
  result.cores[1] = {.cluster = 1, .core = 2, .is_memory_core = true};
  result.cores[1].queue_full[static_cast<size_t>(isa::Queue::kIo)] = 5;
  result.cores[1].units[static_cast<size_t>(isa::Unit::kVector)] = {3, 40};
  result.cores[1].classes[static_cast<size_t>(CycleClass::kDramRows)] = 7;
  result.ports = {{"gmem.channel0", 25600, 1, 2, 3, 4}};
  result.dram = {{.activates = 3}, {.activates = 7, .drains = 1}};
  result.dram_banks = {{.activates = 1}, {.activates = 2}, {.activates = 3}, {.activates = 4}};
  result.gmem_read_moved = 300;
  result.gmem_written_moved = 200;
  result.actions.macs[static_cast<size_t>(ir::Type::kI8)] = 1'000'000;
  result.actions.element_ops[static_cast<size_t>(ir::Type::kF16)] = 5000;
  return result;
}

Json JsonOf(const RunResult& result, const isa::Machine& machine) {
  Json json;
  AddRun(result, machine, json);
  return json;
}

TEST(RunJsonTest, HasPortsCoresAndBanks) {
  const Json json = JsonOf(Example(), TestMachine("mlu270"));
  EXPECT_EQ(json["counters"]["cycles"], 1000);
  EXPECT_EQ(json["ports"][0], Json::parse(R"({"name": "gmem.channel0", "rate": 25600, "bursts": 1,
                                              "payload": 2, "moved": 3, "busy": 4})"));
  EXPECT_EQ(json["cores"][1]["is_memory_core"], true);
  EXPECT_EQ(json["cores"][1]["stalls"]["queue_full.io"], 5);
  EXPECT_EQ(json["cores"][1]["units"]["vector"]["busy"], 40);
  EXPECT_EQ(json["dram"][1]["activates"], 7);
  EXPECT_EQ(json["dram"][1]["drains"], 1);
  EXPECT_EQ(json["dram"][1]["banks"].size(), 2u);
  EXPECT_EQ(json["dram"][1]["banks"][1]["activates"], 4);
}

TEST(RunJsonTest, ClassesAndActivityNeedAProfile) {
  RunResult result = Example();
  EXPECT_FALSE(JsonOf(result, TestMachine("mlu270")).contains("activity"));
  EXPECT_FALSE(JsonOf(result, TestMachine("mlu270"))["cores"][0].contains("classes"));
  result.activity = {.bucket = 4, .bytes = {{1, 2}}, .activates = {{3, 4}}};
  const Json json = JsonOf(result, TestMachine("mlu270"));
  EXPECT_EQ(json["activity"],
            Json::parse(R"({"bucket": 4, "bytes": [[1, 2]], "activates": [[3, 4]]})"));
  EXPECT_EQ(json["cores"][1]["classes"]["dram_rows"], 7);
  EXPECT_EQ(json["cores"][1]["classes"].size(), static_cast<size_t>(kCycleClassCount));
}

TEST(RunJsonTest, FlatChannelsHaveNoDram) {
  RunResult result = Example();
  result.dram.clear();
  result.dram_banks.clear();
  const Json json = JsonOf(result, FlatMachine());
  EXPECT_FALSE(json.contains("dram"));
  EXPECT_EQ(json["roofline"]["memory"].size(), 1u);
}

TEST(RunJsonTest, RooflineOfTwoUnits) {
  const isa::Machine machine = TestMachine("mlu270");
  const Json json = JsonOf(Example(), machine)["roofline"];
  ASSERT_EQ(json["memory"].size(), 2u);
  EXPECT_DOUBLE_EQ(json["memory"][0]["bytes_per_cycle"].get<double>(), 102.4);
  // Of each trefi, trfc is lost.
  EXPECT_DOUBLE_EQ(json["memory"][1]["bytes_per_cycle"].get<double>(),
                   102.4 * (1 - static_cast<double>(machine.Get("dram.trfc")) /
                                    static_cast<double>(machine.Get("dram.trefi"))));
  ASSERT_EQ(json["compute"].size(), 2u);
  for (const Json& row : json["compute"]) {
    const bool is_tensor = row["name"] == "tensor i8";
    if (!is_tensor) EXPECT_EQ(row["name"], "vector f16");
    const int64_t operations = is_tensor ? 2'000'000 : 5000;
    EXPECT_EQ(row["operations"], operations);
    EXPECT_DOUBLE_EQ(row["operations_per_cycle"].get<double>(), operations / 1000.0);
    EXPECT_DOUBLE_EQ(row["operations_per_byte"].get<double>(), operations / 500.0);
    EXPECT_DOUBLE_EQ(row["peak_per_cycle"].get<double>(),
                     is_tensor ? 2.0 * 16 * static_cast<double>(machine.Get("tensor.macs_i8"))
                               : 16.0 * static_cast<double>(machine.Get("vector.bytes")) / 2);
  }
}

TEST(RunJsonTest, ARunWithoutBytesHasNoIntensity) {
  RunResult result = Example();
  result.gmem_read_moved = result.gmem_written_moved = 0;
  for (const Json& row : JsonOf(result, FlatMachine())["roofline"]["compute"]) {
    EXPECT_TRUE(row["operations_per_byte"].is_null());
  }
}

}  // namespace
}  // namespace polynao::simulator
