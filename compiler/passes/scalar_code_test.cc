#include "compiler/passes/scalar_code.h"

#include <string>

#include "base/text.h"
#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<bool> Skip(ir::Function& f) {
  const ir::Stmt body = DefineWhatScalarCodeReads(f.body, TestTarget());
  const bool changed = body != f.body;
  f.body = body;
  return changed;
}

// Five rows on six cores; `store` puts Y somewhere.
std::string Rows(std::string_view store, std::string_view work = "Y[i] = X[i] + i8(1)") {
  return RunPass(
      StrCat("func f(A: i8[320] in, B: i8[384] out) { thread (cid, 3) { thread (tid, 2) {"
             " allocate X: i8[64] @nmem allocate Y: i8[64] @nmem"
             " memcpy.i8.nmem.gmem.async(&X[0], &A[0], 64, 1, 0, 0)"
             " for (i, 0, 64) { ",
             work, " } ", store, " } } }"),
      Skip, TestTarget());
}
constexpr std::string_view kGuard = "if (cid * 2 + tid < 5) {\n        for (i, 0, 64) {";

TEST(ScalarCodeTest, ScalarCodeGoesUnderTheConditionOfAllStores) {
  constexpr std::string_view kStore =
      "if (cid * 2 + tid < 5) {"
      " memcpy.i8.gmem.nmem.async(&B[cid * 128 + tid * 64], &Y[0], 64, 1, 0, 0) }";
  EXPECT_THAT(Rows(kStore), HasSubstr(kGuard));
  // Others see what every core stores; or one store under another condition.
  EXPECT_THAT(Rows("memcpy.i8.gmem.nmem.async(&B[cid * 128 + tid * 64], &Y[0], 64, 1, 0, 0)"),
              Not(HasSubstr("if")));
  EXPECT_THAT(Rows(StrCat(kStore, " if (tid < 1) { B[cid] = Y[3] }")), Not(HasSubstr(kGuard)));
  // A nest that stores to GMEM itself.
  EXPECT_THAT(Rows(kStore, "B[cid * 128 + tid * 64 + i] = X[i]"), Not(HasSubstr(kGuard)));
  // A margin, of which a copy may read a part on every core.
  EXPECT_THAT(Rows(kStore, "Y[i] = i8(0)"), Not(HasSubstr(kGuard)));
  // The other side of a condition.
  EXPECT_THAT(Rows("if (cid * 2 + tid < 5) { } else {"
                   " memcpy.i8.gmem.nmem.async(&B[0], &Y[0], 64, 1, 0, 0) }"),
              Not(HasSubstr(kGuard)));
}

// What an idle core does not store is filled: a copy for a margin may read it on all cores.
TEST(ScalarCodeTest, WhatIdleCoresDoNotStoreIsFilled) {
  constexpr std::string_view kStore =
      "if (cid * 2 + tid < 5) {"
      " memcpy.i8.gmem.nmem.async(&B[cid * 128 + tid * 64], &Y[0], 64, 1, 0, 0) }";
  EXPECT_THAT(Rows(kStore), HasSubstr("&Y[0], i8(0)"));
  EXPECT_THAT(Rows("memcpy.i8.gmem.nmem.async(&B[cid * 128 + tid * 64], &Y[0], 64, 1, 0, 0)"),
              Not(HasSubstr("&Y[0], i8(0)")));
}

// What instructions compute X from that a nest reads, and nothing else: W is loaded, V copied from it in part.
TEST(ScalarCodeTest, WhatItIsComputedFromIsFilled) {
  const std::string text = RunPass(
      "func f(A: i8[128] in, B: i8[64] out) { thread (cid, 1) { thread (tid, 1) {"
      " allocate W: i8[64] @nmem allocate V: i8[64] @nmem allocate X: i8[64] @nmem"
      " allocate U: i8[64] @nmem allocate Y: i8[64] @nmem"
      " memcpy.i8.nmem.gmem.async(&W[0], &A[0], 50, 1, 0, 0)"
      " memcpy.i8.nmem.gmem.async(&U[0], &A[64], 50, 1, 0, 0)"
      " memcpy.i8.nmem.nmem.async(&V[0], &W[0], 50, 1, 0, 0)"
      " maxs.i8(&X[0], &V[0], i8(3), 64)"
      " for (i, 0, 64) { Y[i] = X[i] + i8(1) }"
      " add.i8(&U[0], &U[0], &Y[0], 64)"
      " memcpy.i8.gmem.nmem.async(&B[0], &U[0], 50, 1, 0, 0) } } }",
      Skip, TestTarget());
  for (const char* filled : {"&W[0], i8(0)", "&V[0], i8(0)", "&X[0], i8(0)"}) {
    EXPECT_THAT(text, HasSubstr(filled));
  }
  EXPECT_THAT(text, Not(HasSubstr("&U[0], i8(0)")));
  EXPECT_THAT(text, Not(HasSubstr("&Y[0], i8(0)")));
}

// What a nest reads is filled: whole groups by an instruction, the rest one by one.
TEST(ScalarCodeTest, WhatItReadsIsFilled) {
  const std::string text = RunPass(
      "func f(A: i8[128] in, B: i8[100] out) { thread (cid, 1) { thread (tid, 1) {"
      " allocate X: i8[100] @nmem allocate Z: i8[64] @nmem allocate Y: i8[100] @nmem"
      " memcpy.i8.nmem.gmem.async(&X[0], &A[0], 50, 1, 0, 0)"
      " maxs.i8(&Z[0], &X[0], i8(3), 64)"
      " for (i, 0, 100) { Y[i] = X[i] + i8(1) }"
      " memcpy.i8.gmem.nmem.async(&B[0], &Y[0], 50, 1, 0, 0) } } }",
      Skip, TestTarget());
  // Right before it is used.
  EXPECT_THAT(text, HasSubstr("allocate Y: i8[100] @nmem\n      fill.i8(&X[0], i8(0), 64)\n"
                              "      for (i, 64, 36) {\n        X[i] = 0\n      }\n"
                              "      memcpy.i8.nmem.gmem.async(&X[0]"));
  EXPECT_THAT(text, Not(HasSubstr("&Z[0], i8(0)")));
  EXPECT_THAT(text, Not(HasSubstr("&Y[0], i8(0)")));
}

}  // namespace
}  // namespace polynao
