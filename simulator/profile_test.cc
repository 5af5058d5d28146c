// What cycles went into: small programs whose classes are known by hand, and long ones against a loop over the cycles
// of their trace. POLYNAO_RANDOM_CASES=200 runs more random cases, POLYNAO_SEED=7 others.

#include "simulator/profile.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/dram/address_map.h"
#include "simulator/dram/preset.h"
#include "simulator/testing.h"
#include "testing/fuzz.h"

namespace polynao::simulator {
namespace {

using ::testing::ElementsAre;

// Cycles of the instructions that OnCore0 puts around a body.
constexpr int64_t kPrologue = 8 * 2;
constexpr int64_t kHalt = 2;
constexpr int64_t kTensorBytes = 1 << 20;

// A clock of DRAM is a cycle, so that closed forms have no rounding.
isa::Machine OneToOne(std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.begin(),
                   {"gmem.dram=ddr4_3200", "gmem.cache_reads=0", "dram.posted=1",
                    "dram.clock_mhz=1000", "gmem.channel_bytes_per_kilocycle=16000"});
  return FlatMachine(overrides);
}

RunResult RunOn(const isa::Machine& machine, std::string_view body) {
  ir::Tensor x(ir::Type::kI8, {kTensorBytes});
  const auto result = RunProgram(machine, OnCore0(".tensor x i8 any inout", body),
                                 {Argument::Of(&x)}, {.trace = {}, .profile = true});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : RunResult();
}

int64_t ClassOf(const RunResult& result, CycleClass cycle_class, int cluster = 0, int core = 0) {
  return CoreOf(result, cluster, core).classes[static_cast<size_t>(cycle_class)];
}

// Three instructions of two cycles, then the copy, which the core waits for.
std::string Copy(bool store, int64_t count, int64_t offset = 0) {
  return absl::StrCat("  arg r10, 8\n  addi r10, r10, ", offset, "\n  li r11, ", count, "\n",
                      store ? "  memcpy.i8.gmem.nmem r10, r0, r11, r1, r11, r11\n"
                            : "  memcpy.i8.nmem.gmem r0, r10, r11, r1, r11, r11\n");
}
constexpr int64_t kCopyScalar = 3 * 2;

// In the order of CycleClass: compute, DRAM rows, load, store, move, barrier, scalar, idle. The cycle in which an
// instruction that waits is issued is idle.
TEST(ProfileTest, ALoadWaitsForItsRow) {
  const isa::Machine machine = OneToOne();
  const RunResult result = RunOn(machine, Copy(false, 64));
  const int64_t load = Busy(result, isa::Unit::kIoDma);
  EXPECT_THAT(CoreOf(result, 0, 0).classes,
              ElementsAre(0, machine.Get("dram.trcd"), load - machine.Get("dram.trcd"), 0, 0, 0,
                          kPrologue + kCopyScalar + kHalt, 1));
}

TEST(ProfileTest, RowsOpenOneAfterAnother) {
  // Rows of two bank groups; the second one is open before the data of the first arrives.
  const isa::Machine machine = OneToOne();
  ASSERT_GT(machine.Get("dram.cl"), machine.Get("dram.trrd_s"));
  EXPECT_EQ(ClassOf(RunOn(machine, Copy(false, 512)), CycleClass::kDramRows),
            machine.Get("dram.trrd_s") + machine.Get("dram.trcd"));
}

TEST(ProfileTest, FlatChannelsHaveNoRows) {
  const RunResult result = RunOn(FlatMachine(), Copy(false, 512));
  EXPECT_THAT(CoreOf(result, 0, 0).classes,
              ElementsAre(0, 0, 265, 0, 0, 0, kPrologue + kCopyScalar + kHalt, 1));
}

// An offset of `x` whose row is another one of the bank of its first byte, in the same channel.
int64_t ConflictingOffset(const isa::Machine& machine) {
  const AddressMap map = AddressMap::Make(DramOf(machine).value(), "test").value();
  const int64_t interleave = machine.Get("gmem.interleave");
  const int64_t stripe = interleave * machine.Get("gmem.channels");
  constexpr int64_t kBegin = 1 << 20;
  const DramPlace first = map.Map(kBegin / stripe * interleave);
  for (int64_t local = 0; local < kTensorBytes / stripe * interleave; local += 512) {
    const DramPlace place = map.Map(kBegin / stripe * interleave + local);
    if (place.bank != first.bank || place.row == first.row) continue;
    return local / interleave * stripe + local % interleave;
  }
  ADD_FAILURE() << "no other row in the tensor";
  return 0;
}

TEST(ProfileTest, AConflictClosesARowAndOpensAnother) {
  // Hashing would spread the rows of one bank over more than the tensor.
  const isa::Machine machine =
      OneToOne({"dram.hash=0", "dram.map=row column bank bank_group rank"});
  const RunResult result =
      RunOn(machine, Copy(false, 64) + Copy(false, 64, ConflictingOffset(machine)));
  EXPECT_EQ(ClassOf(result, CycleClass::kDramRows),
            2 * machine.Get("dram.trcd") + machine.Get("dram.trp"));
  EXPECT_EQ(result.dram[0].conflicts, 1);
}

TEST(ProfileTest, AHitOpensNoRow) {
  const isa::Machine machine = OneToOne();
  const RunResult once = RunOn(machine, Copy(false, 64));
  const RunResult twice = RunOn(machine, Copy(false, 64) + Copy(false, 64));
  EXPECT_EQ(ClassOf(twice, CycleClass::kDramRows), ClassOf(once, CycleClass::kDramRows));
  EXPECT_EQ(twice.dram[0].hits, 1);
}

TEST(ProfileTest, AStoreWaitsForARowAsLongAsItIsAtTheChannel) {
  const isa::Machine unposted = OneToOne({"dram.posted=0"});
  const std::string store = "  li r5, 64\n  fill.i8 r0, r0, r5\n  sync\n" + Copy(true, 64);
  const RunResult waits = RunOn(unposted, store);
  EXPECT_EQ(ClassOf(waits, CycleClass::kDramRows), unposted.Get("dram.trcd"));
  EXPECT_EQ(ClassOf(waits, CycleClass::kStore),
            Busy(waits, isa::Unit::kIoDma) - unposted.Get("dram.trcd"));
  // The run ends with the last byte, so nothing comes behind.
  EXPECT_EQ(ClassOf(waits, CycleClass::kLoad), 0);
  EXPECT_EQ(ClassOf(waits, CycleClass::kScalar), kPrologue + 2 + 1 + kCopyScalar);
  const RunResult posted = RunOn(OneToOne(), store);
  // It has left the channel cwl + B later, before the row is open.
  const int64_t at_channel = unposted.Get("dram.cwl") + 4;
  ASSERT_LT(at_channel, unposted.Get("dram.trcd"));
  EXPECT_EQ(ClassOf(posted, CycleClass::kDramRows), at_channel);
  EXPECT_EQ(ClassOf(posted, CycleClass::kStore), Busy(posted, isa::Unit::kIoDma) - at_channel);
}

TEST(ProfileTest, ComputingHidesALoad) {
  // 512 bytes take 265 cycles, 64 K elements of a byte 16 + 512.
  const std::string load =
      "  arg r10, 8\n  li r11, 512\n  li r12, 65536\n  li r13, 1024\n"
      "  memcpy.i8.nmem.gmem.async r0, r10, r11, r1, r11, r11\n";
  const RunResult result = RunOn(FlatMachine(), load + "  fill.i8 r13, r0, r12\n");
  const int64_t compute = Busy(result, isa::Unit::kVector);
  EXPECT_GT(compute, 300);
  // The load starts a cycle before the vector unit, which works on after the core has halted.
  EXPECT_THAT(CoreOf(result, 0, 0).classes,
              ElementsAre(compute, 0, 1, 0, 0, 0, kPrologue + 4 * 2 + 1, 0));
}

TEST(ProfileTest, MovesOnChipAndACoreThatHaltsAtOnce) {
  const RunResult result = RunOn(FlatMachine(),
                                 "  li r11, 64\n  fill.i8 r0, r0, r11\n  sync\n"
                                 "  memcpy.i8.smem.nmem r0, r0, r11, r1, r11, r11\n");
  EXPECT_EQ(ClassOf(result, CycleClass::kMove), Busy(result, isa::Unit::kMoveDma));
  EXPECT_EQ(ClassOf(result, CycleClass::kCompute), Busy(result, isa::Unit::kVector));
  // The sync's own cycles, and the issue of the copy.
  EXPECT_EQ(ClassOf(result, CycleClass::kIdle), FlatMachine().Get("sync.drain") + 1);
  // Another core halts and has nothing to do from then on.
  const CoreReport& other = CoreOf(result, 1, 0);
  EXPECT_EQ(ClassOf(result, CycleClass::kScalar, 1, 0), other.halted_at);
  EXPECT_EQ(ClassOf(result, CycleClass::kIdle, 1, 0), result.cycles - other.halted_at);
}

TEST(ProfileTest, BarrierIsTheWaitForTheOthers) {
  const isa::Machine machine = FlatMachine();
  const isa::Program program = TestProgram(R"(
.program barrier
  li r0, 0
  arg r2, 0
  bne r2, r0, others
  li r5, 100
loop:
  addi r5, r5, -1
  bne r5, r0, loop
others:
  barrier.global
  halt
)");
  const auto result = RunProgram(machine, program, {}, {.trace = {}, .profile = true});
  ASSERT_TRUE(result.ok()) << result.status();
  for (const CoreReport& core : result->cores) {
    EXPECT_EQ(core.classes[static_cast<size_t>(CycleClass::kBarrier)], core.barrier_wait);
    EXPECT_EQ(core.classes[static_cast<size_t>(CycleClass::kScalar)],
              result->cycles - core.barrier_wait);
  }
  EXPECT_EQ(CoreOf(*result, 0, 0).barrier_wait, machine.Get("sync.global"));
  EXPECT_EQ(CoreOf(*result, 0, 1).barrier_wait, machine.Get("sync.global") + 2 + 100 * 4);
}

// The classes of a core by its trace alone; without rows, which no trace has.
std::array<int64_t, kCycleClassCount> FromTrace(const RunResult& result, int32_t core) {
  std::vector<int> best(static_cast<size_t>(result.cycles), static_cast<int>(CycleClass::kIdle));
  for (const Slice& slice : result.slices) {
    if (slice.core != core) continue;
    CycleClass found = CycleClass::kIdle;
    if (slice.kind == Slice::Kind::kScalar) found = CycleClass::kScalar;
    if (slice.kind == Slice::Kind::kBarrier) found = CycleClass::kBarrier;
    if (slice.kind == Slice::Kind::kExecute) {
      found = slice.unit == isa::Unit::kMoveDma ? CycleClass::kMove
              : slice.unit != isa::Unit::kIoDma ? CycleClass::kCompute
              : slice.is_store                  ? CycleClass::kStore
                                                : CycleClass::kLoad;
    }
    for (int64_t t = slice.begin; t < std::min(slice.end, result.cycles); ++t) {
      int& at = best[static_cast<size_t>(t)];
      at = std::min(at, static_cast<int>(found));
    }
  }
  std::array<int64_t, kCycleClassCount> counts{};
  for (int found : best) ++counts[static_cast<size_t>(found)];
  return counts;
}

TEST(ProfileTest, AgreesWithTheTraceOfStreamingAdditions) {
  const uint64_t seed = FuzzSeed();
  std::array<int64_t, kCycleClassCount> total{};
  for (int64_t i = 0; i < FuzzCases(8); ++i) {
    SCOPED_TRACE(testing::Message() << "POLYNAO_SEED=" << seed << ", case " << i);
    std::mt19937_64 random(seed * 1'000'003 + static_cast<uint64_t>(i));
    const bool is_dram = i % 2 == 0;
    const char* transfers = random() % 2 == 0 ? "io_dma.transfers=1" : "io_dma.transfers=3";
    const char* posted = random() % 2 == 0 ? "dram.posted=0" : "dram.posted=1";
    const isa::Machine machine =
        is_dram ? TestMachine("mlu270", {transfers, posted}) : FlatMachine({transfers});
    const int64_t tile = int64_t{64} << random() % 6;
    const int64_t n = 1 + static_cast<int64_t>(random() % 200'000);
    ir::Tensor x = ir::RandomTensor(ir::Type::kF16, {n}, seed, ir::Values::kExact);
    ir::Tensor y = ir::RandomTensor(ir::Type::kF16, {n}, seed + 1, ir::Values::kExact);
    ir::Tensor out(ir::Type::kF16, {n});
    const std::vector<Argument> arguments = {Argument::Of(&x), Argument::Of(&y), Argument::Of(&out),
                                             Argument::Scalar(n)};
    RunOptions options;
    options.check_hazards = false;
    options.trace.enabled = true;
    options.trace.limit = 10'000'000;
    const auto plain = RunProgram(machine, StreamingAdd(tile), arguments, options);
    options.profile = true;
    const auto result = RunProgram(machine, StreamingAdd(tile), arguments, options);
    ASSERT_TRUE(plain.ok() && result.ok()) << plain.status() << result.status();
    for (size_t c = 0; c < result->cores.size(); ++c) {
      auto classes = result->cores[c].classes;
      EXPECT_EQ(std::accumulate(classes.begin(), classes.end(), int64_t{0}), result->cycles);
      for (size_t k = 0; k < total.size(); ++k) total[k] += classes[k];
      auto expected = FromTrace(*result, static_cast<int32_t>(c));
      // Rows are a part of what the trace has as loads and stores.
      const auto at = [](auto& counts, CycleClass k) -> int64_t& {
        return counts[static_cast<size_t>(k)];
      };
      if (is_dram) {
        for (auto* counts : {&classes, &expected}) {
          at(*counts, CycleClass::kLoad) +=
              at(*counts, CycleClass::kStore) + at(*counts, CycleClass::kDramRows);
          at(*counts, CycleClass::kStore) = at(*counts, CycleClass::kDramRows) = 0;
        }
      }
      ASSERT_EQ(classes, expected) << "core " << c << " tile " << tile << " n " << n;
    }
    // What each row of the table has over time is what its counters have.
    const Activity& activity = result->activity;
    for (size_t row = 0; row < activity.bytes.size(); ++row) {
      const std::vector<int64_t>& bytes = activity.bytes[row];
      ASSERT_LE(bytes.size(), 400u);
      ASSERT_EQ((result->end_cycle + activity.bucket - 1) / activity.bucket,
                static_cast<int64_t>(bytes.size()));
      const int64_t sum = std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
      if (!is_dram) {
        ASSERT_EQ(sum, PortOf(*result, absl::StrCat("gmem.channel", row)).moved);
        continue;
      }
      const DramBankCounters& bank = result->dram_banks[row];
      ASSERT_EQ(sum, (bank.reads + bank.writes) * 64);
      const std::vector<int64_t>& activates = activity.activates[row];
      ASSERT_EQ(std::accumulate(activates.begin(), activates.end(), int64_t{0}), bank.activates);
    }
    // A profile changes nothing else.
    RunResult without = *result;
    without.activity = {};
    for (CoreReport& core : without.cores) core.classes = {};
    ASSERT_TRUE(without == *plain);
  }
  for (CycleClass k : {CycleClass::kCompute, CycleClass::kDramRows, CycleClass::kLoad,
                       CycleClass::kStore, CycleClass::kScalar, CycleClass::kIdle}) {
    EXPECT_GT(total[static_cast<size_t>(k)], 0) << CycleClassName(k);
  }
}

}  // namespace
}  // namespace polynao::simulator
