#include "simulator/trace.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace polynao::simulator {
namespace {

TEST(Trace, IsJsonWithASliceForEachSlice) {
  RunResult result;
  result.machine = "unit";
  result.program = "a \"quoted\" name\n";
  result.end_cycle = 100;
  result.cores.resize(2);
  result.cores[1] = {.cluster = 0, .core = 1, .is_memory_core = true};
  result.instructions = {"li r0, 1", "fill.f16 r0, r0, r1"};
  result.slices = {{.core = 0, .unit = isa::Unit::kVector, .pc = 1, .begin = 4, .end = 21},
                   {.core = 1,
                    .unit = isa::Unit::kScalar,
                    .kind = Slice::Kind::kBarrier,
                    .begin = 30,
                    .end = 40}};
  result.gmem_bucket = 16;
  result.gmem_buckets = {160, 8};
  const nlohmann::json trace = nlohmann::json::parse(TraceJson(result));
  EXPECT_EQ(trace["otherData"]["program"], result.program);
  EXPECT_EQ(trace["otherData"]["time"], "1 us of this trace is 1 cycle");
  std::vector<nlohmann::json> slices, counters;
  std::vector<std::string> threads;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "X") slices.push_back(event);
    if (event["ph"] == "C") counters.push_back(event);
    if (event["ph"] == "M" && event["name"] == "thread_name") {
      threads.push_back(event["args"]["name"]);
    }
  }
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0]["name"], "fill.f16 r0, r0, r1");
  EXPECT_EQ(slices[0]["ts"], 4);
  EXPECT_EQ(slices[0]["dur"], 17);
  EXPECT_EQ(slices[1]["name"], "barrier");
  EXPECT_EQ(slices[0]["pid"], slices[1]["pid"]);
  EXPECT_NE(slices[0]["tid"], slices[1]["tid"]);
  EXPECT_THAT(threads, testing::ElementsAre("core 0 vector", "memory core scalar"));
  ASSERT_EQ(counters.size(), 2u);
  EXPECT_EQ(counters[1]["ts"], 16);
  EXPECT_EQ(counters[0]["args"]["bytes"], 10);
}

TEST(Trace, OfARunWithoutSlicesIsJsonToo) {
  EXPECT_TRUE(nlohmann::json::accept(TraceJson(RunResult())));
}

}  // namespace
}  // namespace polynao::simulator
