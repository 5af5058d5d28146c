// What both DMA engines do alike: transfers side by side, lines of the core's memory. And how many segments of stores
// a cluster has in flight. Against the closed forms of docs/timing.md.

#include "simulator/dma.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/testing.h"

namespace polynao::simulator {
namespace {

constexpr int64_t kChunk = 16384;  // mlu270: consecutive bytes on one channel

RunResult RunOn(const isa::Machine& machine, const isa::Program& program) {
  ir::Tensor x(ir::Type::kI8, {1 << 20});
  const auto result = RunProgram(machine, program, {Argument::Of(&x)});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : RunResult();
}

RunResult RunBody(const isa::Machine& machine, std::string_view body) {
  return RunOn(machine, OnCore0(".tensor x i8 any inout", body));
}

// Loads 512 bytes to NMEM byte `to`, in pieces of `piece` bytes that start `pitch` bytes apart there.
int64_t ScatterCycles(const isa::Machine& machine, int64_t to, int64_t piece, int64_t pitch) {
  return Busy(
      RunBody(machine, absl::StrCat("  arg r10, 8\n  li r9, ", to, "\n  li r11, ", piece,
                                    "\n  li r12, ", 512 / piece, "\n  li r13, ", pitch,
                                    "\n  memcpy.i8.nmem.gmem r9, r10, r11, r12, r13, r11\n")),
      isa::Unit::kIoDma);
}

TEST(Dma, APortTouchesALineACycle) {
  const isa::Machine machine = FlatMachine();
  constexpr int64_t kBefore = 32 + 1 + 20 + 200 + 4;  // the port
  EXPECT_EQ(ScatterCycles(machine, 0, 512, 512), kBefore + 8);
  // Off the lines' boundaries: one more.
  EXPECT_EQ(ScatterCycles(machine, 32, 512, 512), kBefore + 9);
  EXPECT_EQ(ScatterCycles(machine, 0, 2, 64), kBefore + 256);
  EXPECT_EQ(ScatterCycles(machine, 0, 2, 4), kBefore + 256);     // 16 of them in each line
  EXPECT_EQ(ScatterCycles(machine, 63, 2, 128), kBefore + 512);  // each across a boundary
  EXPECT_EQ(ScatterCycles(machine, 0, 64, 128), kBefore + 8);
  EXPECT_EQ(ScatterCycles(FlatMachine({"core.nmem_line=0"}), 63, 2, 128), kBefore + 8);
  EXPECT_EQ(ScatterCycles(FlatMachine({"core.nmem_line=32"}), 0, 512, 512), kBefore + 16);
}

TEST(Dma, AMoveTouchesALineACycleToo) {
  const isa::Machine machine = FlatMachine();
  const RunResult result = RunBody(machine,
                                   "  li r11, 2\n  li r12, 128\n  li r13, 64\n  li r14, 256\n"
                                   "  fill.i8 r0, r0, r14\n  sync\n"
                                   "  memcpy.i8.smem.nmem r0, r0, r14, r1, r0, r0\n"
                                   "  memcpy.i8.nmem.smem r0, r0, r11, r12, r13, r11\n");
  // Out: start, port, latency, SMEM; in: start, request, SMEM, latency, 128 lines.
  EXPECT_EQ(Busy(result, isa::Unit::kMoveDma), (32 + 4 + 40 + 1) + (32 + 1 + 1 + 40 + 128));
}

// Two loads of 512 bytes of two channels, each instruction issued in a cycle, to NMEM bytes 0 and `second`.
int64_t TwoLoads(const isa::Machine& machine, int64_t second, std::string_view memory = "nmem") {
  return Busy(
      RunBody(machine,
              absl::StrCat("  arg r10, 8\n  addi r14, r10, ", kChunk, "\n  li r11, 512\n  li r15, ",
                           second, "\n  memcpy.i8.nmem.gmem.async r0, r10, r11, r1, r0, r0\n",
                           "  memcpy.i8.", std::string(memory),
                           ".gmem.async r15, r14, r11, r1, r0, r0\n  sync\n")),
      isa::Unit::kIoDma);
}

TEST(Dma, TransfersSideBySide) {
  const isa::Machine one = FlatMachine();
  EXPECT_EQ(TwoLoads(one, 512), 2 * 265);
  const isa::Machine two = FlatMachine({"io_dma.transfers=2"});
  // The second starts a cycle later, and waits at the port for the first one's 8 cycles.
  EXPECT_EQ(TwoLoads(two, 512), 265 + 8);
  // The same bytes are written: one after the other.
  EXPECT_EQ(TwoLoads(two, 0), 2 * 265);
  EXPECT_EQ(TwoLoads(two, 511), 2 * 265 + 1);  // and a line more
  EXPECT_EQ(TwoLoads(two, 512, "wmem"), 265 + 8);
  // Not the same way: SMEM's port comes behind the core's.
  EXPECT_EQ(TwoLoads(two, 512, "smem"), 265 + 265 + 2);
}

TEST(Dma, ALoadBesideAStore) {
  const auto cycles = [](std::string_view transfers, int64_t load_from) {
    const isa::Machine machine =
        FlatMachine({absl::StrCat("io_dma.transfers=", std::string(transfers))});
    return Busy(
        RunBody(machine, absl::StrCat("  arg r10, 8\n  addi r14, r10, ", load_from,
                                      "\n  li r11, 512\n  li r15, 512\n"
                                      "  fill.i8 r0, r0, r11\n  sync\n"
                                      "  memcpy.i8.gmem.nmem.async r10, r0, r11, r1, r0, r0\n"
                                      "  memcpy.i8.nmem.gmem.async r15, r14, r11, r1, r0, r0\n"
                                      "  sync\n")),
        isa::Unit::kIoDma);
  };
  EXPECT_EQ(cycles("1", kChunk), 264 + 265);
  EXPECT_EQ(cycles("2", kChunk), 1 + 265);
  // The load reads what the store writes.
  EXPECT_EQ(cycles("2", 0), 264 + 265);
  EXPECT_EQ(cycles("2", 511), 264 + 265 + 3);  // and a granule of the next burst
}

TEST(Dma, TransfersCompleteInOrder) {
  // The second transfer is empty, and done before the first one; both count as one stretch of time.
  const isa::Machine machine = FlatMachine({"io_dma.transfers=2"});
  const RunResult result = RunBody(machine,
                                   "  arg r10, 8\n  li r11, 512\n"
                                   "  memcpy.i8.nmem.gmem.async r0, r10, r11, r1, r0, r0\n"
                                   "  memcpy.i8.nmem.gmem.async r0, r10, r0, r1, r0, r0\n"
                                   "  sync\n");
  EXPECT_EQ(Busy(result, isa::Unit::kIoDma), 265);
}

TEST(Dma, SegmentsOfStoresOfACluster) {
  // Four cores store 512 bytes each, to four channels, and take turns at the link: 4 cycles.
  const auto ends = [](int64_t segments) {
    const isa::Machine machine = FlatMachine({absl::StrCat("cluster.store_segments=", segments)});
    const RunResult result =
        RunOn(machine, OnCores(1, 4, ".tensor x i8 any inout",
                               absl::StrCat("  arg r10, 8\n  li r11, 512\n  muli r14, r2, ", kChunk,
                                            "\n  add r10, r10, r14\n  fill.i8 r0, r0, r11\n  sync\n"
                                            "  memcpy.i8.gmem.nmem r10, r0, r11, r1, r0, r0\n")));
    std::vector<int64_t> cycles;
    for (int core = 0; core < 4; ++core) {
      cycles.push_back(Busy(result, isa::Unit::kIoDma, 0, core));
    }
    return cycles;
  };
  constexpr int64_t kStore = 264, kFromLink = 224;
  using testing::ElementsAre;
  EXPECT_THAT(ends(0), ElementsAre(kStore, kStore + 4, kStore + 8, kStore + 12));
  EXPECT_THAT(ends(4), ElementsAre(kStore, kStore + 4, kStore + 8, kStore + 12));
  EXPECT_THAT(ends(2), ElementsAre(kStore, kStore + 4, kStore + kFromLink, kStore + kFromLink + 4));
  EXPECT_THAT(ends(1), ElementsAre(kStore, kStore + kFromLink, kStore + 2 * kFromLink,
                                   kStore + 3 * kFromLink));
}

TEST(Dma, OneLongStoreIsOneSegment) {
  const auto cycles = [](int64_t segments) {
    return Busy(RunBody(FlatMachine({absl::StrCat("cluster.store_segments=", segments)}),
                        "  arg r10, 8\n  li r11, 16384\n  fill.i8 r0, r0, r11\n  sync\n"
                        "  memcpy.i8.gmem.nmem r10, r0, r11, r1, r0, r0\n"),
                isa::Unit::kIoDma);
  };
  EXPECT_EQ(cycles(1), 32 + 8 + 4 + 200 + 32 * 20);
  EXPECT_EQ(cycles(0), cycles(1));
}

}  // namespace
}  // namespace polynao::simulator
