#include "compiler/passes/pipeline.h"

#include "base/text.h"
#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<bool> OnUnit(ir::Function& f) { return Pipeline(f, TestTarget("unit")); }
std::string After(std::string_view text) { return RunPass(text, OnUnit, TestTarget("unit")); }

// n tiles of 64 elements, doubled.
std::string Program(int n, std::string_view extra = "") {
  return StrCat(
      "func f(A: f16[2000] in, C: f16[2000] out) { for (t, 0, ", n,
      ") { pragma \"double_buffer\" { allocate X: f16[64] @nmem allocate Y: f16[64] @nmem",
      " memcpy.f16.nmem.gmem.async(&X[0], &A[t * 64], 64, 1, 0, 0)", extra,
      " add.f16(&Y[0], &X[0], &X[0], 64)",
      " memcpy.f16.gmem.nmem.async(&C[t * 64], &Y[0], 64, 1, 0, 0) } } }");
}

std::string Reason(std::string_view text) {
  ir::Function f = ParseOrDie(text);
  std::vector<PipelineDecision> decisions;
  const absl::StatusOr<bool> changed = Pipeline(f, TestTarget("unit"), &decisions);
  EXPECT_TRUE(changed.ok() && !*changed);
  EXPECT_EQ(decisions.size(), 1u);
  return decisions.empty() ? "" : decisions[0].reason;
}

TEST(PipelineTest, TwoIterations) {
  EXPECT_EQ(After(Program(2)),
            "func f(A: f16[2000] in, C: f16[2000] out) {\n"
            "  allocate X.0: f16[64] @nmem\n"
            "  allocate X.1: f16[64] @nmem\n"
            "  allocate Y.0: f16[64] @nmem\n"
            "  allocate Y.1: f16[64] @nmem\n"
            "  memcpy.f16.nmem.gmem.async(&X.0[0], &A[0 * 64], 64, 1, 0, 0)\n"
            "  sync()\n"
            "  memcpy.f16.nmem.gmem.async(&X.1[0], &A[(0 + 1) * 64], 64, 1, 0, 0)\n"
            "  add.f16(&Y.0[0], &X.0[0], &X.0[0], 64)\n"
            "  sync()\n"
            "  memcpy.f16.gmem.nmem.async(&C[0 * 64], &Y.0[0], 64, 1, 0, 0)\n"
            "  add.f16(&Y.1[0], &X.1[0], &X.1[0], 64)\n"
            "  sync()\n"
            "  memcpy.f16.gmem.nmem.async(&C[(0 + 1) * 64], &Y.1[0], 64, 1, 0, 0)\n"
            "}\n");
}

// Whatever the number of iterations, even or odd, unrolled or with a steady loop, the meaning stays
// (RunPass compares).
TEST(PipelineTest, EveryNumberOfIterations) {
  for (int n = 2; n <= 13; ++n) {
    SCOPED_TRACE(n);
    const std::string text = After(Program(n));
    EXPECT_THAT(text, HasSubstr("X.1"));
    EXPECT_EQ(text.find("for (") != std::string::npos, n > 4) << text;
  }
}

TEST(PipelineTest, InPlace) {
  EXPECT_THAT(After("func f(A: f16[2000] in, C: f16[2000] out) { for (t, 3, 7) {"
                    " pragma \"double_buffer\" { allocate X: f16[64] @nmem"
                    " memcpy.f16.nmem.gmem.async(&X[0], &A[t * 64], 64, 1, 0, 0)"
                    " relu.f16(&X[0], &X[0], 64)"
                    " memcpy.f16.gmem.nmem.async(&C[t * 64], &X[0], 64, 1, 0, 0) } } }"),
              HasSubstr("relu.f16(&X.1[0], &X.1[0], 64)"));
}

TEST(PipelineTest, WhatStaysAsItIsAndWhy) {
  EXPECT_THAT(Reason(Program(1)), HasSubstr("it has 1 iterations"));
  EXPECT_THAT(Reason(Program(3, " X[3] = 1.0")), HasSubstr("no queued instruction: X[3] = 1.0"));
  EXPECT_THAT(Reason(Program(3, " memcpy.f16.gmem.nmem.async(&C[t], &X[0], 1, 1, 0, 0)")),
              HasSubstr("add.f16 stands before a load, or behind a store"));
  EXPECT_THAT(Reason(Program(3, " sync()")), HasSubstr("no queued instruction: sync()"));
  std::string in_place = Program(3);
  while (in_place.find("&C") != std::string::npos) in_place.replace(in_place.find("&C"), 2, "&A");
  EXPECT_THAT(Reason(in_place), HasSubstr("'A' is loaded and stored"));
  std::string large = Program(3);
  while (large.find("f16[64] @nmem") != std::string::npos) {
    large.replace(large.find("f16[64] @nmem"), 13, "f16[4160] @nmem");
  }
  EXPECT_EQ(Reason(large), "two copies take 33280 bytes of nmem, which has 32768");
  // Without the pragma nobody asked.
  ir::Function f = ParseOrDie(
      "func f(A: f16[2000] in) { for (t, 0, 3) { allocate X: f16[64] @nmem"
      " memcpy.f16.nmem.gmem.async(&X[0], &A[t * 64], 64, 1, 0, 0) } }");
  EXPECT_FALSE(*Pipeline(f, TestTarget("unit")));
}

}  // namespace
}  // namespace polynao
