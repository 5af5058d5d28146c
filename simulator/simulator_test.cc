#include "simulator/simulator.h"
#include "isa/bound.h"

#include <map>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/isolated.h"
#include "simulator/testing.h"

namespace polynao::simulator {
namespace {

struct Added {
  RunResult result;
  ir::Tensor out;
};

Added RunAdd(const isa::Machine& machine, int64_t n, int64_t tile, RunOptions options = {}) {
  ir::Tensor x = ir::RandomTensor(ir::Type::kF16, {n}, 1);
  ir::Tensor y = ir::RandomTensor(ir::Type::kF16, {n}, 2);
  Added added{{}, ir::Tensor(ir::Type::kF16, {n})};
  const auto result = RunProgram(
      machine, StreamingAdd(tile),
      {Argument::Of(&x), Argument::Of(&y), Argument::Of(&added.out), Argument::Scalar(n)}, options);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return added;
  added.result = *result;
  ir::Tensor expected(ir::Type::kF16, {n});
  for (int64_t i = 0; i < n; ++i) expected.SetValue(i, x.Value(i) + y.Value(i));
  EXPECT_EQ(ir::FirstDifference(added.out, expected), -1) << n << " elements";
  return added;
}

TEST(Simulator, AddsOnAllCores) {
  for (const char* name : {"mlu270", "mlu290", "mlu370", "unit"}) {
    const isa::Machine machine = TestMachine(name);
    const int64_t tile = name == std::string("unit") ? 1024 : 4096;
    for (int64_t n : {1, 63, 64, 65, 4095, 4097, 200003}) {
      const RunResult result = RunAdd(machine, n, tile).result;
      EXPECT_EQ(result.gmem_read, 4 * n) << name;
      EXPECT_EQ(result.gmem_written, 2 * n);
      EXPECT_EQ(result.launch_cycles, machine.Get("card.launch"));
      EXPECT_THAT(result.unwritten, testing::IsEmpty());
      const isa::Work work{.gmem_bytes = 6 * n, .vector_elements = n};
      EXPECT_GE(result.cycles, isa::BoundOf(machine, work).value().cycles);
    }
  }
}

TEST(Simulator, NothingToDo) {
  const RunResult result = RunAdd(FlatMachine(), 0, 64).result;
  EXPECT_EQ(result.gmem_read, 0);
  EXPECT_GT(result.cycles, 0);
}

TEST(Simulator, StreamingComesCloseToThePeak) {
  const isa::Machine machine = FlatMachine();
  const int64_t n = 4 << 20;
  const RunResult result = RunAdd(machine, n, 16384).result;
  const int64_t bound = isa::BoundOf(machine, {.gmem_bytes = 6 * n}).value().cycles;
  EXPECT_LT(result.cycles, bound * 102 / 100);
}

TEST(Simulator, NoPortMovesMoreThanItsWidth) {
  // Each run checks this too; here the counters show it, with all 16 cores and odd sizes.
  const RunResult result = RunAdd(FlatMachine(), 1000003, 1088).result;
  int64_t moved = 0;
  for (const PortReport& port : result.ports) {
    EXPECT_LE(port.moved * 1000, port.rate * port.busy) << port.name;
    EXPECT_LE(port.busy, result.end_cycle) << port.name;
    EXPECT_LE(port.payload, port.moved) << port.name;
    if (port.name.starts_with("gmem.channel")) moved += port.moved;
  }
  EXPECT_EQ(moved, result.gmem_read_moved + result.gmem_written_moved);
}

TEST(Simulator, ReportsOutputsThatNothingWrote) {
  ir::Tensor out(ir::Type::kI32, {10});
  const isa::Program program =
      OnCore0(".tensor out i32 any out", "  arg r5, 8\n  store.i32.gmem r5, r1\n");
  const auto result = RunProgram(TestMachine("unit"), program, {Argument::Of(&out)});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->unwritten, testing::ElementsAre(testing::Pair("out", 36)));
  EXPECT_EQ(out.Int(0), 1);
}

TEST(Simulator, RunsInThisProcessToo) {
  const isa::Machine machine = TestMachine("unit");
  RunOptions options;
  options.in_this_process = true;
  // In a child process, so that the other tests of this process can still run.
  const auto bytes = RunIsolated([&]() -> absl::StatusOr<std::string> {
    return SerializeResult(RunAdd(machine, 5000, 1024, options).result);
  });
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(ParseResult(*bytes).value(), RunAdd(machine, 5000, 1024).result);
}

// Programs that nobody wrote are timed in both ways by reference/testing/compare.
TEST(Simulator, TimingAloneComputesNothing) {
  const isa::Machine machine = TestMachine("mlu270");
  const int64_t n = 4097;
  const RunResult with_values = RunAdd(machine, n, 1024).result;
  ir::Tensor x = ShapeOnly(ir::Type::kF16, {n}), y = x;
  ir::Tensor out(ir::Type::kF16, {n});
  out.SetValue(7, 3);
  const std::vector<uint8_t> before = out.bytes;
  const auto timed =
      RunProgram(machine, StreamingAdd(1024),
                 {Argument::Of(&x), Argument::Of(&y), Argument::Of(&out), Argument::Scalar(n)},
                 {.timing_only = true});
  ASSERT_TRUE(timed.ok()) << timed.status();
  EXPECT_EQ(*timed, with_values);
  EXPECT_EQ(out.bytes, before);
}

TEST(Simulator, TimingAloneRefusesProgramsThatLoadRegisters) {
  const isa::Machine machine = TestMachine("mlu270");
  const isa::Program program = OnCore0(".tensor n i64 [1] in\n.tensor out i64 [1] out", R"(
      arg r2, 8
      load.i64.gmem r3, r2
      arg r4, 9
    loop:
      addi r3, r3, -1
      bne r3, r0, loop
      store.i64.gmem r4, r3
  )");
  ir::Tensor n(ir::Type::kI64, {1}), out(ir::Type::kI64, {1});
  n.SetInt(0, 5);
  const std::vector<Argument> arguments = {Argument::Of(&n), Argument::Of(&out)};
  EXPECT_TRUE(RunProgram(machine, program, arguments).ok());
  const auto timed = RunProgram(machine, program, arguments, {.timing_only = true});
  EXPECT_THAT(timed.status().message(), testing::HasSubstr("cannot be timed without values: pc "));
  EXPECT_THAT(timed.status().message(), testing::HasSubstr("\"load.i64.gmem r3, r2"));
}

TEST(Simulator, ThreadsMayRunAtTheSameTime) {
  const isa::Machine machine = TestMachine("unit");
  const RunResult alone = RunAdd(machine, 5000, 1024).result;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(RunAdd(machine, 5000, 1024).result, alone); });
  }
  for (std::thread& thread : threads) thread.join();
}

// A random program without hazards: every core works in its own parts of x, SMEM and NMEM, on all
// queues, with scalar code between, syncs where queues meet, and barriers in step.
std::string RandomBody(std::mt19937& random) {
  // r4: this core's number in the card; r5: its part of x (2048 elements); r6: its part of SMEM.
  std::string body = R"(
  arg r10, 2
  mul r4, r3, r10
  add r4, r4, r2
  muli r4, r4, 4096
  arg r5, 8
  add r5, r5, r4
  muli r6, r2, 4096
  li r7, 2048
  fill.f16 r0, r1, r7
  sync
  memcpy.f16.smem.nmem r6, r0, r7, r1, r0, r0
)";
  for (int step = 0; step < 30; ++step) {
    const int count = 64 * (1 + static_cast<int>(random() % 16));
    const int segments = 1 + static_cast<int>(random() % 8);
    absl::StrAppend(&body, "  li r11, ", count, "\n");
    switch (random() % 8) {
      case 0:
        absl::StrAppend(&body, "  memcpy.f16.nmem.gmem.async r0, r5, r11, r1, r0, r0\n");
        break;
      case 1:
        absl::StrAppend(&body, "  memcpy.f16.gmem.nmem.async r5, r0, r11, r1, r0, r0\n");
        break;
      case 2:  // segments of 32 elements, 64 apart
        absl::StrAppend(&body, "  li r12, ", segments, "\n  li r13, 32\n  li r14, 64\n",
                        "  memcpy.f16.nmem.gmem.async r0, r5, r13, r12, r13, r14\n");
        break;
      case 3:
        absl::StrAppend(&body, "  li r12, ", segments, "\n  li r13, 16\n  li r14, 64\n",
                        "  memcpy.f16.gmem.nmem.async r5, r0, r13, r12, r14, r13\n");
        break;
      case 4:
        absl::StrAppend(&body, "  memcpy.f16.smem.nmem.async r6, r0, r11, r1, r0, r0\n");
        break;
      case 5:
        absl::StrAppend(&body, "  add.f16 r0, r0, r0, r11\n  muls.f16 r0, r0, r0, r11\n");
        break;
      case 6:
        absl::StrAppend(&body, "  li r15, ", 1 + random() % 50, "\ncount", step,
                        ":\n  sub r15, r15, r1\n  bne r15, r0, count", step, "\n");
        break;
      case 7:
        absl::StrAppend(&body, "  load.f16.nmem r16, r0\n");
        break;
    }
    absl::StrAppend(&body, "  sync\n");
  }
  return body;
}

TEST(Simulator, SameProgramSameRun) {
  const uint32_t seed = 31337;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 25; ++round) {
    const isa::Machine machine =
        TestMachine("unit", {absl::StrCat("gmem.channels=", 1 + random() % 3),
                             absl::StrCat("io_dma.outstanding=", 1 + random() % 8)});
    const isa::Program program = OnCores(2, 1 + static_cast<int>(random() % 2),
                                         ".tensor x f16 any inout", RandomBody(random));
    const auto run = [&](bool trace, bool hazards, ir::Tensor& x) {
      x = ir::RandomTensor(ir::Type::kF16, {4 * 2048}, 5);
      RunOptions options;
      options.trace.enabled = trace;
      options.check_hazards = hazards;
      auto result = RunProgram(machine, program, {Argument::Of(&x)}, options);
      EXPECT_TRUE(result.ok()) << result.status();
      return result.ok() ? *std::move(result) : RunResult();
    };
    ir::Tensor x1, x2, x3, x4;
    const RunResult first = run(false, true, x1);
    EXPECT_EQ(run(false, true, x2), first) << "round " << round;
    EXPECT_EQ(x1.bytes, x2.bytes);
    // A trace adds itself and changes nothing.
    RunResult traced = run(true, true, x3);
    EXPECT_FALSE(traced.slices.empty());
    traced.slices.clear();
    traced.instructions.clear();
    traced.gmem_bucket = 0;
    traced.gmem_buckets.clear();
    EXPECT_EQ(traced, first) << "round " << round;
    EXPECT_EQ(x1.bytes, x3.bytes);
    EXPECT_EQ(run(false, false, x4), first) << "round " << round;
  }
}

TEST(Simulator, TraceAccountsForEveryBusyCycle) {
  const isa::Machine machine = TestMachine("unit");
  RunOptions options;
  options.trace.enabled = true;
  const RunResult result = RunAdd(machine, 9000, 1024, options).result;
  EXPECT_TRUE(result.slices_complete);
  std::map<std::pair<int, isa::Unit>, int64_t> busy;
  for (const Slice& slice : result.slices) {
    EXPECT_LT(slice.begin, slice.end);
    if (slice.kind == Slice::Kind::kExecute) {
      busy[{slice.core, slice.unit}] += slice.end - slice.begin;
    }
  }
  for (size_t core = 0; core < result.cores.size(); ++core) {
    for (isa::Unit unit : {isa::Unit::kVector, isa::Unit::kIoDma, isa::Unit::kMoveDma}) {
      EXPECT_EQ((busy[{static_cast<int>(core), unit}]),
                result.cores[core].units[static_cast<size_t>(unit)].busy);
    }
  }
  int64_t moved = 0;
  for (int64_t bucket : result.gmem_buckets) moved += bucket;
  EXPECT_EQ(moved, result.gmem_read_moved + result.gmem_written_moved);
}

TEST(Simulator, TraceKeepsToItsWindowAndLimit) {
  const isa::Machine machine = TestMachine("unit");
  RunOptions options;
  options.trace = {.enabled = true, .begin = 500, .end = 900};
  const RunResult window = RunAdd(machine, 9000, 1024, options).result;
  EXPECT_FALSE(window.slices.empty());
  for (const Slice& slice : window.slices) {
    EXPECT_LT(slice.begin, 900);
    EXPECT_GT(slice.end, 500);
  }
  options.trace = {.enabled = true, .limit = 10};
  const RunResult cut = RunAdd(machine, 9000, 1024, options).result;
  EXPECT_EQ(cut.slices.size(), 10u);
  EXPECT_FALSE(cut.slices_complete);
}

}  // namespace
}  // namespace polynao::simulator
