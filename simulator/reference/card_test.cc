// The clocked model alone: closed forms of docs/timing.md, and what it refuses.

#include "simulator/reference/card.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/program.h"
#include "testing/machine.h"

namespace polynao::simulator::reference {
namespace {

// All cores halt at once but core 0 of cluster 0, which runs `body`; the tensor is at r7, r0 is 0, r1 is 1.
absl::StatusOr<Report> OnCore0(const isa::Machine& machine, const std::string& body) {
  const auto program = isa::Assemble(
      isa::DianNao(),
      absl::StrCat(".program test\n.tensor x i8 any inout\n  li r1, 1\n  arg r2, 0\n  arg r3, 1\n"
                   "  add r2, r2, r3\n  bne r2, r0, end\n  arg r7, 8\n",
                   body, "end:\n  halt\n"),
      "test.nasm");
  EXPECT_TRUE(program.ok()) << program.status();
  return Run(isa::DianNao(), *program, {{.bytes = 1 << 16}}, machine, 100'000);
}

// Cycles of the one instruction of a unit.
int64_t Busy(const isa::Machine& machine, const std::string& body, isa::Unit unit) {
  const absl::StatusOr<Report> report = OnCore0(machine, body);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? report->cores[0].units[static_cast<size_t>(unit)].busy : -1;
}

TEST(CardTest, ATransferTakesTheCyclesOfItsClosedForm) {
  const isa::Machine machine = FlatMachine();
  const auto load = [&](int bytes) {
    return Busy(
        machine,
        absl::StrCat("  li r10, ", bytes, "\n  memcpy.i8.nmem.gmem r0, r7, r10, r1, r0, r0\n"),
        isa::Unit::kIoDma);
  };
  EXPECT_EQ(load(0), 32);
  EXPECT_EQ(load(512), 32 + 1 + 20 + 200 + 4 + 8);
  EXPECT_EQ(load(32 * 512), 885);
  EXPECT_EQ(Busy(machine, "  li r10, 2\n  memcpy.i8.gmem.nmem r7, r0, r10, r1, r0, r0\n",
                 isa::Unit::kIoDma),
            32 + 1 + 1 + 200 + 5);
  EXPECT_EQ(Busy(machine, "  li r10, 1024\n  memcpy.i8.nmem.smem r0, r0, r10, r1, r0, r0\n",
                 isa::Unit::kMoveDma),
            32 + 1 + 4 + 40 + 16);
}

TEST(CardTest, QueuesAndSyncsTakeTheCyclesOfTheirClosedForms) {
  const isa::Machine machine = FlatMachine();
  const auto report =
      OnCore0(machine, "  li r10, 64\n  fill.f16 r0, r0, r10\n  fill.f16 r0, r0, r10\n  sync\n");
  ASSERT_TRUE(report.ok()) << report.status();
  // Issued in cycle 14; each takes 17.
  EXPECT_EQ(report->cores[0].sync_wait, 15 + 2 * 17 - 16 + 8);
  EXPECT_EQ(report->cores[0].halted_at, 15 + 2 * 17 + 8 + 2);
  EXPECT_EQ(report->end_cycle, report->cores[0].halted_at);
}

TEST(CardTest, AccessesOfTheScalarUnitTakeTheWayThere) {
  const isa::Machine machine = FlatMachine();
  const auto cycles = [&](const char* instruction) {
    const int64_t none = Busy(machine, "", isa::Unit::kScalar);
    return Busy(machine, absl::StrCat("  ", instruction, "\n"), isa::Unit::kScalar) - none;
  };
  EXPECT_EQ(cycles("store.i32.nmem r0, r1"), 20);
  EXPECT_EQ(cycles("load.i32.smem r5, r0"), 61);
  EXPECT_EQ(cycles("load.i32.gmem r5, r7"), 224);
  EXPECT_EQ(cycles("store.i32.gmem r7, r1"), 226);
}

TEST(CardTest, APortTouchesALineOfNmemInACycle) {
  // 256 runs of two bytes each, 128 bytes apart.
  EXPECT_EQ(Busy(FlatMachine(),
                 "  li r10, 2\n  li r11, 256\n  li r12, 128\n"
                 "  memcpy.i8.nmem.gmem r0, r7, r10, r11, r12, r10\n",
                 isa::Unit::kIoDma),
            32 + 1 + 20 + 200 + 4 + 256);
}

TEST(CardTest, TransfersSideBySide) {
  const auto two_loads = [](const char* transfers) {
    return Busy(FlatMachine({absl::StrCat("io_dma.transfers=", transfers)}),
                "  li r10, 512\n  li r11, 1024\n  addi r12, r7, 16384\n"
                "  memcpy.i8.nmem.gmem.async r0, r7, r10, r1, r0, r0\n"
                "  memcpy.i8.nmem.gmem.async r11, r12, r10, r1, r0, r0\n",
                isa::Unit::kIoDma);
  };
  EXPECT_EQ(two_loads("1"), 2 * 265);
  EXPECT_EQ(two_loads("2"), 273);
}

TEST(CardTest, AMemoryWithOnePort) {
  const auto matmul = [](const char* override) {
    return Busy(FlatMachine({override}),
                "  li r10, 4096\n  li r11, 1024\n  li r12, 64\n  li r13, 128\n  li r14, 262144\n"
                "  memcpy.i8.wmem.gmem.async r0, r7, r10, r1, r0, r0\n"
                "  matmul.i8 r0, r14, r0, r11, r12, r12, r12, r13\n",
                isa::Unit::kTensor);
  };
  EXPECT_EQ(matmul("core.nmem_ports=1"), 1088);
  EXPECT_EQ(matmul("core.wmem_ports=1"), 1088 + 4096 / 64);
}

TEST(CardTest, RegistersCanBeReadLater) {
  const auto wait = [](const char* body) {
    const auto report = OnCore0(TestMachine("unit", {"scalar.dependent=5"}), body);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? report->cores[0].dependent_wait : -1;
  };
  const int64_t before = wait("");
  EXPECT_EQ(wait("  li r5, 7\n  add r6, r5, r1\n"), before + 5);
  EXPECT_EQ(wait("  li r5, 7\n  li r8, 7\n  add r6, r5, r1\n"), before + 3);
  EXPECT_EQ(wait("  load.i32.smem r5, r0\n  store.i32.smem r0, r5\n"), before + 5);
}

TEST(CardTest, SegmentsOfStoresOfACluster) {
  // Both in a channel of their own; the second one's segment goes past the link when the first one has completed.
  const auto end = [](int64_t segments) {
    const auto program = isa::Assemble(
        isa::DianNao(),
        ".program test\n.tensor x i8 any inout\n  arg r2, 0\n  arg r3, 1\n  arg r7, 8\n"
        "  li r1, 1\n  li r4, 1\n  li r10, 512\n  muli r5, r2, 16384\n  add r7, r7, r5\n"
        "  bne r3, r0, end\n  blt r4, r2, end\n"
        "  memcpy.i8.gmem.nmem r7, r0, r10, r1, r0, r0\nend:\n  halt\n",
        "test.nasm");
    EXPECT_TRUE(program.ok()) << program.status();
    const auto report =
        reference::Run(isa::DianNao(), *program, {{.bytes = 1 << 16}},
                       FlatMachine({absl::StrCat("cluster.store_segments=", segments)}), 100'000);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? report->cycles : -1;
  };
  const int64_t one = 4 + 200 + 20;
  EXPECT_EQ(end(1) - end(0), one - 4);
  EXPECT_EQ(end(2), end(0));
}

TEST(CardTest, RefusesWhatMemoryDecides) {
  const isa::Machine machine = TestMachine("unit");
  const auto error = [&](const char* body) {
    const absl::Status status = OnCore0(machine, body).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(
      error("  load.i64.nmem r5, r0\n  fill.f16 r0, r0, r5\n"),
      testing::HasSubstr("cluster 0 core 0 pc 7 cycle 22: expected a known count, found r5, "
                         "which depends on what memory holds"));
  EXPECT_THAT(error("  load.i64.nmem r5, r0\n  add r6, r5, r1\n  load.i64.nmem r5, r6\n"),
              testing::HasSubstr("expected a known src, found r6"));
  EXPECT_THAT(error("  load.i64.nmem r5, r0\n  beq r5, r0, end\n"),
              testing::HasSubstr("expected a known lhs, found r5"));
  // A value that decides nothing, and a register that is known again.
  EXPECT_TRUE(OnCore0(machine,
                      "  load.f16.nmem r5, r0\n  li r6, 64\n  adds.f16 r0, r0, r5, r6\n"
                      "  div r5, r1, r5\n  li r5, 64\n  fill.f16 r0, r0, r5\n")
                  .ok());
}

TEST(CardTest, RefusesWhatNoCoreCanExecute) {
  const isa::Machine machine = TestMachine("unit");
  const auto error = [&](const char* body) {
    return std::string(OnCore0(machine, body).status().message());
  };
  EXPECT_THAT(error("  li r5, 3\n  fill.f16 r0, r0, r5\n"), testing::HasSubstr("count % 64"));
  EXPECT_THAT(error("  barrier.cluster\n"), testing::HasSubstr("deadlock"));
  EXPECT_THAT(error("  li r5, 999\n  jump_register r5\n"),
              testing::HasSubstr("found the end of the program"));
  const auto program =
      isa::Assemble(isa::DianNao(), ".program p\n.tensor x i8 any in\n  halt\n", "p");
  EXPECT_THAT(std::string(reference::Run(isa::DianNao(), *program, {}, machine).status().message()),
              testing::HasSubstr("expected an argument for x, found 0 arguments"));
  EXPECT_EQ(OnCore0(machine, "again:\n  jump again\n").status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace polynao::simulator::reference
