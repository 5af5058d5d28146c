#include "simulator/report.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::simulator {
namespace {

RunResult Example() {
  RunResult result;
  result.machine = "m";
  result.program = "p";
  result.cycles = 10;
  result.end_cycle = 12;
  result.cores.resize(3);
  result.cores[1].units[static_cast<size_t>(isa::Unit::kVector)] = {3, 40};
  result.cores[2].units[static_cast<size_t>(isa::Unit::kVector)] = {1, 2};
  result.cores[2].queue_full[static_cast<size_t>(isa::Queue::kIo)] = 5;
  result.cores[0].barrier_wait = 7;
  result.path_bytes[0][2] = 99;
  result.ports = {{"a", 1, 2, 3, 4, 5}, {"b", 6, 7, 8, 9, 10}};
  result.unwritten = {{"out", 4}};
  result.cores[1].classes = {1, 2, 3, 4};
  result.dram_banks = {{.activates = 5}, {.conflicts = 6}};
  result.activity = {.bucket = 8, .bytes = {{1, 2}, {3}}, .activates = {{4}}};
  result.slices = {{.core = 1, .unit = isa::Unit::kIoDma, .pc = 3, .begin = 4, .end = 5}};
  result.instructions = {"li r0, 1", "halt"};
  result.gmem_bucket = 16;
  result.gmem_buckets = {1, 0, 2};
  return result;
}

TEST(RunResult, SurvivesSerialization) {
  for (const RunResult& result : {RunResult(), Example()}) {
    const auto parsed = ParseResult(SerializeResult(result));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, result);
  }
}

TEST(RunResult, DamageIsAnError) {
  const std::string bytes = SerializeResult(Example());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ParseResult(std::string_view(bytes).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ParseResult(bytes + "x").ok());
}

TEST(RunResult, RowsSumOverCores) {
  const auto rows = Example().Rows();
  const std::map<std::string, int64_t> by_name(rows.begin(), rows.end());
  EXPECT_EQ(by_name.size(), rows.size()) << "a name stands twice";
  EXPECT_EQ(by_name.at("cycles"), 10);
  EXPECT_EQ(by_name.at("instructions"), 4);
  EXPECT_EQ(by_name.at("vector.busy"), 42);
  EXPECT_EQ(by_name.at("wait.queue_full.io"), 5);
  EXPECT_EQ(by_name.at("wait.barrier"), 7);
  EXPECT_EQ(by_name.at("bytes.gmem_to_nmem"), 99);
  EXPECT_EQ(by_name.at("unwritten.out"), 4);
}

}  // namespace
}  // namespace polynao::simulator
