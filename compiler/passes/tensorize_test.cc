#include "compiler/passes/tensorize.h"

#include <array>
#include <map>
#include <random>
#include <tuple>

#include "base/text.h"
#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/instruction_set.h"
#include "isa/instructions_text.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<bool> OnUnit(ir::Function& f) { return Tensorize(f, TestTarget("unit")); }
std::string After(std::string_view text) { return RunPass(text, OnUnit, TestTarget("unit")); }

// What the pass says about the marked nests of `text`: instruction or reason.
std::string Decision(std::string_view text) {
  ir::Function f = ParseOrDie(text);
  std::vector<TensorizeDecision> decisions;
  EXPECT_TRUE(Tensorize(f, TestTarget("unit"), &decisions).ok());
  std::string all;
  for (const TensorizeDecision& d : decisions) {
    all += d.instruction.empty() ? d.reason : d.instruction;
    all += "\n";
  }
  return all;
}

TEST(TensorizeTest, ContiguousCopy) {
  const std::string text = After(
      "func f(A: f16[200] in, B: f16[100] out) { allocate L: f16[100] @nmem"
      " pragma \"memcpy\" { for (i, 0, 100) { L[i] = A[i + 50] } }"
      " for (i, 0, 100) { B[i] = L[i] } }");
  EXPECT_THAT(text, HasSubstr("memcpy.f16.nmem.gmem.async(&L[0], &A[50], 100, 1, 0, 0)"));
  EXPECT_THAT(text, HasSubstr("memcpy.f16.gmem.nmem.async(&B[0], &L[0], 100, 1, 0, 0)"));
  EXPECT_THAT(text, Not(HasSubstr("pragma")));
  EXPECT_THAT(text, Not(HasSubstr("for")));
}

// The table says which instructions a family's pragma allows besides the family itself.
TEST(TensorizeTest, FormsOfAFamilyComeFromTheTable) {
  constexpr std::string_view kRow =
      "@doc(\"dst = lhs + rhs * rhs.\") @opcode(200) @unit(vector) @cost(1) "
      "func square_sum(dst: f16[count] @nmem out, lhs: f16[count] @nmem in, rhs: f16[count] @nmem "
      "in, count: i64) { for (i: i64, 0, count) { dst[i] = lhs[i] + rhs[i] * rhs[i] } }";
  for (const bool is_form : {false, true}) {
    const auto set =
        isa::InstructionSet::Load({{"instructions.nir", std::string(isa::InstructionsText())},
                                   {"row.nir", StrCat(is_form ? "@form(add) " : "", kRow)}});
    ASSERT_TRUE(set.ok()) << set.status();
    Target target = TestTarget("unit");
    target.instructions = set->get();
    const std::string text = RunPass(
        "func f(A: f16[64] in, B: f16[64] out) { allocate X: f16[64] @nmem"
        " pragma \"memcpy\" { for (i, 0, 64) { X[i] = A[i] } }"
        " pragma \"add\" { for (i, 0, 64) { X[i] = X[i] + X[i] * X[i] } }"
        " for (i, 0, 64) { B[i] = X[i] } }",
        [&](ir::Function& f) { return Tensorize(f, target); }, target);
    EXPECT_EQ(text.find("square_sum(") != std::string::npos, is_form) << text;
  }
}

// The partitioned copy of the paper: memcpy(AL, A + tid*4, 14, 2, 4) there.
TEST(TensorizeTest, StridedCopy) {
  const std::string text = After(
      "func f(A: f32[56] in, B: f32[16] out) { thread (tid, 4) { allocate AL: f32[16] @nmem"
      " pragma \"memcpy\" { for (i, 0, 4) { for (j, 0, 2) { AL[i*4 + j] = A[i*14 + tid*4 + j] } } }"
      " if (tid == 3) { for (i, 0, 4) { B[i] = AL[i*4 + 1] } } } }");
  EXPECT_THAT(text, HasSubstr("memcpy.f32.nmem.gmem.async(&AL[0], &A[tid * 4], 2, 4, 4, 14)"));
  // One element of each row: segments of one element.
  EXPECT_THAT(text, HasSubstr("memcpy.f32.gmem.nmem.async(&B[0], &AL[1], 1, 4, 1, 4)"));
}

// A row whose number is an element: the scalar unit reads the number once, in front of the copy.
TEST(TensorizeTest, IndexFromMemory) {
  const std::string text = After(
      "func f(A: f16[640] in, I: i32[4] in, B: f16[256] out) { allocate L: f16[256] @nmem"
      " for (i, 0, 4) { pragma \"memcpy\" { for (j, 0, 64) {"
      " L[i*64 + j] = A[min(max(I[i], 0), 9) * 64 + j] } } }"
      " pragma \"memcpy\" { for (i, 0, 256) { B[i] = L[i] } } }");
  EXPECT_THAT(text, HasSubstr("let number: i32 = I[i]"));
  EXPECT_THAT(text, HasSubstr("memcpy.f16.nmem.gmem.async(&L["));
  EXPECT_THAT(text, Not(HasSubstr("pragma")));
  // Each element has a number of its own, or the loop may be empty: then it stays where it is.
  for (const char* nest : {"for (j, 0, 4) { L[j] = A[min(max(I[j], 0), 9)] }",
                           "for (j, 0, min(n, 4)) { L[j] = A[min(max(I[0], 0), 9) + j] }"}) {
    const std::string same = After(StrCat(
        "func f(A: f16[640] in, I: i32[4] in, B: f16[4] out, n: i32) { allocate L: f16[64] @nmem"
        " pragma \"memcpy\" { ",
        nest, " } for (i, 0, 4) { B[i] = A[i] } }"));
    EXPECT_THAT(same, Not(HasSubstr("let"))) << same;
  }
}

TEST(TensorizeTest, LoopsWithoutGapsAreOne) {
  EXPECT_THAT(After("func f(A: f16[4096] in, B: f16[24] out) { allocate L: f16[24] @nmem"
                    " for (i, 0, 2) { for (j, 0, 3) { for (k, 0, 4) {"
                    "   L[i*12 + j*4 + k] = A[i*12 + j*4 + k + 7] } } }"
                    " for (i, 0, 24) { B[i] = L[i] } }"),
              HasSubstr("memcpy.f16.nmem.gmem.async(&L[0], &A[7], 24, 1, 0, 0)"));
}

TEST(TensorizeTest, ThreeLevels) {
  EXPECT_THAT(After("func f(A: f16[4096] in, B: f16[1] out) { allocate L: f16[60] @nmem"
                    " for (i, 0, 3) { for (j, 0, 4) { for (k, 0, 5) {"
                    "   L[i*20 + j*5 + k] = A[i*1000 + j*10 + k] } } } B[0] = L[59] }"),
              HasSubstr("memcpy3d.f16.nmem.gmem.async(&L[0], &A[0], 5, 4, 5, 10, 3, 20, 1000)"));
}

TEST(TensorizeTest, FurtherLoopsStayAround) {
  const std::string text = After(
      "func f(A: f16[9000] in, B: f16[1] out) { allocate L: f16[120] @nmem"
      " for (h, 0, 2) { for (i, 0, 3) { for (j, 0, 4) { for (k, 0, 5) {"
      "   L[h*60 + i*20 + j*5 + k] = A[h*4000 + i*1000 + j*10 + k] } } } } B[0] = L[119] }");
  EXPECT_THAT(text, HasSubstr("for (h, 0, 2) {"));
  EXPECT_THAT(text, HasSubstr("memcpy3d.f16.nmem.gmem.async(&L[h * 60], &A[h * 4000], 5, 4, 5, 10, "
                              "3, 20, 1000)"));
}

TEST(TensorizeTest, ElementwiseRoundsItsCountUp) {
  const std::string text = After(
      "func f(A: f16[100] in, B: f16[100] in, C: f16[100] out) {"
      " allocate X: f16[100] @nmem allocate Y: f16[100] @nmem allocate Z: f16[100] @nmem"
      " for (i, 0, 100) { X[i] = A[i] } for (i, 0, 100) { Y[i] = B[i] }"
      " pragma \"add\" { for (i, 0, 100) { Z[i] = X[i] + Y[i] } }"
      " for (i, 0, 100) { C[i] = Z[i] } }");
  EXPECT_THAT(text, HasSubstr("add.f16(&Z[0], &X[0], &Y[0], 128)"));
  EXPECT_THAT(text, HasSubstr("allocate X: f16[128] @nmem"));
  EXPECT_THAT(text, HasSubstr("allocate Z: f16[128] @nmem"));
  EXPECT_THAT(text, HasSubstr("memcpy.f16.gmem.nmem.async(&C[0], &Z[0], 100, 1, 0, 0)"));
}

TEST(TensorizeTest, RoundingUpMustNotOverwriteWhatIsInUse) {
  // Elements 100 .. 127 of Z are stored by somebody else and read afterwards.
  const std::string text =
      "func f(A: f16[100] in, C: f16[128] out) {"
      " allocate X: f16[128] @nmem allocate Z: f16[128] @nmem"
      " for (i, 0, 100) { X[i] = A[i] }"
      " for (i, 0, 28) { Z[i + 100] = f16(3.0) }"
      " pragma \"add\" { for (i, 0, 100) { Z[i] = X[i] + X[i] } }"
      " for (i, 0, 128) { C[i] = Z[i] } }";
  EXPECT_THAT(Decision(text), HasSubstr("must not be in use"));
  EXPECT_THAT(After(text), Not(HasSubstr("add.f16")));
}

TEST(TensorizeTest, RoundingUpKnowsWhichBranchIsTaken) {
  // The last core computes 100 elements; what other cores store behind them is in their own memory.
  const auto program = [](std::string_view condition) {
    return StrCat(
        "func f(A: f16[512] in, C: f16[512] out) { thread (tid, 2) { allocate X: f16[256] @nmem ",
        "if (tid < 1) { for (i, 0, 256) { X[i] = A[i] } } else { for (i, 0, 100) { X[i] = A[256 + "
        "i] } }",
        "if (", condition,
        ") { for (i, 0, 256) { X[i] = X[i] + X[i] } }"
        " else { for (i, 0, 100) { X[i] = X[i] + X[i] } }",
        "if (tid < 1) { for (i, 0, 256) { C[i] = X[i] } } else { for (i, 0, 100) { C[256 + i] = "
        "X[i] } }"
        " } }");
  };
  EXPECT_THAT(After(program("tid < 1")), HasSubstr("add.f16(&X[0], &X[0], &X[0], 128)"));
  // Here the other branch may have stored behind the 100 elements of the same memory.
  EXPECT_THAT(After(program("tid < 0")), Not(HasSubstr("add.f16(&X[0], &X[0], &X[0], 128)")));
}

TEST(TensorizeTest, RoundingUpReadsRowsButStoresOne) {
  // Rows of 60 elements, 64 apart, are added up: what is read behind a row is not used.
  const auto program = [](std::string_view statement) {
    return StrCat(
        "func f(A: f16[180] in, C: f16[60] out) {"
        " allocate X: f16[188] @nmem allocate S: f16[192] @nmem"
        " for (r, 0, 3) { for (i, 0, 60) { X[r * 64 + i] = A[r * 60 + i] } }"
        " for (i, 0, 60) { S[i] = f16(0.0) }"
        " pragma \"add\" { for (r, 0, 3) { for (i, 0, 60) { ",
        statement, " } } } for (i, 0, 60) { C[i] = S[i] } }");
  };
  const std::string text = After(program("S[i] = S[i] + X[r * 64 + i]"));
  EXPECT_THAT(text, HasSubstr("add.f16(&S[0], &S[0], &X[r * 64], 64)"));
  EXPECT_THAT(text, HasSubstr("allocate X: f16[192] @nmem"));
  // Behind a row that is stored stands the next one.
  EXPECT_THAT(After(program("S[r * 64 + i] = X[r * 64 + i] + X[i]")), Not(HasSubstr("add.f16")));
}

TEST(TensorizeTest, RoundingUpNeedsBuffersOnChip) {
  // No elementwise instruction works on GMEM; in place on a parameter nothing may be touched
  // behind.
  EXPECT_THAT(Decision("func f(A: f16[64]) { pragma \"add\" { for (i, 0, 64) {"
                       " A[i] = A[i] + A[i] } } }"),
              HasSubstr("'A' is f16 in gmem"));
}

TEST(TensorizeTest, CommutativeOperandsMatchInEitherOrder) {
  const std::string text = After(
      "func f(A: f16[64] in, C: f16[64] out) { allocate X: f16[64] @nmem"
      " for (i, 0, 64) { X[i] = A[i] }"
      " pragma \"tensorize\" { for (i, 0, 64) { X[i] = 2.0 * X[i] } }"
      " pragma \"tensorize\" { for (i, 0, 64) { X[i] = X[i] - 1.0 } }"
      " for (i, 0, 64) { C[i] = X[i] } }");
  EXPECT_THAT(text, HasSubstr("muls.f16(&X[0], &X[0], f16(2.0), 64)"));
  EXPECT_THAT(text, HasSubstr("subs.f16(&X[0], &X[0], f16(1.0), 64)"));
}

// x - -1, x * -1 and x + -2.0 are shorter in another way.
TEST(TensorizeTest, ValuesThatSimplificationHasShortened) {
  const std::string text = After(
      "func f(A: i32[64] in, C: i32[64] out, B: f16[64] in, D: f16[64] out) {"
      " allocate X: i32[64] @nmem allocate Y: f16[64] @nmem"
      " for (i, 0, 64) { X[i] = A[i] } for (i, 0, 64) { Y[i] = B[i] }"
      " pragma \"subs\" { for (i, 0, 64) { X[i] = X[i] + 1 } }"
      " pragma \"muls\" { for (i, 0, 64) { X[i] = 0 - X[i] } }"
      " pragma \"adds\" { for (i, 0, 64) { Y[i] = Y[i] - 2.0 } }"
      " for (i, 0, 64) { C[i] = X[i] } for (i, 0, 64) { D[i] = Y[i] } }");
  EXPECT_THAT(text, HasSubstr("subs.i32(&X[0], &X[0], i32(-1), 64)"));
  EXPECT_THAT(text, HasSubstr("muls.i32(&X[0], &X[0], i32(-1), 64)"));
  EXPECT_THAT(text, HasSubstr("adds.f16(&Y[0], &Y[0], f16(-2.0), 64)"));
}

TEST(TensorizeTest, SubtractionKeepsItsOrder) {
  EXPECT_THAT(After("func f(A: f32[64] in, B: f32[64] in, C: f32[64] out) {"
                    " allocate X: f32[64] @nmem allocate Y: f32[64] @nmem"
                    " for (i, 0, 64) { X[i] = A[i] } for (i, 0, 64) { Y[i] = B[i] }"
                    " for (i, 0, 64) { X[i] = Y[i] - X[i] } for (i, 0, 64) { C[i] = X[i] } }"),
              HasSubstr("sub.f32(&X[0], &Y[0], &X[0], 64)"));
}

TEST(TensorizeTest, FillAndUnary) {
  const std::string text = After(
      "func f(C: f16[64] out) { allocate X: f16[64] @nmem"
      " for (i, 0, 64) { X[i] = -1.5 } for (i, 0, 64) { X[i] = max(X[i], 0.0) }"
      " for (i, 0, 64) { C[i] = X[i] } }");
  EXPECT_THAT(text, HasSubstr("fill.f16(&X[0], f16(-1.5), 64)"));
  EXPECT_THAT(text, HasSubstr("relu.f16(&X[0], &X[0], 64)"));
}

TEST(TensorizeTest, SymbolicCountsAndBases) {
  EXPECT_THAT(
      After("func f(A: f16[n * 4] in, B: f16[4] out, n: i32, m: i32) { allocate L: f16[64] @nmem"
            " for (t, 0, n) { for (i, 0, 4) { L[i] = A[t * 4 + i] } }"
            " for (i, 0, n) { L[i] = A[i] } for (i, 0, m - 3) { L[i] = A[i] }"
            " for (i, 0, 4) { B[i] = L[i] } }"),
      AllOf(HasSubstr("memcpy.f16.nmem.gmem.async(&L[0], &A[t * 4], 4, 1, 0, 0)"),
            // n may be negative, an extent too, and no count may be.
            HasSubstr("memcpy.f16.nmem.gmem.async(&L[0], &A[0], cast(i64, max(n, 0)), 1, 0, 0)"),
            HasSubstr("(&L[0], &A[0], cast(i64, max(m - 3, 0)), 1, 0, 0)")));
}

TEST(TensorizeTest, LoopsThatDoNotStartAtZero) {
  EXPECT_THAT(
      After("func f(A: f16[64] in, B: f16[64] out) { allocate L: f16[64] @nmem"
            " for (i, 5, 10) { L[i + 1] = A[i * 1 + 2] } for (i, 5, 10) { B[i] = L[i + 1] } }"),
      AllOf(HasSubstr("(&L[6], &A[7], 10, 1, 0, 0)"), HasSubstr("(&B[5], &L[6], 10, 1, 0, 0)")));
}

// Found by random_run, seed 1002313.
TEST(TensorizeTest, WhatWrapsIsNoArgument) {
  const auto filled = [](std::string_view value) {
    return After(StrCat(
        "func f(B: i32[64] out, n: i32) { allocate L: i32[64] @nmem for (i, 0, 64) { L[i] = ",
        value, " } for (i, 0, 64) { B[i] = L[i] } }"));
  };
  EXPECT_THAT(filled("n + 2147483647"), ::testing::Not(HasSubstr("fill.i32")));
  EXPECT_THAT(filled("min(max(n, 0), 9) + 1"), HasSubstr("fill.i32"));
}

TEST(TensorizeTest, WhatIsNoInstructionStaysAndSaysWhy) {
  const auto marked = [](std::string_view statement, std::string_view key = "add") {
    return Decision(StrCat(
        "func f(A: f16[4096], n: i32) { allocate X: f16[256] @nmem allocate Y: f16[256] @nmem"
        " allocate Z: f32[256] @nmem pragma \"",
        key, "\" { for (i, 0, 64) { ", statement, " } } }"));
  };
  EXPECT_THAT(marked("if (i < n) { X[i] = X[i] + Y[i] }"),
              HasSubstr("a guard stands inside: if (i < n) {"));
  EXPECT_THAT(marked("X[i] = X[i] - Y[i]"), HasSubstr("is Sub, not Add"));
  EXPECT_THAT(marked("X[i * 2] = X[i] + Y[i]"), HasSubstr("'X' has the stride 2 over 'i'"));
  EXPECT_THAT(marked("X[i * i] = X[i] + Y[i]"), HasSubstr("an index is not linear"));
  EXPECT_THAT(marked("X[i] = X[i + 1] + Y[i]"),
              HasSubstr("'X' is read and written at different places"));
  EXPECT_THAT(marked("X[i] = X[i] - cast(f16, i)", "subs"), HasSubstr("changes with 'i'"));
  EXPECT_THAT(marked("X[i + 8] = X[i + 8] + Y[i]"), HasSubstr("it must have"));
  EXPECT_THAT(marked("X[i] = A[i]", "memcpy"), HasSubstr("memcpy.f16.nmem.gmem.async"));
  EXPECT_THAT(marked("A[i * 7] = A[i]", "memcpy"), HasSubstr("'A' is in gmem, not nmem"));
  EXPECT_THAT(marked("X[i] = X[i]", "memcpy"), HasSubstr("'X' would be copied onto itself"));
}

TEST(TensorizeTest, MinAndMaxKeepTheSideOfANaN) {
  // min and max are not commutative: a NaN on the left stays.
  EXPECT_THAT(After("func f(A: f16[64] in, C: f16[64] out) { allocate X: f16[64] @nmem"
                    " for (i, 0, 64) { X[i] = A[i] } for (i, 0, 64) { X[i] = max(0.5, X[i]) }"
                    " for (i, 0, 64) { C[i] = X[i] } }"),
              Not(HasSubstr("maxs")));
}

// The addresses of an instruction must exist even if it moves nothing: behind 4 elements there is no
// fifth one.
TEST(TensorizeTest, LoopsThatMayBeEmpty) {
  const auto nest = [](std::string_view body) {
    return After(
        StrCat("func f(A: f16[4 + n] in, B: f16[64], n: i32) { if (0 <= n && n < 60) {"
               " allocate L: f16[64] @nmem ",
               body, " for (i, 0, n) { B[i] = L[i] } } }"));
  };
  EXPECT_THAT(nest("for (i, 0, n) { L[i] = A[i + 4] }"),
              HasSubstr("if (1 <= n) {\n      memcpy.f16.nmem.gmem.async(&L[0], &A[4], "));
  // The address exists, or the loop runs.
  EXPECT_THAT(nest("for (i, 0, n) { L[i] = A[i + 3] }"), Not(HasSubstr("if (1 <= n)")));
  EXPECT_THAT(nest("for (i, 0, n + 1) { L[i] = A[i + 3] }"), Not(HasSubstr("if (1 <= n)")));
}

// Of integers they are.
TEST(TensorizeTest, MinAndMaxOfIntegersCommute) {
  EXPECT_THAT(After("func f(A: i32[64] in, C: i32[64] out) { allocate X: i32[64] @nmem"
                    " for (i, 0, 64) { X[i] = A[i] } for (i, 0, 64) { X[i] = max(5, X[i]) }"
                    " for (i, 0, 64) { C[i] = X[i] } }"),
              HasSubstr("maxs.i32(&X[0], &X[0], i32(5), 64)"));
}

// Where every iteration stores an element of its own, loops may stand in any order and run backwards.
TEST(TensorizeTest, LoopsInTheOrderOfMemory) {
  const auto nest = [](std::string_view loops) {
    return After(
        StrCat("func f(A: f32[512] in, C: f32[512] out) { allocate X: f32[512] @nmem"
               " for (i, 0, 512) { X[i] = A[i] } ",
               loops, " for (i, 0, 512) { C[i] = X[i] } }"));
  };
  EXPECT_THAT(
      nest("for (j, 0, 64) { for (i, 0, 4) { X[i * 64 + j] = X[i * 64 + j] + X[i * 64 + j] } }"),
      HasSubstr("  add.f32(&X[0], &X[0], &X[0], 256)"));
  EXPECT_THAT(nest("for (j, 0, 64) { for (i, 0, 4) { X[i * 128 + 64 + j] = A[i * 100 + j] } }"),
              HasSubstr("memcpy.f32.nmem.gmem.async(&X[64], &A[0], 64, 4, 128, 100)"));
  EXPECT_THAT(nest("for (i, 0, 64) { X[63 - i] = X[63 - i] * X[127 - i] }"),
              Not(HasSubstr("mul.f32")));  // X is loaded where another iteration stores
  EXPECT_THAT(nest("for (i, 0, 64) { X[63 - i] = X[63 - i] * X[63 - i] }"),
              HasSubstr("  mul.f32(&X[0], &X[0], &X[0], 64)"));
  EXPECT_THAT(nest("for (i, 2, 64) { X[65 - i] = A[100 - i] }"),
              HasSubstr("(&X[0], &A[35], 64, 1, 0, 0)"));
  // Two iterations store one element: the last one counts.
  EXPECT_THAT(nest("for (j, 0, 64) { for (i, 0, 4) { X[i * 32 + j] = A[i * 64 + j] } }"),
              Not(HasSubstr("&A[0], 64, 4")));
}

// Random copies and elementwise nests: whatever the pass makes of them, the values stay.
TEST(TensorizeTest, RandomNestsKeepTheirMeaning) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % (high - low + 1));
  };
  int instructions = 0;
  for (int round = 0; round < 300; ++round) {
    const char* type = std::array{"f16", "f32", "i32", "i8"}[pick(0, 3)];
    const int rows = pick(0, 5);
    const int columns = std::array{1, 2, 7, 63, 64, 65}[pick(0, 5)];
    const int gap = pick(0, 3);
    const int step = columns + gap;
    const int offset = pick(0, 3) * (pick(0, 1) ? 64 : 1);
    const char* op = std::array{"+", "-", "*"}[pick(0, 2)];
    const int n = rows * columns;
    const int padded = std::max(n, 1) + offset;
    // Loops over rows and columns in either order; rows, columns or both may be counted backwards, on
    // both sides or where the nest loads alone.
    const auto loops = [&](const std::string& body) {
      const std::string i = StrCat("for (i, 0, ", rows, ") { ");
      const std::string j = StrCat("for (j, 0, ", columns, ") { ");
      return pick(0, 2) == 0 ? StrCat(j, i, body, " } } ") : StrCat(i, j, body, " } } ");
    };
    const auto place = [&](int stride, bool row_backwards, bool column_backwards) {
      return StrCat(row_backwards ? StrCat("(", rows - 1, " - i)") : "i", " * ", stride, " + ",
                    column_backwards ? StrCat("(", columns - 1, " - j)") : "j", " + ", offset);
    };
    const bool row_backwards = pick(0, 3) == 0;
    const bool column_backwards = pick(0, 3) == 0;
    const bool turned = pick(0, 5) == 0;
    const std::string at = place(columns, row_backwards, column_backwards);
    const std::string from = place(step, row_backwards != turned, column_backwards != turned);
    std::string text = StrCat(
        "func f(A: ", type, "[", rows * step + offset + 1, "] in, B: ", type, "[", padded, "]) {",
        " allocate X: ", type, "[", padded, "] @nmem allocate Y: ", type, "[", padded, "] @nmem",
        " for (i, 0, ", padded, ") { Y[i] = B[i] }", loops(StrCat("X[", at, "] = A[", from, "]")),
        loops(StrCat("Y[", at, "] = X[", at, "] ", op, " Y[", at, "]")), " for (i, 0, ", padded,
        ") { B[i] = Y[i] } }");
    SCOPED_TRACE(text);
    const std::string result = After(text);
    if (result.find("memcpy") != std::string::npos) ++instructions;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(instructions, 200);
}

TEST(TensorizeTest, ExplanationsNameBothNodes) {
  ir::Function f = ParseOrDie(
      "func f(A: f16[64]) { allocate X: f16[256] @nmem for (t, 0, 3) {"
      " pragma \"add\" { for (i, 0, 64) { X[i] = X[i] + A[i] } }"
      " pragma \"add\" { for (h, 0, 2) { for (i, 0, 64) { X[h * 64 + i] = X[h * 64 + i] + X[h * 64 "
      "+ "
      "i] } } }"
      " pragma \"add\" { for (g, 0, 2) { if (g == t) { X[g] = X[g] + A[g] } } } } }");
  std::vector<TensorizeDecision> decisions;
  ASSERT_TRUE(Tensorize(f, TestTarget("unit"), &decisions).ok());
  ASSERT_EQ(decisions.size(), 3);
  EXPECT_EQ(decisions[0].explanation,
            "for (i, 0, 64) {  (marked \"add\") is no instruction\n"
            "  closest pattern: add.f16\n"
            "  in the pattern:  dst[i] = lhs[i] + rhs[i]\n"
            "  in the program:  X[i] = X[i] + A[i]\n"
            "  difference:      'A' is in gmem, not nmem\n");
  EXPECT_EQ(decisions[0].reason, "add.f16: 'A' is in gmem, not nmem");
  EXPECT_EQ(decisions[1].instruction, "add.f16");
  EXPECT_EQ(decisions[1].explanation, "");
  EXPECT_EQ(decisions[2].explanation,
            "for (g, 0, 2) {  (marked \"add\") is no instruction\n"
            "  no pattern fits its form: a guard stands inside: if (g == t) {\n");
}

// ---- copies with counts known at run time -------------------------------------------------------

// That the count is not negative follows from a condition on 32-bit indices.
TEST(TensorizeTest, CopiesOfRestsUnderTheirCondition) {
  for (const std::string condition :
       {"t * 2 + k < 11", "1 <= min(2048 - t * 384 - k * 192, 192)"}) {
    const std::string text = After(
        "func f(X: f16[2048] in) { thread (t, 6) { for (k, 0, 2) { allocate B: f16[192] @nmem"
        " if (" +
        condition +
        ") { pragma \"memcpy\" {"
        " for (i, 0, min(2048 - t * 384 - k * 192, 192)) {"
        "   B[i] = X[t * 384 + k * 192 + i] } } } } } }");
    EXPECT_THAT(text, HasSubstr("memcpy.f16.nmem.gmem.async(&B[0], &X[t * 384 + k * 192], "
                                "cast(i64, min(2048 - t * 384 - k * 192, 192)), 1, 0, 0)"));
    EXPECT_THAT(text, Not(HasSubstr("for (i")));
  }
}

TEST(TensorizeTest, CopiesOfRowsWithRunTimeBounds) {
  // The rows of an image that a core loads: their number is known at run time, and so is the first.
  const std::string text = After(
      "func f(A: i8[10000] in, C: i8[4] out) { thread (tid, 4) { allocate P: i8[3000] @nmem"
      " pragma \"memcpy\" {"
      " for (y, max(0, 3 - tid * 2), min(10, 13 - tid * 2) - max(0, 3 - tid * 2)) {"
      "   for (x, 1, 14) { for (c, 0, 16) {"
      "     P[y * 300 + x * 16 + c] = A[(tid * 2 + y - 3) * 224 + (x - 1) * 16 + c] } } } }"
      " if (tid == 0) { for (i, 0, 4) { C[i] = P[1600 + i] } } } }");
  EXPECT_THAT(text, HasSubstr("  memcpy.i8.nmem.gmem.async(&P["));
  EXPECT_THAT(text, HasSubstr(", 224, "));
  EXPECT_THAT(text, HasSubstr(", 300, 224)"));
  EXPECT_THAT(text, Not(HasSubstr("for (")));
  EXPECT_THAT(text, Not(HasSubstr("pragma")));
}

TEST(TensorizeTest, PlanesWithRunTimeBounds) {
  const std::string text = After(
      "func f(A: i8[10000] in, C: i8[4] out, n: i32, m: i32) { allocate P: i8[3000] @nmem"
      " pragma \"memcpy\" { for (y, 0, min(n, 9)) { for (x, 0, min(m, 7)) { for (c, 0, 16) {"
      "     P[y * 300 + x * 32 + c] = A[y * 700 + x * 64 + c] } } } }"
      " if (n == 77) { for (i, 0, 4) { C[i] = P[i] } } }");
  EXPECT_THAT(text, HasSubstr("  memcpy3d.i8.nmem.gmem.async(&P[0], &A[0], 16, "));
  EXPECT_THAT(text, Not(HasSubstr("for (")));
  // The innermost count may be known at run time only, as long as segments can not overlap.
  const auto width = [](int most) {
    return After(StrCat(
        "func f(A: i8[10000] in, C: i8[4] out, n: i32) { allocate P: i8[3000] @nmem",
        " for (y, 0, 9) { for (x, 0, min(n, ", most, ")) {", " P[y * 100 + x] = A[y * 700 + x] } }",
        " if (n == 77) { for (i, 0, 4) { C[i] = P[i] } } }"));
  };
  EXPECT_THAT(width(100), Not(HasSubstr("for (y")));
  EXPECT_THAT(width(101), HasSubstr("1, cast(i64, max(min(n, 101), 0)), 1, 1, 9, 100, 700)"));
}

TEST(TensorizeTest, RunTimeLoopsWithoutGapsAreOne) {
  EXPECT_THAT(After("func f(A: i8[10000] in, C: i8[4] out, n: i32) { allocate P: i8[3000] @nmem"
                    " for (y, 0, min(n, 9)) { for (x, 0, 7) { P[y * 7 + x] = A[y * 7 + x + 3] } }"
                    " if (n == 77) { for (i, 0, 4) { C[i] = P[i] } } }"),
              AllOf(HasSubstr("memcpy.i8.nmem.gmem.async(&P[0], &A[3], "), HasSubstr(", 1, 0, 0)"),
                    Not(HasSubstr("for ("))));
}

TEST(TensorizeTest, FiltersIntoBanks) {
  // Filter c * 64 + l to bank l.
  const std::string text = After(
      "func f(A: i8[12800] in, C: i8[4] out) { allocate S: i8[12800] @smem allocate W: i8[16384] "
      "@wmem"
      " allocate L: i8[4] @nmem for (i, 0, 12800) { S[i] = A[i] }"
      " pragma \"memcpy\" { for (c, 0, 2) { for (l, 0, 64) { for (k, 0, 100) {"
      "   W[l * 256 + c * 128 + k] = S[(c * 64 + l) * 100 + k] } } } }"
      " for (i, 0, 4) { L[i] = S[i] } for (i, 0, 4) { C[i] = L[i] } }");
  EXPECT_THAT(text, HasSubstr("  memcpy3d.i8.wmem.smem.async(&W[0], &S[0], 100, 64, 256, 100, 2, "
                              "128, 6400)"));
  // The rest of CO: fewer lanes, how many is known at run time; banks must start at 64 bytes.
  const auto rest = [](int first) {
    return After(
        StrCat("func f(A: i8[12800] in, C: i8[4] out, n: i32) { allocate S: i8[12800] @smem",
               " allocate W: i8[16384] @wmem for (i, 0, 12800) { S[i] = A[i] }",
               " for (l, 0, min(n, 64)) { for (k, 0, 100) {", "   W[l * 256 + ", first,
               " + k] = S[(64 + l) * 100 + k] } } for (i, 0, 4) { C[i] = A[i] } }"));
  };
  EXPECT_THAT(rest(128), HasSubstr("memcpy.i8.wmem.smem.async(&W[128], &S[6400], 100, "));
  EXPECT_THAT(rest(100), Not(HasSubstr("memcpy.i8.wmem.smem.async")));
}

TEST(TensorizeTest, FillUnderARunTimeCondition) {
  const std::string text = After(
      "func f(C: i8[720] out, n: i32) { thread (tid, 2) { allocate P: i8[720] @nmem"
      " for (t, 0, 3) { pragma \"fill\" { if (t + n < 3 || tid == 1) {"
      "   for (y, 0, 3) { for (x, 0, 15) { for (c, 0, 16) { P[y * 240 + x * 16 + c] = 7 } } } } } }"
      " if (tid == 1) { for (i, 0, 720) { C[i] = P[i] } } } }");
  EXPECT_THAT(text, HasSubstr("  fill.i8(&P[0], i8(7), 768)"));
  EXPECT_THAT(text, HasSubstr("allocate P: i8[768] @nmem"));
  EXPECT_THAT(text, HasSubstr("if (t + n < 3 || tid == 1) {"));
  EXPECT_THAT(text, Not(HasSubstr("pragma")));
}

TEST(TensorizeTest, FactsOfTheCaller) {
  const auto copy = [](std::string_view facts) {
    return After(StrCat(facts, " func f(A: f32[9000] in, C: f32[512] out, n: i32) {",
                        " allocate X: f32[512] @nmem for (y, 0, 8) { for (x, 0, n) {",
                        " X[y * 64 + x] = A[y * 1000 + x] } }",
                        " if (n == 77) { for (i, 0, 512) { C[i] = X[i] } } }"));
  };
  // Else segments of n elements might overlap.
  EXPECT_THAT(copy("@assert(0 <= n, n <= 64)"),
              HasSubstr("(&X[0], &A[0], cast(i64, n), 8, 64, 1000)"));
  EXPECT_THAT(copy(""), Not(HasSubstr("(&X[0], &A[0], cast(i64")));
}

// ---- convolution and matrix product -------------------------------------------------------------

// A convolution with its operands copied on chip and its result back, flattened.
struct Conv {
  int ho = 2, wo = 3, co = 128, kh = 3, kw = 2, ci = 5;
  int stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int wi_extra = 0, pitch_extra = 0, bank_extra = 0;
  std::string type = "i8";
  std::string sum = "i32";
  // Loops in an order of "yxclrsi"; '|' stands where the initialisation and the reduction begin,
  // without it the nest only updates. `separate`: the initialisation is a nest before it.
  std::string order = "yxcl|rsi";
  bool separate = false;
  bool keep_single = false;  // keep loops of one iteration
  std::string key = "conv";
  std::string zero = "0";
  std::string guard = "";    // around the update
  std::string product = "";  // instead of the usual one
  int first = 0;             // of each loop; what is added to the index is taken off again
  int lanes = 64;
  std::string target = "D";

  int groups() const { return co / lanes; }
  int wi() const { return (wo - 1) * stride_w + (kw - 1) * dilation_w + 1 + wi_extra; }
  int hi() const { return (ho - 1) * stride_h + (kh - 1) * dilation_h + 1; }
  int size() const { return type == "i8" ? 1 : type == "f32" ? 4 : 2; }
  int pitch() const {
    const int unit = 64 / size();
    return (kh * kw * ci + unit - 1) / unit * unit + pitch_extra * unit;
  }
  int bank() const { return groups() * pitch() + bank_extra; }

  std::string Text() const {
    const std::map<char, int> extents = {{'y', ho}, {'x', wo}, {'c', groups()}, {'l', lanes},
                                         {'r', kh}, {'s', kw}, {'i', ci}};
    const auto var = [&](char loop) {
      if (extents.at(loop) == 1 && !keep_single) return std::string("0");
      return first == 0 ? std::string(1, loop)
                        : StrCat("(", std::string(1, loop), " - ", first, ")");
    };
    const std::string element = StrCat(target, "[(", var('y'), " * ", wo, " + ", var('x'), ") * ",
                                       co, " + ", var('c'), " * ", lanes, " + ", var('l'), "]");
    const std::string source =
        StrCat("P[((", var('y'), " * ", stride_h, " + ", var('r'), " * ", dilation_h, ") * ", wi(),
               " + ", var('x'), " * ", stride_w, " + ", var('s'), " * ", dilation_w, ") * ", ci,
               " + ", var('i'), "]");
    const std::string weight =
        StrCat("W[", var('l'), " * ", bank(), " + ", var('c'), " * ", pitch(), " + (", var('r'),
               " * ", kw, " + ", var('s'), ") * ", ci, " + ", var('i'), "]");
    const std::string term =
        product.empty() ? StrCat(sum, "(", source, ") * ", sum, "(", weight, ")") : product;
    const std::string init = StrCat(element, " = ", zero, " ");
    std::string update = StrCat(element, " = ", element, " + ", term, " ");
    if (!guard.empty()) update = StrCat("if (", guard, ") { ", update, "} ");
    const auto loops = [&](std::string_view names, std::string body) {
      for (size_t k = names.size(); k-- > 0;) {
        if (extents.at(names[k]) == 1 && !keep_single) continue;
        body = StrCat("for (", names.substr(k, 1), ", ", first, ", ", extents.at(names[k]), ") { ",
                      body, "} ");
      }
      return body;
    };
    const std::string_view all = order;
    const size_t bar = all.find('|');
    std::string nest;
    if (bar == std::string_view::npos) {
      if (separate) {
        nest = loops("yxcl", init);
      }
      nest += loops(all, update);
    } else {
      nest = loops(all.substr(0, bar), StrCat(init, loops(all.substr(bar + 1), update)));
    }
    if (!key.empty()) nest = StrCat("pragma \"", key, "\" { ", nest, "} ");
    const int in = hi() * wi() * ci;
    const int out = ho * wo * co;
    return StrCat("func f(A: ", type, "[", in, "] in, B: ", type, "[", lanes * bank(),
                  "] in, C: ", sum, "[", out, "]) { allocate P: ", type, "[", in,
                  "] @nmem allocate W: ", type, "[", lanes * bank(), "] @wmem allocate D: ", sum,
                  "[", out, "] @nmem for (e, 0, ", in, ") { P[e] = A[e] } for (e, 0, ",
                  lanes * bank(), ") { W[e] = B[e] } for (e, 0, ", out, ") { D[e] = C[e] } ", nest,
                  "for (e, 0, ", out, ") { C[e] = D[e] } }");
  }
};

TEST(TensorizeTest, Convolution) {
  EXPECT_THAT(
      After(Conv{.stride_h = 2, .dilation_w = 2}.Text()),
      HasSubstr("  conv.i8(&D[0], &P[0], &W[0], 2, 3, 128, 5, 3, 2, 5, 2, 1, 1, 2, 64, 128)\n"));
  const std::string i16 =
      After(Conv{.ci = 16, .stride_w = 3, .dilation_h = 2, .type = "i16"}.Text());
  EXPECT_THAT(i16, HasSubstr("conv.i16(&D[0], &P[0], &W[0], 2, 3, 128, 8, 3, 2, 16, 1, 3, 2, 1, "));
  EXPECT_THAT(i16, Not(HasSubstr("pragma")));
  EXPECT_THAT(i16, Not(HasSubstr("for (")));
}

TEST(TensorizeTest, ConvolutionWithoutSomeLoops) {
  for (const auto& [ho, wo, co, kh, kw, ci] :
       std::vector<std::tuple<int, int, int, int, int, int>>{{1, 3, 128, 3, 2, 5},
                                                             {2, 1, 128, 3, 2, 5},
                                                             {2, 3, 64, 3, 2, 5},
                                                             {2, 3, 128, 1, 2, 5},
                                                             {2, 3, 128, 3, 1, 5},
                                                             {2, 3, 128, 3, 2, 1},
                                                             {1, 1, 64, 1, 1, 5},
                                                             {1, 1, 64, 1, 1, 1},
                                                             {5, 1, 64, 5, 1, 1},
                                                             {1, 4, 64, 1, 3, 1}}) {
    for (const bool keep : {false, true}) {
      Conv conv{.ho = ho, .wo = wo, .co = co, .kh = kh, .kw = kw, .ci = ci};
      conv.stride_h = 2;
      conv.stride_w = 2;
      conv.keep_single = keep;
      SCOPED_TRACE(conv.Text());
      EXPECT_THAT(After(conv.Text()), HasSubstr("  conv.i8("));
    }
  }
}

// Only the product of width and stride is in the strides; the width is the smallest that fits.
TEST(TensorizeTest, WidthFromSharedStrides) {
  EXPECT_THAT(After(Conv{.ci = 1, .stride_h = 2, .dilation_h = 2, .wi_extra = 2}.Text()),
              HasSubstr("2, 3, 128, 4, 3, 2, 1, 3, 1, 3, 1, "));
}

TEST(TensorizeTest, RowsKnownAtRunTime) {
  // The last core has fewer rows; which, is known from its number.
  const auto program = [](std::string_view rows, std::string_view columns, int wi_extra = 0) {
    std::string text = Conv{.ho = 4, .wo = 3, .ci = 16, .wi_extra = wi_extra}.Text();
    const auto replace = [&](std::string_view from, std::string_view to) {
      const size_t at = text.find(from);
      ASSERT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    };
    replace("for (y, 0, 4)", StrCat("for (y, 0, ", rows, ")"));
    replace("for (x, 0, 3)", StrCat("for (x, 0, ", columns, ")"));
    replace("C: i32[1536])", "C: i32[1536], n: i32)");
    return After(text);
  };
  EXPECT_THAT(
      program("min(n, 4)", "3"),
      AllOf(HasSubstr("conv.i8(&D[0], &P[0], &W[0], cast(i64, max(min(n, 4), 0)), 3, 128, "),
            Not(HasSubstr("for ("))));
  // However many they are, the instruction reaches as far as the loops.
  EXPECT_THAT(program("n", "3"), HasSubstr("conv.i8(&D[0], &P[0], &W[0], cast(i64, max(n, 0)), "));
  // Here it reaches beyond them, over the rest of the last row, and how far is not known.
  EXPECT_THAT(program("n", "3", 1), Not(HasSubstr("conv.i8(&D[0], &P[0], &W[0], cast(")));
  EXPECT_THAT(program("min(n, 4)", "3", 1), HasSubstr("conv.i8(&D[0], &P[0], &W[0], cast("));
  // Shorter rows are no rows of that length: an instruction for each.
  EXPECT_THAT(program("4", "min(n, 3)"),
              HasSubstr("for (y, 0, 4) {\n    if (1 <= n) {\n      conv.i8(&D[y * 384]"));
}

TEST(TensorizeTest, ConvolutionsOfOneByOneAreMatrixProducts) {
  const Conv conv{.ho = 4, .wo = 3, .kh = 1, .kw = 1, .ci = 16, .key = ""};
  EXPECT_THAT(After(conv.Text()),
              HasSubstr("  matmul.i8(&D[0], &P[0], &W[0], 12, 128, 16, 64, 128)"));
  Conv strided = conv;
  strided.stride_h = 2;
  EXPECT_THAT(After(strided.Text()), HasSubstr("  conv.i8("));
  Conv marked = conv;
  marked.key = "matmul";
  EXPECT_THAT(After(marked.Text()), HasSubstr("  matmul.i8("));
  marked.key = "conv";
  EXPECT_THAT(After(marked.Text()), HasSubstr("  conv.i8("));
}

TEST(TensorizeTest, UpdatesWithoutInitialisation) {
  for (const char* order : {"yxclrsi", "yxrscli", "rsiyxcl", "yrxscil"}) {
    EXPECT_THAT(After(Conv{.order = order, .key = "conv_acc"}.Text()), HasSubstr("  conv_acc.i8("));
    EXPECT_THAT(After(Conv{.order = order, .separate = true, .key = ""}.Text()),
                AllOf(HasSubstr("  conv.i8("), Not(HasSubstr("for ("))));
  }
  EXPECT_THAT(After(Conv{.kh = 1, .kw = 1, .order = "yxcli", .key = ""}.Text()),
              HasSubstr("  matmul_acc.i8("));
  // The order of one element's updates is the instruction's.
  EXPECT_THAT(After(Conv{.order = "yxclisr", .key = ""}.Text()), Not(HasSubstr("conv_acc.i8(")));
}

TEST(TensorizeTest, LoopsAroundAConvolution) {
  // Rows wider than the output's: one instruction a row.
  std::string text = Conv{.ci = 16}.Text();
  const std::string from = "D[(y * 3 + x) * 128";
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += from.size()) {
    text.replace(at, from.size(), "D[(y * 4 + x) * 128");
  }
  text.replace(text.find("allocate D: i32[768]"), 20, "allocate D: i32[896]");
  EXPECT_THAT(After(text),
              AllOf(HasSubstr("for (y, 0, 2) {\n    conv.i8("), HasSubstr("(&D[y * 512], ")));
}

TEST(TensorizeTest, NestsThatAreNoConvolution) {
  const auto reason = [](const Conv& conv) {
    // Matched, but not run: some of these nests read beyond their buffers.
    EXPECT_THAT(RunPass(conv.Text(), OnUnit, TestTarget("unit"), false), Not(HasSubstr("conv.i8(")))
        << conv.Text();
    return Decision(conv.Text());
  };
  EXPECT_THAT(reason({.zero = "1"}), HasSubstr("'1' is the constant, not 0"));
  EXPECT_THAT(reason({.guard = "r < 2"}), HasSubstr("a guard stands inside: if (r < 2)"));
  EXPECT_THAT(reason({.product = "i32(P[i] * W[i])"}), HasSubstr("is Cast, not Mul"));
  EXPECT_THAT(reason({.product = "i32(P[i * i]) * i32(W[i])"}), HasSubstr("not linear"));
  EXPECT_THAT(reason({.product = "i32(P[i]) * i32(P[i])"}), HasSubstr("'P' is in nmem, not wmem"));
  // Sums of another type, and what is summed read from where it goes.
  EXPECT_THAT(reason({.sum = "f32", .zero = "f32(0.0)"}), HasSubstr("is i8, not f16"));
  EXPECT_THAT(reason({.product = "i32(i16(P[i]) * i16(W[i]))"}), HasSubstr("is Cast, not Mul"));
  EXPECT_THAT(reason({.ci = 1,
                      .type = "f32",
                      .sum = "f32",
                      .zero = "f32(0.0)",
                      .product = "D[(y + r) * 3 + x + s] * W[l * 128 + c * 64 + r * 2 + s]"}),
              HasSubstr("'D' is read and written at different places"));
  // Filters that change from row to row.
  EXPECT_THAT(reason({.product = "i32(P[y * 20 + r * 20 + x * 5 + s * 5 + i]) * "
                                 "i32(W[l * 128 + c * 64 + r * 10 + s * 5 + i + y])"}),
              HasSubstr("conv.i8: "));
  EXPECT_THAT(reason({.lanes = 32}), HasSubstr("a loop has 32 iterations, not 64"));
  EXPECT_THAT(reason({.order = "yxcl|isr"}), HasSubstr("the loop 'i' has no counterpart"));
  EXPECT_THAT(reason({.pitch_extra = -1}), HasSubstr("it must have"));
}

TEST(TensorizeTest, MachinesWithoutAnInstruction) {
  // MLU270 has no float convolution.
  Conv conv{.type = "f16", .sum = "f32", .zero = "f32(0.0)"};
  EXPECT_THAT(After(conv.Text()), HasSubstr("  conv.f16("));
  const auto on_mlu270 = [](ir::Function& f) { return Tensorize(f, TestTarget("mlu270")); };
  EXPECT_THAT(RunPass(conv.Text(), on_mlu270, TestTarget("mlu270")), Not(HasSubstr("conv.f16(")));
}

TEST(TensorizeTest, Reductions) {
  const auto reduce = [](std::string_view init, std::string_view update, std::string_view type) {
    return After(StrCat("func f(A: ", type, "[640] in, C: ", type, "[5] out) { allocate X: ", type,
                        "[640] @nmem allocate Y: ", type, "[5] @nmem",
                        " for (i, 0, 640) { X[i] = A[i] } for (i, 0, 5) { Y[i] = ", init,
                        " for (j, 0, 64) { Y[i] = ", update, " } }",
                        " for (i, 0, 5) { C[i] = Y[i] } }"));
  };
  EXPECT_THAT(reduce("0.0", "Y[i] + X[i * 128 + j]", "f32"),
              HasSubstr("  reduce_sum.f32(&Y[0], &X[0], 5, 64, 128)"));
  EXPECT_THAT(reduce("-inf", "max(Y[i], X[i * 128 + j])", "f16"),
              HasSubstr("  reduce_max.f16(&Y[0], &X[0], 5, 64, 128)"));
  EXPECT_THAT(reduce("2147483647", "min(Y[i], X[i * 128 + j])", "i32"),
              HasSubstr("  reduce_min.i32(&Y[0], &X[0], 5, 64, 128)"));
  // Another start, another operator, rows whose beginning is not aligned.
  EXPECT_THAT(reduce("1.0", "Y[i] + X[i * 128 + j]", "f32"), Not(HasSubstr("reduce")));
  EXPECT_THAT(reduce("-inf", "max(X[i * 128 + j], Y[i])", "f16"), Not(HasSubstr("reduce")));
  EXPECT_THAT(reduce("0.0", "Y[i] + X[i * 100 + j]", "f32"), Not(HasSubstr("reduce")));
  EXPECT_THAT(reduce("0.0", "Y[i] + X[i * 128 + j * 2]", "f32"), Not(HasSubstr("reduce")));
}

TEST(TensorizeTest, Rows) {
  const auto rows = [](std::string_view statement) {
    return After(StrCat("func f(A: f32[384] in, B: f32[130] in, C: f32[384] out) {",
                        " allocate X: f32[384] @nmem allocate Y: f32[130] @nmem"
                        " for (i, 0, 384) { X[i] = A[i] } for (i, 0, 130) { Y[i] = B[i] }"
                        " for (i, 0, 3) { for (j, 0, 128) { ",
                        statement, " } } for (i, 0, 384) { C[i] = X[i] } }"));
  };
  EXPECT_THAT(rows("X[i * 128 + j] = X[i * 128 + j] - Y[j]"),
              HasSubstr("  row_sub.f32(&X[0], &X[0], &Y[0], 3, 128)"));
  // The operands of a sum may be swapped.
  EXPECT_THAT(rows("X[i * 128 + j] = Y[j] + X[i * 128 + j]"),
              HasSubstr("  row_add.f32(&X[0], &X[0], &Y[0], 3, 128)"));
  EXPECT_THAT(rows("X[i * 128 + j] = Y[j] - X[i * 128 + j]"), Not(HasSubstr("row_")));
  EXPECT_THAT(rows("X[i * 128 + j] = X[i * 128 + j] + Y[i + j]"), Not(HasSubstr("row_")));
  // A row that is overwritten on the way is no constant row.
  EXPECT_THAT(rows("X[i * 128 + j] = X[i * 128 + j] + X[j]"), Not(HasSubstr("row_")));
}

// Random convolutions, in all forms that match and some that do not: the values stay.
TEST(TensorizeTest, RandomConvolutionsKeepTheirMeaning) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % (high - low + 1));
  };
  int instructions = 0;
  int rounds = 0;
  for (; rounds < 80; ++rounds) {
    Conv conv{.ho = pick(1, 3),
              .wo = pick(1, 4),
              .co = 64 * pick(1, 2),
              .kh = pick(1, 3),
              .kw = pick(1, 3),
              .ci = pick(1, 5)};
    conv.stride_h = pick(1, 3);
    conv.stride_w = pick(1, 3);
    conv.dilation_h = pick(1, 3);
    conv.dilation_w = pick(1, 3);
    conv.wi_extra = pick(0, 2) * pick(0, 1);
    conv.pitch_extra = pick(0, 1);
    conv.bank_extra = pick(0, 1) * 64;
    const int type = pick(0, 3);
    conv.type = std::array{"i8", "i16", "f16", "f32"}[type];
    if (type >= 2) {
      conv.sum = "f32";
      conv.zero = "f32(0.0)";
    }
    conv.order = std::array{"yxcl|rsi", "yxclrsi", "ryxcsli", "xycl|rsi", "yxcl|irs"}[pick(0, 4)];
    conv.separate = pick(0, 1) == 1;
    conv.keep_single = pick(0, 1) == 1;
    conv.key = std::array{"", "conv", "tensorize"}[pick(0, 2)];
    conv.first = pick(0, 2);
    if (pick(0, 9) == 0) conv.lanes = 32;
    SCOPED_TRACE(conv.Text());
    const std::string result = After(conv.Text());
    for (std::string_view family : {"conv.", "conv_acc.", "matmul.", "matmul_acc."}) {
      if (result.find(StrCat("  ", family)) != std::string::npos) {
        ++instructions;
        break;
      }
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(instructions, rounds / 3);
}

}  // namespace
}  // namespace polynao
