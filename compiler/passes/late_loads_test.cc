#include "compiler/passes/late_loads.h"

#include <string>

#include "base/text.h"
#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<bool> RunLate(ir::Function& f) {
  const ir::Stmt body = LoadLate(f.body, TestTarget());
  const bool changed = body != f.body;
  f.body = body;
  return changed;
}

// One core multiplies a row of A by W, then the sums by V.
std::string After(std::string_view body) {
  return RunPass(
      StrCat("func f(A: f16[64] in, B: f32[128] in, F: f16[4096] in, C: f32[64]) { thread "
             "(cid, 1) { thread (tid, 1) { allocate X: f16[64] @nmem allocate V: f32[64] @nmem"
             " allocate U: f32[64] @nmem allocate S: f32[64] @nmem allocate W: f16[4096] @wmem"
             " memcpy.f16.nmem.gmem.async(&X[0], &A[0], 64, 1, 0, 0) ",
             body, " memcpy.f32.gmem.nmem.async(&C[0], &S[0], 64, 1, 0, 0) } } }"),
      RunLate, TestTarget());
}
constexpr std::string_view kLoadV = "memcpy.f32.nmem.gmem.async(&V[0], &B[0], 64, 1, 0, 0) ";
constexpr std::string_view kLoadU = "memcpy.f32.nmem.gmem.async(&U[0], &B[64], 64, 1, 0, 0) ";
constexpr std::string_view kLoadW =
    "memcpy.f16.wmem.gmem.async(&W[0], &F[tid * 4096], 4096, 1, 0, 0) ";
constexpr std::string_view kSums = "matmul.f16(&S[0], &X[0], &W[0], 1, 64, 64, 64, 64) ";
constexpr std::string_view kByV = "mul.f32(&S[0], &S[0], &V[0], 64) ";
constexpr std::string_view kAddU = "add.f32(&S[0], &S[0], &U[0], 64) ";

TEST(LateLoadsTest, WhatIsNeededLaterComesLater) {
  EXPECT_THAT(After(StrCat(kLoadV, "allocate T: f16[64] @nmem ", kLoadW, kSums, kByV)),
              HasSubstr(R"(
      memcpy.f16.nmem.gmem.async(&X[0], &A[0], 64, 1, 0, 0)
      allocate T: f16[64] @nmem
      memcpy.f16.wmem.gmem.async(&W[0], &F[tid * 4096], 4096, 1, 0, 0)
      matmul.f16(&S[0], &X[0], &W[0], 1, 64, 64, 64, 64)
      memcpy.f32.nmem.gmem.async(&V[0], &B[0], 64, 1, 0, 0)
      mul.f32(&S[0], &S[0], &V[0], 64)
)"));
}

TEST(LateLoadsTest, WhatStays) {
  const auto stays = [](const std::string& body) {
    const std::string after = After(body);
    return after.find("(&V[0], &") < after.find("(&W[0], &F");
  };
  EXPECT_FALSE(stays(StrCat(kLoadV, kLoadW, kSums, kByV)));
  // Nothing is needed sooner.
  EXPECT_TRUE(stays(StrCat(kLoadV, "fill.f32(&S[0], 0.0, 64) ", kByV, kLoadW)));
  // What is computed meanwhile is short.
  EXPECT_TRUE(stays(StrCat(kLoadV, kLoadU, kLoadW, "fill.f32(&S[0], 0.0, 64) ", kAddU, kByV)));
  // It is read at once.
  EXPECT_TRUE(stays(StrCat(kLoadV, "mul.f32(&V[0], &V[0], &V[0], 64) ", kLoadW, kSums, kByV)));
  // The rest of what it fills is filled behind it.
  EXPECT_TRUE(stays(StrCat(kLoadV, "fill.f32(&V[32], 0.0, 32) ", kLoadW, kSums, kByV)));
  // The reader would wait for what is loaded for later.
  EXPECT_TRUE(stays(StrCat(kLoadV, kLoadW, kSums, kLoadU, kByV, kAddU)));
  // In an if.
  EXPECT_TRUE(stays(StrCat("if (tid < 1) { ", kLoadV, "} ", kLoadW, kSums, kByV)));
  // Someone writes what it reads.
  EXPECT_TRUE(
      stays(StrCat("memcpy.f32.nmem.gmem.async(&V[0], &C[0], 64, 1, 0, 0) ", kLoadW, kSums, kByV)));
}

}  // namespace
}  // namespace polynao
