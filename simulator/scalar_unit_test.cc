// Cycles of scalar code, issue, queues, sync and barriers against the closed forms of
// docs/timing.md.

#include "simulator/scalar_unit.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/testing.h"

namespace polynao::simulator {
namespace {

// Cycles of the instructions that OnCore0 puts around a body.
constexpr int64_t kPrologue = 8 * 2;
constexpr int64_t kHalt = 2;

RunResult RunOn(const isa::Machine& machine, const isa::Program& program,
                const std::vector<Argument>& arguments = {}) {
  const auto result = RunProgram(machine, program, arguments);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : RunResult();
}

// From the first instruction of the body to the first of what follows.
int64_t Cycles(const isa::Machine& machine, std::string_view body) {
  const RunResult result = RunOn(machine, OnCore0("", body));
  return CoreOf(result, 0, 0).halted_at - kPrologue - kHalt;
}

TEST(ScalarUnit, InstructionsTakeTheirCost) {
  const isa::Machine machine = FlatMachine();
  EXPECT_EQ(Cycles(machine, ""), 0);
  EXPECT_EQ(Cycles(machine, "  li r5, 7\n"), 2);
  EXPECT_EQ(Cycles(machine, "  div r5, r1, r1\n"), 16);
  EXPECT_EQ(Cycles(machine, "  li r5, 100\nloop:\n  sub r5, r5, r1\n  bne r5, r0, loop\n"),
            2 + 100 * 4);
}

TEST(ScalarUnit, LongScalarCodeTakesTheSameWhetherItRunsAheadOrNot) {
  // More instructions than the unit runs ahead.
  const isa::Machine machine = FlatMachine();
  EXPECT_EQ(Cycles(machine, "  li r5, 10000\nloop:\n  sub r5, r5, r1\n  bne r5, r0, loop\n"),
            2 + 10000 * 4);
}

TEST(ScalarUnit, ResultsCanBeReadLater) {
  const isa::Machine machine = FlatMachine({"scalar.dependent=3"});
  const int64_t around = Cycles(machine, "");
  const auto cycles = [&](const char* body) { return Cycles(machine, body) - around; };
  EXPECT_EQ(cycles("  li r5, 7\n  add r6, r5, r1\n"), 2 + 3 + 2);
  // What does not read it does not wait; two cycles of another instruction are part of the three.
  EXPECT_EQ(cycles("  li r5, 7\n  li r6, 8\n"), 4);
  EXPECT_EQ(cycles("  li r5, 7\n  li r6, 8\n  add r7, r5, r1\n"), 2 + 2 + 1 + 2);
  // Branches, addresses and operands of what is issued read registers too; so does an access after an access.
  EXPECT_EQ(cycles("  li r5, 7\n  beq r5, r0, next\nnext:\n"), 2 + 3 + 2);
  EXPECT_EQ(cycles("  li r5, 64\n  store.i32.nmem r5, r1\n"), 2 + 3 + 20);
  EXPECT_EQ(cycles("  store.i32.nmem r0, r1\n  load.i32.nmem r5, r0\n  add r6, r5, r1\n"),
            20 + 20 + 3 + 2);
  EXPECT_EQ(cycles("  li r5, 64\n  fill.i8 r0, r0, r5\n"), 2 + 3 + 1);
  const RunResult result = RunOn(machine, OnCore0("", "  li r5, 7\n  add r6, r5, r1\n"));
  EXPECT_GE(CoreOf(result, 0, 0).dependent_wait, 3);
}

TEST(ScalarUnit, AccessToNmem) {
  const isa::Machine machine = FlatMachine();
  EXPECT_EQ(Cycles(machine, "  store.i32.nmem r0, r1\n"), 20);
  EXPECT_EQ(Cycles(machine, "  store.i32.nmem r0, r1\n  load.i32.nmem r5, r0\n"), 40);
}

TEST(ScalarUnit, AccessToSmemAndGmemTakesTheWayThere) {
  const isa::Machine machine = FlatMachine();
  EXPECT_EQ(Cycles(machine, "  store.i32.smem r0, r1\n"), 20 + 40 + 1);
  EXPECT_EQ(Cycles(machine, "  store.i32.smem r0, r1\n  load.i32.smem r5, r0\n"),
            2 * (20 + 40 + 1));
  ir::Tensor x(ir::Type::kI32, {4});
  x.SetInt(1, 41);
  const RunResult load = RunOn(machine,
                               OnCore0(".tensor x i32 any inout",
                                       "  arg r5, 8\n  addi r6, r5, 4\n  load.i32.gmem r7, r6\n"
                                       "  add r7, r7, r1\n  store.i32.gmem r6, r7\n"),
                               {Argument::Of(&x)});
  EXPECT_EQ(x.Int(1), 42);
  // The load: cost, channel, latency, link. The store: cost, link, latency, channel with
  // read-modify-write.
  const int64_t done = kPrologue + 2 + 2 + (20 + 3 + 200 + 1) + 2 + (20 + 1 + 200 + 5);
  EXPECT_EQ(CoreOf(load, 0, 0).halted_at, done + kHalt);
  EXPECT_EQ(load.cycles, done);
  EXPECT_EQ(load.gmem_read, 4);
  EXPECT_EQ(load.gmem_written_moved, 128);
  // The second load of a granule comes from the cache.
  const RunResult again = RunOn(machine,
                                OnCore0(".tensor x i32 any in",
                                        "  arg r5, 8\n  addi r6, r5, 4\n  load.i32.gmem r7, r6\n"
                                        "  load.i32.gmem r8, r5\n"),
                                {Argument::Of(&x)});
  EXPECT_EQ(CoreOf(again, 0, 0).halted_at,
            kPrologue + 2 + 2 + (20 + 3 + 200 + 1) + (20 + 1 + 100 + 1) + kHalt);
  EXPECT_EQ(again.gmem_read, 8);
  EXPECT_EQ(again.gmem_read_moved, 64);
  EXPECT_EQ(again.gmem_read_cached, 64);
}

TEST(ScalarUnit, IssueTakesOneCycle) {
  const isa::Machine machine = FlatMachine();
  const RunResult result = RunOn(machine, OnCore0("", "  li r5, 64\n  fill.f16 r0, r0, r5\n"));
  EXPECT_EQ(CoreOf(result, 0, 0).halted_at, kPrologue + 2 + 1 + kHalt);
  // 16 to start, one 128-byte row.
  EXPECT_EQ(Busy(result, isa::Unit::kVector), 17);
  EXPECT_EQ(result.end_cycle, kPrologue + 2 + 1 + 17);
}

TEST(ScalarUnit, SyncWaitsForTheQueuesItNames) {
  const isa::Machine machine = FlatMachine();
  EXPECT_EQ(Cycles(machine, "  sync\n"), 8);
  const std::string fill = "  li r5, 6400\n  fill.f16 r0, r0, r5\n";
  EXPECT_EQ(Cycles(machine, fill + "  sync\n"), 2 + 1 + (16 + 100) + 8);
  EXPECT_EQ(Cycles(machine, fill + "  sync.compute\n"), 2 + 1 + (16 + 100) + 8);
  EXPECT_EQ(Cycles(machine, fill + "  sync.io\n"), 2 + 1 + 8);
  EXPECT_EQ(Cycles(machine, fill + "  sync.move\n"), 2 + 1 + 8);
  // Waiting for a queue that is already empty costs nothing.
  EXPECT_EQ(Cycles(machine, fill + "  li r6, 200\nloop:\n  sub r6, r6, r1\n  bne r6, r0, loop\n"
                                   "  sync\n"),
            2 + 1 + 2 + 800 + 8);
  const RunResult result = RunOn(machine, OnCore0("", fill + "  sync\n"));
  EXPECT_EQ(CoreOf(result, 0, 0).sync_wait, 116 + 8);
}

TEST(ScalarUnit, AWaitingInstructionHoldsUpIssue) {
  const isa::Machine machine = FlatMachine();
  const std::string start = "  li r5, 1024\n  fill.i8 r0, r0, r5\n  sync\n";
  const int64_t before = Cycles(machine, start);
  const int64_t copy = 32 + 16 + 40 + 4;
  EXPECT_EQ(Cycles(machine, start + "  memcpy.i8.smem.nmem r0, r0, r5, r1, r0, r0\n"),
            before + 1 + copy);
  EXPECT_EQ(Cycles(machine, start + "  memcpy.i8.smem.nmem.async r0, r0, r5, r1, r0, r0\n"),
            before + 1);
}

TEST(ScalarUnit, AFullQueueHoldsUpIssue) {
  const isa::Machine machine = TestMachine("unit");  // queues of 4
  // Each fill takes 10 + 2 cycles; they are issued one a cycle. In cycle t the first is issued, in
  // t + 1 it starts; four more wait; the sixth has to wait until the second starts, in t + 13, and
  // its place is free in t + 14.
  std::string body = "  li r5, 64\n";
  for (int i = 0; i < 5; ++i) absl::StrAppend(&body, "  fill.f16 r0, r0, r5\n");
  EXPECT_EQ(Cycles(machine, body), 2 + 5 + 0);
  absl::StrAppend(&body, "  fill.f16 r0, r0, r5\n");
  EXPECT_EQ(Cycles(machine, body), 2 + 14 + 1);
  const RunResult result = RunOn(machine, OnCore0("", body));
  EXPECT_EQ(CoreOf(result, 0, 0).queue_full[static_cast<int>(isa::Queue::kCompute)], 14 - 5);
  EXPECT_EQ(Busy(result, isa::Unit::kVector), 6 * 12);
  // They run back to back.
  EXPECT_EQ(result.end_cycle, kPrologue + 2 + 1 + 6 * 12);
}

TEST(ScalarUnit, QueuesRunInParallel) {
  const isa::Machine machine = FlatMachine();
  const std::string start = "  li r5, 65536\n  fill.i8 r0, r0, r5\n  sync\n";
  const std::string move = "  memcpy.i8.smem.nmem.async r0, r0, r5, r1, r0, r0\n";
  const std::string fill = "  fill.i8 r5, r0, r5\n";
  const int64_t base = Cycles(machine, start);
  const int64_t move_cycles = 32 + 16 * 64 + 40 + 4;
  const int64_t fill_cycles = 16 + 512;
  EXPECT_EQ(Cycles(machine, start + move + fill + "  sync\n"), base + 1 + move_cycles + 8);
  EXPECT_EQ(Cycles(machine, start + fill + move + "  sync.compute\n"), base + 1 + fill_cycles + 8);
}

TEST(ScalarUnit, TensorAndVectorUnitShareAQueue) {
  const isa::Machine machine = FlatMachine();
  // 64 x 64 filters of 64 bytes; one row of 64 bytes times all of them: 1 x 64 x 64 MACs = 1 cycle.
  const std::string body =
      "  li r5, 4096\n  fill.i8 r0, r0, r5\n  memcpy.i8.wmem.nmem.async r0, r0, r5, r1, r0, r0\n"
      "  li r6, 64\n  li r7, 8192\n"
      "  matmul.i8 r7, r0, r0, r1, r6, r6, r6, r6\n"
      "  fill.i8 r0, r0, r5\n";
  const RunResult result = RunOn(machine, OnCore0("", body));
  EXPECT_EQ(Busy(result, isa::Unit::kTensor), 64 + 1);
  EXPECT_EQ(result.end_cycle, kPrologue + 2 + 1 + (16 + 32) + (16 + 32) + (64 + 1) + (16 + 32));
}

TEST(Barrier, OpensAfterTheLastArrival) {
  const isa::Machine machine = FlatMachine();
  // Core i of each cluster counts to 100 i before it arrives; the memory core is the fifth.
  const isa::Program program = TestProgram(R"(
    li r0, 0
    arg r1, 0
    muli r2, r1, 100
    li r4, 1
  loop:
    beq r2, r0, arrive
    sub r2, r2, r4
    jump loop
  arrive:
    barrier.cluster
    barrier.global
    halt
  )");
  const RunResult result = RunOn(machine, program);
  const auto arrival = [](int core) { return 4 * 2 + 600 * core + 2; };
  for (const CoreReport& core : result.cores) {
    // All cores leave the cluster's barrier together and arrive at the card's barrier in the same cycle.
    EXPECT_EQ(core.barrier_wait, arrival(4) + 32 - arrival(core.core) + 128);
    EXPECT_EQ(core.halted_at, arrival(4) + 32 + 128 + kHalt);
  }
}

TEST(Barrier, DrainsTheCoresOwnQueues) {
  const isa::Machine machine = FlatMachine();
  const isa::Program program = TestProgram(R"(
    li r0, 0
    li r5, 6400
    arg r1, 4
    bne r1, r0, arrive
    fill.f16 r0, r0, r5
  arrive:
    barrier.cluster
    halt
  )");
  const RunResult result = RunOn(machine, program);
  EXPECT_EQ(CoreOf(result, 0, 0).halted_at, 8 + 1 + 116 + 32 + kHalt);
  EXPECT_EQ(CoreOf(result, 0, 0).sync_wait, 116);
  EXPECT_EQ(CoreOf(result, 0, 0).barrier_wait, 32);
  EXPECT_EQ(CoreOf(result, 0, 4).barrier_wait, 1 + 116 + 32);
}

// Instructions of one cycle each leave the queue one after another, the second of them in the cycle in which the wait
// for the first place ends.
TEST(ScalarUnit, ScalarCodeTakesItsTimeBehindAFullQueue) {
  const isa::Machine machine = TestMachine("unit", {"vector.start=0"});
  // The first fill takes 100 cycles from 19 on. Of the next ones, issued every 5 cycles, four fit into the queue; the
  // fifth of nine is issued in cycle 120.
  EXPECT_EQ(Cycles(machine, R"(
    li r5, 6400
    fill.i8 r0, r0, r5
    li r30, 9
  again:
    fill.i8 r0, r0, r0
    sub r30, r30, r1
    bne r30, r0, again
)"),
            120 - kPrologue + 5 * 5);
}

TEST(ScalarUnit, TraceBeginsInCycle0AndNamesTheInstructionThatIsWaitedFor) {
  ir::Tensor x(ir::Type::kI8, {64});
  RunOptions options;
  options.trace.enabled = true;
  const auto result = RunProgram(TestMachine("unit"),
                                 OnCore0(".tensor x i8 any in",
                                         "  arg r5, 8\n  li r6, 64\n"
                                         "  memcpy.i8.nmem.gmem r0, r5, r6, r1, r0, r0\n"),
                                 {Argument::Of(&x)}, options);
  ASSERT_TRUE(result.ok()) << result.status();
  constexpr int32_t kCopy = 10;  // its pc: behind the prologue and two more instructions
  std::vector<Slice> slices;
  for (const Slice& slice : result->slices) {
    if (slice.core == 0) slices.push_back(slice);
  }
  using Kind = Slice::Kind;
  const int64_t issue = kPrologue + 4, end = result->end_cycle - kHalt;
  const auto scalar = [](Kind kind, int32_t pc, int64_t begin, int64_t end) {
    return Slice{.kind = kind, .pc = pc, .begin = begin, .end = end};
  };
  EXPECT_THAT(slices,
              testing::UnorderedElementsAre(
                  scalar(Kind::kScalar, kCopy, 0, issue), scalar(Kind::kWait, kCopy, issue, end),
                  Slice{.unit = isa::Unit::kIoDma, .pc = kCopy, .begin = issue + 1, .end = end},
                  scalar(Kind::kScalar, kCopy + 1, end, end + kHalt)));
}

}  // namespace
}  // namespace polynao::simulator
