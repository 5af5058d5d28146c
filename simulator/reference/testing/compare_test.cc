// That nothing which differs goes unnoticed.

#include "simulator/reference/testing/compare.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ir/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/instruction_set.h"
#include "simulator/reference/card.h"
#include "simulator/testing.h"

namespace polynao::simulator::reference {
namespace {

const char kBody[] = R"(
    arg r7, 8
    li r10, 640
    memcpy.i8.nmem.gmem r0, r7, r10, r1, r0, r0
    fill.i8 r0, r0, r10
    sync
    memcpy.i8.gmem.nmem r7, r0, r10, r1, r0, r0
)";
const char kParams[] = ".tensor x i8 any inout";

TEST(CompareTest, EveryFieldCounts) {
  const isa::Machine machine = TestMachine("unit", {"gmem.cache_kib=4"});
  const isa::Program program = OnCore0(kParams, kBody);
  const auto clocked = reference::Run(isa::DianNao(), program, {{.bytes = 1024}}, machine);
  ASSERT_TRUE(clocked.ok()) << clocked.status();
  ir::Tensor x(ir::Type::kI8, {1024});
  RunOptions options;
  options.trace = {.enabled = true, .gmem_bucket = Report::kGmemBucket};
  const auto event = RunProgram(machine, program, {simulator::Argument::Of(&x)}, options);
  ASSERT_TRUE(event.ok()) << event.status();
  RunResult unchecked = *event;
  unchecked.unwritten.clear();
  EXPECT_EQ(Difference(unchecked, *clocked), "");

  const std::vector<std::function<void(Report&)>> changes = {
      [](Report& r) { ++r.cycles; },
      [](Report& r) { ++r.end_cycle; },
      [](Report& r) { ++r.launch_cycles; },
      [](Report& r) { ++r.cores[0].units[0].busy; },
      [](Report& r) { ++r.cores[0].units[5].instructions; },
      [](Report& r) { ++r.cores[0].queue_full[2]; },
      [](Report& r) { ++r.cores[0].sync_wait; },
      [](Report& r) { ++r.cores[0].barrier_wait; },
      [](Report& r) { ++r.cores[0].completion_wait; },
      [](Report& r) { ++r.cores[0].dependent_wait; },
      [](Report& r) { ++r.cores[0].halted_at; },
      [](Report& r) { r.cores[0].is_memory_core = true; },
      [](Report& r) { r.cores.pop_back(); },
      [](Report& r) { ++r.ports[0].rate; },
      [](Report& r) { ++r.ports[1].bursts; },
      [](Report& r) { ++r.ports[2].payload; },
      [](Report& r) { ++r.ports[3].moved; },
      [](Report& r) { ++r.ports[4].busy; },
      [](Report& r) { r.ports[5].name += "x"; },
      [](Report& r) { ++r.path_bytes[1][1]; },
      [](Report& r) { ++r.gmem_read; },
      [](Report& r) { ++r.gmem_read_moved; },
      [](Report& r) { ++r.gmem_read_cached; },
      [](Report& r) { ++r.gmem_written; },
      [](Report& r) { ++r.gmem_written_moved; },
      [](Report& r) { ++r.gmem_buckets[0]; },
      [](Report& r) { ++r.spans[0].begin; },
      [](Report& r) { ++r.spans.back().end; },
      [](Report& r) { ++r.spans[0].pc; },
      [](Report& r) { r.spans[0].is_store = !r.spans[0].is_store; },
      [](Report& r) { r.spans[0].kind = Span::Kind::kBarrier; },
      [](Report& r) { r.spans.pop_back(); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Report changed = *clocked;
    changes[i](changed);
    EXPECT_NE(Difference(*event, changed), "") << "change " << i;
  }
}

TEST(CompareTest, AnErrorOfOneKindIsNoDifference) {
  const isa::Machine machine = TestMachine("unit");
  ir::Tensor x(ir::Type::kI8, {1024});
  const Comparison deadlock =
      Compare(machine, OnCore0(kParams, "  barrier.global\n"), {simulator::Argument::Of(&x)});
  EXPECT_EQ(deadlock.difference, "");
  EXPECT_THAT(std::string(deadlock.error.message()), testing::HasSubstr("deadlock"));
  const Comparison endless = Compare(machine, OnCore0(kParams, "again:\n  jump again\n"),
                                     {simulator::Argument::Of(&x)}, 5000);
  EXPECT_EQ(endless.difference, "");
  EXPECT_TRUE(absl::IsDeadlineExceeded(endless.error)) << endless.error;
  // A branch on what was loaded: only the event-driven simulator can go on.
  const Comparison refused =
      Compare(machine,
              OnCore0(kParams,
                      "  store.i64.nmem r0, r1\n  load.i64.nmem r9, r0\n  beq r9, r0, end\nend:\n"),
              {simulator::Argument::Of(&x)});
  EXPECT_THAT(refused.difference, testing::HasSubstr("expected a known lhs, found r9"));
}

}  // namespace
}  // namespace polynao::simulator::reference
