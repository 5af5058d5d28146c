#include "isa/check/check.h"

#include "base/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/program.h"
#include "testing/machine.h"

namespace polynao::isa {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Kind = ProgramFinding::Kind;

Program Assembled(std::string_view text) {
  auto program = Assemble(DianNao(), text, "test.nasm");
  POLYNAO_CHECK(program.ok()) << program.status();
  return *std::move(program);
}

// Of `body` on core 0 of cluster 0; all others halt. r0 is 0, r1 is 1.
std::vector<ProgramFinding> OnCore0(const std::string& body, const std::string& params = "",
                                    const CheckedArguments& arguments = {}) {
  const Program program = Assembled(params +
                                    "\n  li r0, 0\n  li r1, 1\n  arg r2, 0\n  bne r2, r0, end\n"
                                    "  arg r2, 1\n  bne r2, r0, end\n" +
                                    body + "\nend:\n  halt\n");
  return CheckProgram(DianNao(), program, TestMachine("mlu270"), arguments).findings;
}

std::vector<ProgramFinding> OnAll(const std::string& text) {
  return CheckProgram(DianNao(), Assembled(text), TestMachine("mlu270")).findings;
}

std::string Only(const std::vector<ProgramFinding>& findings, Kind kind) {
  if (findings.size() != 1) return "findings: " + std::to_string(findings.size());
  return findings[0].kind == kind ? findings[0].text : "another kind: " + findings[0].text;
}

constexpr char kFill[] = "  li r5, 64\n  fill.f16 r0, r0, r5\n";
constexpr char kMove[] = "  memcpy.f16.smem.nmem.async r0, r0, r5, r1, r0, r0\n";

TEST(CheckProgram, HazardsBetweenQueues) {
  EXPECT_THAT(Only(OnCore0(std::string(kFill) + kMove), Kind::kHazard),
              HasSubstr("core 0 of cluster 0 pc 8 \"memcpy.f16.smem.nmem.async r0, r0, r5, r1, r0, "
                        "r0\": hazard: reads byte 0 of NMEM, which pc 7 \"fill.f16 r0, r0, "
                        "r5\" writes, and no sync of the compute queue lies between"));
  EXPECT_THAT(OnCore0(std::string(kFill) + "  sync.compute\n" + kMove), SizeIs(0));
  EXPECT_THAT(OnCore0(std::string(kFill) + "  sync.io\n" + kMove), SizeIs(1));
  // Bytes beside are no hazard; write after read is; the scalar unit counts.
  EXPECT_THAT(OnCore0(std::string(kFill) + "  li r6, 128\n  load.f16.nmem r7, r6\n"), SizeIs(0));
  EXPECT_THAT(OnCore0(std::string(kFill) + "  load.f16.nmem r7, r0\n"), SizeIs(1));
  EXPECT_THAT(OnCore0(std::string(kFill) + "  sync\n" + kMove + "  fill.f16 r0, r0, r5\n"),
              SizeIs(1));
  // An instruction that waits has completed.
  EXPECT_THAT(OnCore0(std::string(kFill) + "  sync\n  memcpy.f16.smem.nmem r0, r0, r5, r1, r0, r0\n"
                                           "  fill.f16 r0, r0, r5\n"),
              SizeIs(0));
}

TEST(CheckProgram, LoopsWithTwoBuffers) {
  // A buffer is filled while the other one leaves; with one buffer, or without the wait, that is a hazard.
  const auto loop = [](std::string_view step, std::string_view wait) {
    return "  li r5, 64\n  li r9, 1000\n  li r10, 0\n  li r11, " + std::string(step) +
           "\nagain:\n  fill.f16 r10, r0, r5\n" + std::string(wait) +
           "  memcpy.f16.smem.nmem.async r0, r10, r5, r1, r0, r0\n"
           "  mov r12, r10\n  mov r10, r11\n  mov r11, r12\n"
           "  addi r9, r9, -1\n  bne r9, r0, again\n";
  };
  EXPECT_THAT(OnCore0(loop("128", "  sync\n")), SizeIs(0));
  EXPECT_THAT(OnCore0(loop("0", "  sync\n")), SizeIs(1));
  EXPECT_THAT(OnCore0(loop("128", "  sync.io\n")), SizeIs(1));
}

TEST(CheckProgram, HazardsBetweenCoresAndClusters) {
  const auto program = [](const std::string& ordering) {
    return "  li r0, 0\n  li r1, 1\n  li r5, 64\n  arg r2, 0\n  arg r3, 4\n"
           "  beq r3, r1, memory\n" +
           ordering +
           "  memcpy.f16.nmem.smem r0, r0, r5, r1, r0, r0\n  halt\n"
           "memory:\n  store.f16.smem r0, r0\n" +
           ordering + "  halt\n";
  };
  EXPECT_THAT(Only(OnAll(program("")), Kind::kHazard), HasSubstr("and no barrier lies between"));
  EXPECT_THAT(OnAll(program("  barrier.cluster\n")), SizeIs(0));
  const auto gmem = [](const std::string& ordering) {
    return ".tensor x i32 [64] inout\n  arg r0, 8\n  arg r1, 0\n  arg r2, 1\n  add r3, r1, r2\n"
           "  li r4, 0\n  bne r3, r4, others\n  store.i32.gmem r0, r1\nothers:\n" +
           ordering +
           "  bne r1, r4, end\n  beq r2, r4, end\n  load.i32.gmem r6, r0\nend:\n  halt\n";
  };
  EXPECT_THAT(OnAll(gmem("  barrier.global\n")), SizeIs(0));
  EXPECT_THAT(Only(OnAll(gmem("  barrier.cluster\n")), Kind::kHazard),
              HasSubstr("no barrier of the card lies between"));
}

TEST(CheckProgram, BarriersThatACoreMisses) {
  const auto program = [](std::string_view of_memory_core) {
    return "  arg r3, 4\n  li r0, 0\n  bne r3, r0, memory\n  barrier.cluster\n  barrier.global\n"
           "  halt\nmemory:\n" +
           std::string(of_memory_core) + "  halt\n";
  };
  EXPECT_THAT(OnAll(program("  barrier.cluster\n  barrier.global\n")), SizeIs(0));
  EXPECT_THAT(
      Only(OnAll(program("  barrier.cluster\n")), Kind::kBarrier),
      HasSubstr("core 0 of cluster 0 waits at pc 4 \"barrier.global\" for ever, its barrier "
                "number 2: the memory core of cluster 0 ends at pc 7 \"halt\" behind 1 "
                "barriers"));
  EXPECT_THAT(Only(OnAll(program("  barrier.global\n  barrier.cluster\n")), Kind::kBarrier),
              HasSubstr("waits at pc 3 \"barrier.cluster\" for ever"));
  // Clusters that come to different numbers of barriers of the card.
  EXPECT_THAT(Only(OnAll("  arg r1, 1\n  li r0, 0\n  bne r1, r0, end\n  barrier.global\nend:\n"
                         "  halt\n"),
                   Kind::kBarrier),
              HasSubstr("behind 0 barriers of the card"));
}

TEST(CheckProgram, WhatStopsARun) {
  EXPECT_THAT(Only(OnCore0("  li r5, -4\n  load.i32.nmem r6, r5\n"), Kind::kStop),
              HasSubstr("reads bytes -4 to 0 of nmem"));
  EXPECT_THAT(
      Only(OnCore0("  arg r5, 8\n  store.i32.gmem r5, r0\n", ".tensor x i32 [4] in"), Kind::kStop),
      HasSubstr("writes tensor x, which the program only reads"));
  EXPECT_THAT(Only(OnCore0("  arg r5, 8\n  addi r5, r5, 16\n  load.i32.gmem r6, r5\n",
                           ".tensor x i32 [4] in"),
                   Kind::kStop),
              HasSubstr("reads bytes 16 to 20 of tensor x, which has 16 bytes"));
  EXPECT_THAT(Only(OnCore0("  li r5, 63\n  fill.f16 r0, r0, r5\n"), Kind::kStop),
              HasSubstr("count % 64 == 0"));
  EXPECT_THAT(OnAll("  arg r1, 4\n  li r5, 64\n  li r0, 0\n  beq r1, r0, end\n"
                    "  fill.f16 r0, r0, r5\nend:\n  halt\n"),
              SizeIs(1));
}

TEST(CheckProgram, ValuesInMemoryAreLeftOpen) {
  const std::string load = "  arg r5, 8\n  load.i32.gmem r6, r5\n";
  const std::string params = ".tensor x i32 [64] in\n.tensor y i32 [64] out\n";
  // A branch whose ways do nothing but compute; a loop that ends by a value.
  EXPECT_THAT(OnCore0(load + "  beq r6, r0, skip\n  addi r6, r6, 1\nskip:\n  li r5, 64\n" + kFill +
                          "  sync\n" + kMove,
                      params),
              SizeIs(0));
  EXPECT_THAT(OnCore0(load + "again:\n  addi r6, r6, -1\n  bne r6, r0, again\n", params),
              SizeIs(0));
  // A way with a hazard; a wait on one way alone.
  EXPECT_THAT(
      Only(OnCore0(kFill + load + "  beq r6, r0, skip\n  li r5, 64\n" + kMove + "skip:\n", params),
           Kind::kUndecided),
      HasSubstr("perhaps, by values that are not known, a hazard: reads bytes of NMEM"));
  EXPECT_THAT(
      Only(OnCore0(kFill + load + "  beq r6, r0, skip\n  sync\nskip:\n  li r5, 64\n" + kMove,
                   params),
           Kind::kUndecided),
      HasSubstr("no sync of the compute queue"));
  // An address from memory: in one tensor, that nobody writes, or in one that is being written.
  const std::string look_up = "  muli r6, r6, 4\n  add r7, r5, r6\n  load.i32.gmem r8, r7\n";
  const std::string store =
      "  arg r9, 9\n  li r10, 64\n  memcpy.i32.gmem.nmem.async r9, r0, r10, r1, r0, r0\n";
  EXPECT_THAT(OnCore0(store + load + look_up, params), SizeIs(0));
  EXPECT_THAT(OnCore0(store + load + "  muli r6, r6, 4\n  add r7, r9, r6\n  load.i32.gmem r8, r7\n",
                      params),
              SizeIs(1));
  // A barrier that a value decides; a jump to a value.
  EXPECT_THAT(Only(OnCore0(load + "  beq r6, r0, skip\n  barrier.cluster\nskip:\n", params),
                   Kind::kUndecided),
              HasSubstr("whether the core comes here"));
  EXPECT_THAT(Only(OnCore0(load + "  jump_register r6\n", params), Kind::kUndecided),
              HasSubstr("where the program goes on"));
}

TEST(CheckProgram, ScalarsWithAndWithoutValues) {
  const std::string params = ".scalar n i64";
  const std::string body =
      "  arg r6, 8\n  blt r6, r1, skip\n" + std::string(kFill) + kMove + "skip:\n";
  EXPECT_EQ(Only(OnCore0(body, params, {.scalars = {0}}), Kind::kHazard), "findings: 0");
  EXPECT_THAT(OnCore0(body, params, {.scalars = {1}}), SizeIs(1));
  EXPECT_THAT(Only(OnCore0(body, params), Kind::kUndecided), HasSubstr("perhaps"));
}

TEST(CheckProgram, EndlessLoopsAreSaid) {
  const Program program = Assembled("again:\n  jump again\n");
  const ProgramCheck check = CheckProgram(DianNao(), program, TestMachine("mlu270"), {}, 1000);
  EXPECT_EQ(check.steps, 1000);
  ASSERT_FALSE(check.findings.empty());
  EXPECT_EQ(check.findings[0].kind, Kind::kUndecided);
  EXPECT_TRUE(check.ToStatus(program).ok());
}

}  // namespace
}  // namespace polynao::isa
