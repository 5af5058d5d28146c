// Cycles of Move-DMA transfers against the closed forms of docs/timing.md.

#include "simulator/move_dma.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/testing.h"

namespace polynao::simulator {
namespace {

RunResult RunOn(const isa::Machine& machine, const isa::Program& program) {
  const auto result = RunProgram(machine, program, {});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : RunResult();
}

// NMEM and SMEM filled; r11 = count, r12 = segments, r13 = stride.
std::string Prepared(int64_t count, int64_t segments, int64_t stride) {
  return absl::StrCat(
      "  li r20, 131072\n  fill.i8 r0, r0, r20\n  sync\n"
      "  memcpy.i8.smem.nmem r0, r0, r20, r1, r0, r0\n  sync\n  li r11, ",
      count, "\n  li r12, ", segments, "\n  li r13, ", stride, "\n");
}

// The busy cycles that `copy` adds to the Move-DMA.
int64_t Cycles(const isa::Machine& machine, std::string_view copy, int64_t count,
               int64_t segments = 1, int64_t stride = 0) {
  const std::string before = Prepared(count, segments, stride);
  const RunResult without = RunOn(machine, OnCore0("", before));
  const RunResult with =
      RunOn(machine, OnCore0("", absl::StrCat(before, "  ", std::string(copy), "\n")));
  return Busy(with, isa::Unit::kMoveDma) - Busy(without, isa::Unit::kMoveDma);
}

TEST(MoveDma, FromSmem) {
  const isa::Machine machine = FlatMachine();
  // start + request + SMEM + latency + the port, which is the bottleneck
  for (const char* copy : {"memcpy.i8.nmem.smem r0, r0, r11, r12, r11, r13",
                           "memcpy.i8.wmem.smem r0, r0, r11, r12, r11, r13"}) {
    for (int64_t bursts : {1, 2, 10}) {
      EXPECT_EQ(Cycles(machine, copy, 1024 * bursts), 32 + 1 + 4 + 40 + 16 * bursts);
    }
    EXPECT_EQ(Cycles(machine, copy, 1), 32 + 1 + 1 + 40 + 1);
    EXPECT_EQ(Cycles(machine, copy, 0), 32);
  }
}

TEST(MoveDma, ToSmem) {
  const isa::Machine machine = FlatMachine();
  const char* copy = "memcpy.i8.smem.nmem r0, r0, r11, r12, r13, r11";
  for (int64_t bursts : {1, 2, 10}) {
    EXPECT_EQ(Cycles(machine, copy, 1024 * bursts), 32 + 16 * bursts + 40 + 4);
  }
}

TEST(MoveDma, FromSmemToSmemPassesThePortTwice) {
  const isa::Machine machine = FlatMachine();
  const std::string copy = "li r15, 262144\n  memcpy.i8.smem.smem r15, r0, r11, r12, r13, r11";
  EXPECT_EQ(Cycles(machine, copy, 1024), 32 + 1 + 4 + 40 + 4);
}

TEST(MoveDma, SegmentsMoveWholeGranules) {
  const isa::Machine machine = FlatMachine();
  const char* copy = "memcpy.i8.nmem.smem r0, r0, r11, r12, r11, r13";
  const RunResult result = RunOn(machine, OnCore0("", Prepared(2, 10, 128) + "  " + copy + "\n"));
  EXPECT_EQ(PortOf(result, "cluster0.smem").moved, 131072 + 640);
  EXPECT_EQ(PortOf(result, "cluster0.core0.move").moved, 131072 + 20);
  // One a cycle, served in one cycle each.
  EXPECT_EQ(Cycles(machine, copy, 2, 10, 128), 32 + 9 + 1 + 1 + 40 + 1);
}

TEST(MoveDma, CoresOfAClusterShareSmem) {
  // An SMEM that takes 64 cycles a burst.
  const isa::Machine machine = FlatMachine({"smem.bytes=16"});
  const std::string fill =
      "  muli r14, r2, 1024\n  li r11, 1024\n  fill.i8 r0, r0, r11\n  sync\n"
      "  memcpy.i8.smem.nmem r14, r0, r11, r1, r0, r0\n";
  const RunResult result = RunOn(machine, OnCores(1, 4, "", fill));
  for (int core = 0; core < 4; ++core) {
    EXPECT_EQ(Busy(result, isa::Unit::kMoveDma, 0, core), 32 + 16 + 40 + 64 * (core + 1));
  }
  const RunResult apart = RunOn(machine, OnCores(4, 1, "", fill));
  for (int cluster = 0; cluster < 4; ++cluster) {
    EXPECT_EQ(Busy(apart, isa::Unit::kMoveDma, cluster, 0), 32 + 16 + 40 + 64);
  }
}

}  // namespace
}  // namespace polynao::simulator
