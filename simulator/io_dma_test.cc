// Cycles of IO-DMA transfers against the closed forms of docs/timing.md.

#include "simulator/io_dma.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/testing.h"

namespace polynao::simulator {
namespace {

constexpr char kParams[] = ".tensor x i8 any inout";
constexpr int64_t kChunk = 16384;  // mlu270: consecutive bytes on one channel

// x starts at a multiple of the interleave, so on channel 0.
RunResult RunOn(const isa::Machine& machine, const isa::Program& program, int64_t bytes = 1 << 20,
                const RunOptions& options = {}) {
  ir::Tensor x(ir::Type::kI8, {bytes});
  const auto result = RunProgram(machine, program, {Argument::Of(&x)}, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : RunResult();
}

// memcpy of `count` bytes in `segments` runs `stride` apart in GMEM.
std::string Copy(bool store, int64_t count, int64_t segments = 1, int64_t stride = 0,
                 int64_t offset = 0, std::string_view memory = "nmem") {
  const std::string m(memory);
  return absl::StrCat("  arg r10, 8\n  addi r10, r10, ", offset, "\n  li r11, ", count,
                      "\n  li r12, ", segments, "\n  li r13, ", stride, "\n",
                      store
                          ? absl::StrCat("  memcpy.i8.gmem.", m, " r10, r0, r11, r12, r13, r11\n")
                          : absl::StrCat("  memcpy.i8.", m, ".gmem r0, r10, r11, r12, r11, r13\n"));
}

int64_t LoadCycles(const isa::Machine& machine, int64_t count, int64_t segments = 1,
                   int64_t stride = 0, int64_t offset = 0) {
  return Busy(RunOn(machine, OnCore0(kParams, Copy(false, count, segments, stride, offset))),
              isa::Unit::kIoDma);
}

int64_t StoreCycles(const isa::Machine& machine, int64_t count, int64_t segments = 1,
                    int64_t stride = 0, int64_t offset = 0) {
  // Stores need something to store.
  const std::string fill = "  li r20, 65536\n  fill.i8 r0, r0, r20\n  sync\n";
  const std::string copy = Copy(true, count, segments, stride, offset);
  return Busy(RunOn(machine, OnCore0(kParams, fill + copy)), isa::Unit::kIoDma);
}

TEST(IoDma, ContiguousLoadFromOneChannel) {
  const isa::Machine machine = FlatMachine();
  // start + request + channel, burst by burst + latency + link + port of the last burst
  EXPECT_EQ(LoadCycles(machine, 512), 32 + 1 + 20 + 200 + 4 + 8);
  for (int64_t bursts : {2, 3, 17, 32}) {
    EXPECT_EQ(LoadCycles(machine, 512 * bursts), 32 + 1 + 20 * bursts + 200 + 4 + 8) << bursts;
  }
  EXPECT_EQ(LoadCycles(machine, 64), 32 + 1 + 3 + 200 + 1 + 1);
  // One byte moves a granule.
  EXPECT_EQ(LoadCycles(machine, 1), 32 + 1 + 3 + 200 + 1 + 1);
  // 65 bytes move two; the link and the port carry what was asked for.
  EXPECT_EQ(LoadCycles(machine, 65), 32 + 1 + 5 + 200 + 1 + 2);
  // 512 bytes off the burst's boundary: 448 bytes, then 64, which wait for the port.
  EXPECT_EQ(LoadCycles(machine, 512, 1, 0, 64), 32 + 1 + 18 + 200 + 4 + 7 + 1);
}

TEST(IoDma, NothingToCopyTakesTheStart) {
  const isa::Machine machine = FlatMachine();
  EXPECT_EQ(LoadCycles(machine, 0), 32);
  EXPECT_EQ(LoadCycles(machine, 512, 0), 32);
}

TEST(IoDma, LongLoadRunsAtThePortsRateOrTheChannels) {
  // 64 outstanding bursts cover two channels and more: between two channels' rate and the port's.
  const isa::Machine machine = FlatMachine();
  const int64_t bytes = 384 << 10;
  const int64_t cycles = LoadCycles(machine, bytes);
  EXPECT_GE(cycles, bytes / 64);
  EXPECT_LE(cycles, 32 + 300 + bytes * 10 / 512);
  // With one burst outstanding, one round trip each.
  const isa::Machine serial = FlatMachine({"io_dma.outstanding=1"});
  EXPECT_EQ(LoadCycles(serial, 512 * 10), 32 + 10 * (1 + 20 + 200 + 4 + 8));
}

TEST(IoDma, StridedLoadHasFourSegmentsInFlight) {
  const isa::Machine machine = FlatMachine();
  // 64-byte segments on one channel: four leave one cycle apart, the channel serves them 3 apart,
  // and each next one leaves when one has come back, after 206 cycles.
  for (int64_t rounds : {1, 2, 5}) {
    EXPECT_EQ(LoadCycles(machine, 64, 4 * rounds, 128),
              32 + rounds * (1 + 3 + 200 + 1 + 1) + 3 * 3);
  }
  const isa::Machine one = FlatMachine({"io_dma.strided_reads=1"});
  EXPECT_EQ(LoadCycles(one, 64, 7, 128), 32 + 7 * (1 + 3 + 200 + 1 + 1));
}

TEST(IoDma, RunsThatTouchAreOneSegment) {
  const isa::Machine machine = FlatMachine();
  EXPECT_EQ(LoadCycles(machine, 64, 16, 64), LoadCycles(machine, 1024));
  EXPECT_GT(LoadCycles(machine, 64, 16, 65), LoadCycles(machine, 1024));
}

TEST(IoDma, ContiguousStore) {
  const isa::Machine machine = FlatMachine();
  for (int64_t bursts : {1, 2, 32}) {
    EXPECT_EQ(StoreCycles(machine, 512 * bursts), 32 + 8 + 4 + 200 + 20 * bursts) << bursts;
  }
}

TEST(IoDma, StoreOfPartOfAGranuleReadsItFirst) {
  const isa::Machine machine = FlatMachine();
  EXPECT_EQ(StoreCycles(machine, 64), 32 + 1 + 1 + 200 + 3);
  EXPECT_EQ(StoreCycles(machine, 2), 32 + 1 + 1 + 200 + 5);              // 64 read, 64 written
  EXPECT_EQ(StoreCycles(machine, 64, 1, 0, 32), 32 + 1 + 1 + 200 + 10);  // two granules, both twice
  EXPECT_EQ(StoreCycles(machine, 96, 1, 0, 32), 32 + 2 + 1 + 200 + 8);   // the first twice
}

TEST(IoDma, StridedStoreHasOneSegmentInFlight) {
  const isa::Machine machine = FlatMachine();
  // The step-3 ladder of the GEMM tutorial: 512-byte segments, 0.22 to 0.26 us each.
  for (int64_t segments : {2, 3, 50}) {
    EXPECT_EQ(StoreCycles(machine, 512, segments, 1024), 32 + segments * (8 + 4 + 200 + 20));
  }
}

TEST(IoDma, CoresShareAChannelInTurn) {
  const isa::Machine machine = FlatMachine({"gmem.cache_kib=0"});
  for (int cores : {2, 3, 4}) {
    for (int clusters : {1, 2, 4}) {
      // All cores request one burst from the same channel in the same cycle: the last one waits for
      // all others.
      const RunResult result = RunOn(machine, OnCores(clusters, cores, kParams, Copy(false, 512)));
      std::vector<int64_t> times, expected;
      for (int cluster = 0; cluster < clusters; ++cluster) {
        for (int core = 0; core < cores; ++core) {
          times.push_back(Busy(result, isa::Unit::kIoDma, cluster, core));
          expected.push_back(32 + 1 + 20 * static_cast<int64_t>(times.size()) + 200 + 4 + 8);
        }
      }
      EXPECT_EQ(times, expected);
    }
  }
}

TEST(IoDma, CoresOfAClusterShareItsLink) {
  // A link slower than the channels: one burst takes 64 cycles on it.
  const isa::Machine machine = FlatMachine({"cluster.link_bytes=8"});
  // Each core uses a channel of its own.
  const std::string own = absl::StrCat("  arg r10, 8\n  muli r14, r2, ", kChunk,
                                       "\n  add r10, r10, r14\n  li r11, 512\n"
                                       "  memcpy.i8.nmem.gmem r0, r10, r11, r1, r0, r0\n");
  const RunResult result = RunOn(machine, OnCores(1, 4, kParams, own));
  for (int core = 0; core < 4; ++core) {
    EXPECT_EQ(Busy(result, isa::Unit::kIoDma, 0, core), 32 + 1 + 20 + 200 + 64 * (core + 1) + 8);
  }
  EXPECT_EQ(PortOf(result, "cluster0.link.down").busy, 4 * 64);
  // Cores of different clusters do not share a link.
  const std::string apart = absl::StrCat("  arg r10, 8\n  muli r14, r3, ", kChunk,
                                         "\n  add r10, r10, r14\n  li r11, 512\n"
                                         "  memcpy.i8.nmem.gmem r0, r10, r11, r1, r0, r0\n");
  const RunResult other = RunOn(machine, OnCores(4, 1, kParams, apart));
  for (int cluster = 0; cluster < 4; ++cluster) {
    EXPECT_EQ(Busy(other, isa::Unit::kIoDma, cluster, 0), 32 + 1 + 20 + 200 + 64 + 8);
  }
}

TEST(IoDma, LoadIntoSmemPassesItsPort) {
  const isa::Machine machine = FlatMachine();
  const RunResult result = RunOn(machine, OnCore0(kParams, Copy(false, 512, 1, 0, 0, "smem")));
  EXPECT_EQ(Busy(result, isa::Unit::kIoDma), 32 + 1 + 20 + 200 + 4 + 8 + 2);
  EXPECT_EQ(PortOf(result, "cluster0.smem").moved, 512);
  // And back: SMEM's port, the core's, the link, the channel.
  const RunResult back =
      RunOn(machine, OnCore0(kParams, absl::StrCat(Copy(false, 512, 1, 0, 0, "smem"),
                                                   "  sync\n"
                                                   "  memcpy.i8.gmem.smem r10, "
                                                   "r0, r11, r1, r0, r0\n")));
  EXPECT_EQ(Busy(back, isa::Unit::kIoDma) - Busy(result, isa::Unit::kIoDma),
            32 + 1 + 2 + 8 + 4 + 200 + 20);
}

// Cycles of the last of several copies, each after the one before has completed.
int64_t LastCycles(const isa::Machine& machine, const std::vector<std::string>& copies) {
  // Stores need something to store.
  std::string body = "  li r20, 65536\n  fill.i8 r0, r0, r20\n  sync\n";
  const auto busy = [&] { return Busy(RunOn(machine, OnCore0(kParams, body)), isa::Unit::kIoDma); };
  for (size_t i = 0; i + 1 < copies.size(); ++i) body += copies[i];
  const int64_t before = busy();
  body += copies.back();
  return busy() - before;
}

TEST(IoDma, LoadFromTheCache) {
  const isa::Machine machine = FlatMachine();
  const auto again = [&](int64_t count, int64_t offset = 0) {
    const std::string copy = Copy(false, count, 1, 0, offset);
    return LastCycles(machine, {copy, copy});
  };
  // start + request + cache + its latency + link + port
  EXPECT_EQ(again(512), 32 + 1 + 4 + 100 + 4 + 8);
  EXPECT_EQ(again(1), 32 + 1 + 1 + 100 + 1 + 1);
  EXPECT_EQ(again(65), 32 + 1 + 1 + 100 + 1 + 2);   // two granules
  EXPECT_EQ(again(129), 32 + 1 + 2 + 100 + 2 + 3);  // three
  // The port is slower than the cache.
  for (int64_t bursts : {2, 17, 32}) {
    EXPECT_EQ(again(512 * bursts), 32 + 1 + 4 + 100 + 4 + 8 * bursts) << bursts;
  }
  // A slow cache: burst by burst.
  const isa::Machine slow = FlatMachine({"gmem.cache_bytes=32", "gmem.cache_latency=7"});
  const std::string copy = Copy(false, 512 * 5);
  EXPECT_EQ(LastCycles(slow, {copy, copy}), 32 + 1 + 5 * 16 + 7 + 4 + 8);
  // Without one: from the channel.
  const isa::Machine none = FlatMachine({"gmem.cache_kib=0"});
  EXPECT_EQ(LastCycles(none, {copy, copy}), LoadCycles(none, 512 * 5));
}

TEST(IoDma, TheCacheHoldsWhatWasReadAndNotWrittenSince) {
  const isa::Machine machine = FlatMachine();
  const int64_t hit = 32 + 1 + 4 + 100 + 4 + 8;
  const int64_t miss = 32 + 1 + 20 + 200 + 4 + 8;
  const std::string load = Copy(false, 512);
  EXPECT_EQ(LastCycles(machine, {load, load}), hit);
  // If part of the burst was never read, or was written, the channel moves all of it.
  EXPECT_EQ(LastCycles(machine, {Copy(false, 448), load}), miss);
  EXPECT_EQ(LastCycles(machine, {load, Copy(true, 1, 1, 0, 300), load}), miss);
  EXPECT_EQ(LastCycles(machine, {load, Copy(true, 1, 1, 0, 300), load, load}), hit);
  EXPECT_EQ(LastCycles(machine, {load, Copy(true, 1, 1, 0, 512), load}), hit);
  // The cache does not keep what a store writes.
  EXPECT_EQ(LastCycles(machine, {Copy(true, 512), load}), miss);
  // A channel's slice has two lines; the one used longest ago makes room.
  const isa::Machine small = FlatMachine({"gmem.cache_kib=4"});
  const std::string second = Copy(false, 512, 1, 0, 512), third = Copy(false, 512, 1, 0, 1024);
  EXPECT_EQ(LastCycles(small, {load, second, load}), hit);
  EXPECT_EQ(LastCycles(small, {load, second, third, load}), miss);
  EXPECT_EQ(LastCycles(small, {load, second, load, third, load}), hit);
  // Another channel's lines are no competition.
  EXPECT_EQ(LastCycles(small, {load, second, Copy(false, 512, 1, 0, kChunk), load}), hit);
}

TEST(IoDma, CoresThatLoadTheSameBytesPayTheChannelOnce) {
  const isa::Machine machine = FlatMachine();
  const RunResult result = RunOn(machine, OnCores(4, 4, kParams, Copy(false, 512)));
  std::vector<int64_t> times, expected;
  for (int cluster = 0; cluster < 4; ++cluster) {
    for (int core = 0; core < 4; ++core) {
      times.push_back(Busy(result, isa::Unit::kIoDma, cluster, core));
      // No core gets the data before the fetch has completed.
      expected.push_back(32 + 1 + 20 + 200 + 4 * static_cast<int64_t>(expected.size()) + 4 + 8);
    }
  }
  EXPECT_EQ(times, expected);
  EXPECT_EQ(result.gmem_read, 16 * 512);
  EXPECT_EQ(result.gmem_read_moved, 512);
  EXPECT_EQ(result.gmem_read_cached, 15 * 512);
  EXPECT_EQ(PortOf(result, "gmem.channel0").moved, 512);
  EXPECT_EQ(PortOf(result, "gmem.cache0").moved, 15 * 512);
  EXPECT_EQ(PortOf(result, "gmem.cache0").bursts, 15);
  // Each cluster reads 256 KiB, as fast as one cluster alone: its link or port is the limit.
  const std::string more = Copy(false, 256 << 10);
  const int64_t alone = RunOn(machine, OnCores(1, 1, kParams, more)).cycles;
  const RunResult all = RunOn(machine, OnCores(4, 1, kParams, more));
  EXPECT_LT(all.cycles, alone * 11 / 10);
  EXPECT_EQ(all.gmem_read_moved, 256 << 10);
}

TEST(IoDma, CountsWhatGranulesWaste) {
  const isa::Machine machine = FlatMachine();
  const RunResult result = RunOn(machine, OnCore0(kParams, Copy(false, 2, 10, 128)));
  EXPECT_EQ(result.gmem_read, 20);
  EXPECT_EQ(result.gmem_read_moved, 640);
  EXPECT_EQ(
      result.path_bytes[static_cast<int>(isa::Space::kGmem)][static_cast<int>(isa::Space::kNmem)],
      20);
  EXPECT_EQ(PortOf(result, "gmem.channel0").moved, 640);
  EXPECT_EQ(PortOf(result, "gmem.channel1").moved, 0);
}

}  // namespace
}  // namespace polynao::simulator
