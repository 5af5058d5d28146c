#include "compiler/passes/tensorize.h"

#include <random>

#include "base/text.h"
#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

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
      After("func f(A: f16[n * 4] in, B: f16[4] out, n: i32) { allocate L: f16[64] @nmem"
            " for (t, 0, n) { for (i, 0, 4) { L[i] = A[t * 4 + i] } }"
            " for (i, 0, n) { L[i] = A[i] } for (i, 0, 4) { B[i] = L[i] } }"),
      AllOf(HasSubstr("memcpy.f16.nmem.gmem.async(&L[0], &A[t * 4], 4, 1, 0, 0)"),
            HasSubstr("memcpy.f16.nmem.gmem.async(&L[0], &A[0], cast(i64, max(n, 0)), 1, 0, 0)")));
}

TEST(TensorizeTest, LoopsThatDoNotStartAtZero) {
  EXPECT_THAT(
      After("func f(A: f16[64] in, B: f16[64] out) { allocate L: f16[64] @nmem"
            " for (i, 5, 10) { L[i + 1] = A[i * 1 + 2] } for (i, 5, 10) { B[i] = L[i + 1] } }"),
      AllOf(HasSubstr("(&L[6], &A[7], 10, 1, 0, 0)"), HasSubstr("(&B[5], &L[6], 10, 1, 0, 0)")));
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
  EXPECT_THAT(marked("X[i * 2] = X[i] + Y[i]"), HasSubstr("'X' has the stride i64(2) over 'i'"));
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
    std::string text = StrCat(
        "func f(A: ", type, "[", rows * step + offset + 1, "] in, B: ", type, "[", padded, "]) {",
        " allocate X: ", type, "[", padded, "] @nmem allocate Y: ", type, "[", padded, "] @nmem",
        " for (i, 0, ", padded, ") { Y[i] = B[i] }", " for (i, 0, ", rows, ") { for (j, 0, ",
        columns, ") {", "   X[i * ", columns, " + j + ", offset, "] = A[i * ", step, " + j + ",
        offset, "] } }", " for (i, 0, ", rows, ") { for (j, 0, ", columns, ") {", "   Y[i * ",
        columns, " + j + ", offset, "] = X[i * ", columns, " + j + ", offset, "] ", op, " Y[i * ",
        columns, " + j + ", offset, "] } }", " for (i, 0, ", padded, ") { B[i] = Y[i] } }");
    SCOPED_TRACE(text);
    const std::string result = After(text);
    if (result.find("memcpy") != std::string::npos) ++instructions;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(instructions, 200);
}

}  // namespace
}  // namespace polynao
