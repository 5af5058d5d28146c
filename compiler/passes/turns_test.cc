#include "compiler/passes/turns.h"

#include <string>

#include "base/text.h"
#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<bool> RunTurns(ir::Function& f) {
  const ir::Stmt body = ArrangeTurns(f.body, TestTarget());
  const bool changed = body != f.body;
  f.body = body;
  return changed;
}

// A loop over turns around one core, which does `work` in each: F has a row for each core, A one for each turn.
std::string Turns(std::string_view work) {
  return RunPass(
      StrCat(
          "func f(F: i8[64] in, A: i8[448] in, C: i8[448] out) { thread (cid, 1) {"
          " for (t, 0, 7) { allocate R: i8[64] @smem thread (tid, 1) { allocate X: i8[64] @nmem ",
          work,
          " memcpy.i8.smem.nmem.async(&R[tid * 64], &X[0], 64, 1, 0, 0) }"
          " memcpy.i8.gmem.smem.async(&C[t * 64], &R[0], 64, 1, 0, 0) } } }"),
      RunTurns, TestTarget());
}
constexpr std::string_view kLoadX = "memcpy.i8.nmem.gmem.async(&X[0], &A[t * 64], 64, 1, 0, 0) ";

TEST(TurnsTest, WhatIsTheSameInEachTurnGoesBeforeTheLoop) {
  const std::string once =
      Turns(StrCat("allocate W: i8[64] @nmem allocate V: i8[64] @nmem"
                   " memcpy.i8.nmem.gmem.async(&W[0], &F[tid * 64], 64, 1, 0, 0) ",
                   kLoadX, "maxs.i8(&V[0], &W[0], i8(3), 64) max.i8(&X[0], &X[0], &V[0], 64)"));
  EXPECT_EQ(once, R"(func f(F: i8[64] in, A: i8[448] in, C: i8[448] out) {
  thread (cid, 1) {
    allocate W: i8[64] @nmem
    allocate V: i8[64] @nmem
    thread (tid, 1) {
      memcpy.i8.nmem.gmem.async(&W[0], &F[tid * 64], 64, 1, 0, 0)
      maxs.i8(&V[0], &W[0], i8(3), 64)
    }
    for (t, 0, 7) {
      allocate R: i8[64] @smem
      thread (tid, 1) {
        allocate X: i8[64] @nmem
        memcpy.i8.nmem.gmem.async(&X[0], &A[t * 64], 64, 1, 0, 0)
        max.i8(&X[0], &X[0], &V[0], 64)
        memcpy.i8.smem.nmem.async(&R[tid * 64], &X[0], 64, 1, 0, 0)
      }
      memcpy.i8.gmem.smem.async(&C[t * 64], &R[0], 64, 1, 0, 0)
    }
  }
}
)");
}

// The loop over turns stands directly in the one over clusters if nothing has gone.
MATCHER(Stays, "") {
  return arg.find("thread (cid, 1) {\n    for (t, 0, 7) {") != std::string::npos;
}

TEST(TurnsTest, WhatChangesStays) {
  constexpr std::string_view kLoadW =
      "allocate W: i8[64] @nmem memcpy.i8.nmem.gmem.async(&W[0], &F[tid * 64], 64, 1, 0, 0) ";
  constexpr std::string_view kUse = "max.i8(&X[0], &X[0], &W[0], 64)";
  EXPECT_THAT(Turns(StrCat(kLoadX, kLoadW, kUse)), Not(Stays()));
  // Of another row in each turn.
  EXPECT_THAT(Turns(StrCat(kLoadX, "allocate W: i8[64] @nmem ",
                           "memcpy.i8.nmem.gmem.async(&W[0], &A[t * 64], 64, 1, 0, 0) ", kUse)),
              Stays());
  // Other values are stored there in a turn.
  EXPECT_THAT(Turns(StrCat(kLoadX, kLoadW, "max.i8(&W[0], &W[0], &X[0], 64) ", kUse)), Stays());
  // The source changes: C's first row is what turn 0 has stored.
  EXPECT_THAT(Turns(StrCat(kLoadX, "allocate W: i8[64] @nmem ",
                           "memcpy.i8.nmem.gmem.async(&W[0], &C[0], 64, 1, 0, 0) ", kUse)),
              Stays());
  // Several copies are asked for.
  EXPECT_THAT(Turns(StrCat(kLoadX, "pragma \"double_buffer\" { ", kLoadW, kUse, " }")), Stays());
}

// A loop that fills what is kept goes with what it allocates itself; one that reads what comes in a turn stays.
TEST(TurnsTest, WhatALoopAllocatesGoesWithIt) {
  const auto made = [](std::string_view of) {
    return Turns(StrCat("allocate W: i8[128] @nmem ", kLoadX,
                        "for (i, 0, 2) { allocate D: i8[64] @nmem"
                        " maxs.i8(&D[0], ",
                        of,
                        ", i8(3), 64) fill.i8(&W[i * 64], i8(0), 64)"
                        " memcpy.i8.nmem.nmem.async(&W[i * 64], &D[0], 64, 1, 0, 0) }"
                        " max.i8(&X[0], &X[0], &W[0], 64)"));
  };
  EXPECT_THAT(made("&X[0]"), HasSubstr("for (t, 0, 7) {\n      allocate R"));
  EXPECT_THAT(made("&X[0]"), Not(HasSubstr("for (i, 0, 2) {\n        allocate D")));
  std::string kept = Turns(StrCat("allocate W: i8[128] @nmem ", kLoadX,
                                  "for (i, 0, 2) { allocate D: i8[64] @nmem"
                                  " fill.i8(&D[0], i8(3), 64)"
                                  " memcpy.i8.nmem.nmem.async(&W[i * 64], &D[0], 64, 1, 0, 0) }"
                                  " max.i8(&X[0], &X[0], &W[0], 64)"));
  EXPECT_THAT(kept, HasSubstr("thread (tid, 1) {\n      for (i, 0, 2) {\n        allocate D"));
}

// What a core only copies out of the turn's SMEM stands in a loop of its own, in the allocations of what it fills.
TEST(TurnsTest, WhatIsFetchedIsALoopOfItsOwn) {
  const auto program = [](std::string_view between) {
    return RunPass(
        StrCat("func f(A: i8[448] in, C: i8[448] out) { thread (cid, 1) { for (t, 0, 7) {"
               " allocate S: i8[64] @smem allocate R: i8[64] @smem"
               " memcpy.i8.smem.gmem.async(&S[0], &A[t * 64], 64, 1, 0, 0)"
               " thread (tid, 1) { allocate Y: i8[64] @nmem",
               " pragma \"double_buffer\" { allocate X: i8[64] @nmem ", between,
               " memcpy.i8.nmem.smem.async(&X[0], &S[tid * 64], 64, 1, 0, 0)"
               " maxs.i8(&Y[0], &X[0], i8(3), 64)"
               " memcpy.i8.smem.nmem.async(&R[tid * 64], &Y[0], 64, 1, 0, 0) } }"
               " memcpy.i8.gmem.smem.async(&C[t * 64], &R[0], 64, 1, 0, 0) } } }"),
        RunTurns, TestTarget());
  };
  EXPECT_EQ(program(""), R"(func f(A: i8[448] in, C: i8[448] out) {
  thread (cid, 1) {
    for (t, 0, 7) {
      allocate S: i8[64] @smem
      allocate R: i8[64] @smem
      memcpy.i8.smem.gmem.async(&S[0], &A[t * 64], 64, 1, 0, 0)
      pragma "double_buffer" {
        allocate X: i8[64] @nmem
        thread (tid, 1) {
          memcpy.i8.nmem.smem.async(&X[0], &S[tid * 64], 64, 1, 0, 0)
        }
        thread (tid, 1) {
          allocate Y: i8[64] @nmem
          maxs.i8(&Y[0], &X[0], i8(3), 64)
          memcpy.i8.smem.nmem.async(&R[tid * 64], &Y[0], 64, 1, 0, 0)
        }
      }
      memcpy.i8.gmem.smem.async(&C[t * 64], &R[0], 64, 1, 0, 0)
    }
  }
}
)");
  // Margins are filled with it; what is computed of anything else is no copy.
  EXPECT_THAT(
      program("fill.i8(&X[0], i8(0), 64)"),
      HasSubstr("fill.i8(&X[0], i8(0), 64)\n          memcpy.i8.nmem.smem.async(&X[0], &S[tid"
                " * 64], 64, 1, 0, 0)\n        }\n        thread"));
  EXPECT_THAT(program("maxs.i8(&X[0], &Y[0], i8(3), 64)"),
              HasSubstr("thread (tid, 1) {\n        allocate"));
}

// A cluster that loads A and then B, and whose cores have `work`.
std::string OnlyTurn(std::string_view work) {
  return RunPass(
      StrCat("func f(A: i8[64] in, B: i8[64] in, C: i8[64] out) { thread (cid, 1) {"
             " allocate S: i8[64] @smem allocate T: i8[64] @smem allocate R: i8[64] @smem"
             " memcpy.i8.smem.gmem.async(&S[0], &A[0], 64, 1, 0, 0)"
             " memcpy.i8.smem.gmem.async(&T[0], &B[0], 64, 1, 0, 0)"
             " thread (tid, 1) { allocate X: i8[64] @nmem allocate Y: i8[64] @nmem"
             " allocate Z: i8[64] @nmem ",
             work,
             " memcpy.i8.smem.nmem.async(&R[0], &Z[0], 64, 1, 0, 0) }"
             " memcpy.i8.gmem.smem.async(&C[0], &R[0], 64, 1, 0, 0) } }"),
      RunTurns, TestTarget());
}

// What is made of the first load goes in front of the second one; what is only filled is filled first of all.
TEST(TurnsTest, WhatNeedsNotTheLastLoadOfTheOnlyTurnGoesBeforeIt) {
  constexpr std::string_view kCopyX = "memcpy.i8.nmem.smem.async(&X[0], &S[0], 64, 1, 0, 0) ",
                             kCopyY = "memcpy.i8.nmem.smem.async(&Y[0], &T[0], 64, 1, 0, 0) ",
                             kSums = "fill.i8(&Z[0], i8(0), 64) max.i8(&Z[0], &X[0], &Y[0], 64)";
  EXPECT_EQ(OnlyTurn(StrCat(kCopyX, "maxs.i8(&X[0], &X[0], i8(3), 64) ", kCopyY, kSums)),
            R"(func f(A: i8[64] in, B: i8[64] in, C: i8[64] out) {
  thread (cid, 1) {
    allocate S: i8[64] @smem
    allocate T: i8[64] @smem
    allocate R: i8[64] @smem
    memcpy.i8.smem.gmem.async(&S[0], &A[0], 64, 1, 0, 0)
    allocate X: i8[64] @nmem
    allocate Z: i8[64] @nmem
    thread (tid, 1) {
      fill.i8(&Z[0], i8(0), 64)
      memcpy.i8.nmem.smem.async(&X[0], &S[0], 64, 1, 0, 0)
      maxs.i8(&X[0], &X[0], i8(3), 64)
    }
    memcpy.i8.smem.gmem.async(&T[0], &B[0], 64, 1, 0, 0)
    thread (tid, 1) {
      allocate Y: i8[64] @nmem
      memcpy.i8.nmem.smem.async(&Y[0], &T[0], 64, 1, 0, 0)
      max.i8(&Z[0], &X[0], &Y[0], 64)
      memcpy.i8.smem.nmem.async(&R[0], &Z[0], 64, 1, 0, 0)
    }
    memcpy.i8.gmem.smem.async(&C[0], &R[0], 64, 1, 0, 0)
  }
}
)");
  // Nothing is made of the first load alone, or nothing of a load at all.
  const auto stays = HasSubstr("&A[0], 64, 1, 0, 0)\n    memcpy.i8.smem.gmem.async(&T[0], &B[0]");
  EXPECT_THAT(OnlyTurn(StrCat(kCopyX, "max.i8(&X[0], &X[0], &Y[0], 64) ", kCopyY, kSums)), stays);
  EXPECT_THAT(OnlyTurn(StrCat("fill.i8(&X[0], i8(0), 64) ", kCopyY, kSums)), stays);
  // What something else accesses before is not filled first.
  EXPECT_THAT(OnlyTurn(StrCat(kCopyX, "max.i8(&X[0], &X[0], &Z[0], 64) ", kCopyY, kSums)),
              Not(HasSubstr("{\n      fill.i8(&Z[0]")));
  const std::string used_before =
      OnlyTurn(StrCat(kCopyX, "maxs.i8(&X[0], &X[0], i8(3), 64) ", kCopyY,
                      "max.i8(&Y[0], &Y[0], &Z[0], 64) ", kSums));
  EXPECT_THAT(used_before, Not(stays));
  EXPECT_THAT(used_before, Not(HasSubstr("{\n      fill.i8(&Z[0]")));
  // A cluster whose cores have another loop behind this one stays as it is.
  constexpr std::string_view kBehind =
      " } thread (tid, 1) { allocate V: i8[64] @nmem allocate Z: i8[64] @nmem"
      " memcpy.i8.nmem.smem.async(&V[0], &S[0], 64, 1, 0, 0) maxs.i8(&Z[0], &V[0], i8(1), 64)";
  EXPECT_THAT(OnlyTurn(StrCat(kCopyX, "maxs.i8(&X[0], &X[0], i8(3), 64) ", kCopyY, kSums, kBehind)),
              stays);
}

// What computation would fill when it needs it is filled while the turn's part is copied, behind the margins that the
// copy waits for.
TEST(TurnsTest, FillsStandBehindCopies) {
  const auto program = [](std::string_view before_sums) {
    return RunPass(
        StrCat("func f(F: i8[64] in, A: i8[448] in, C: i8[448] out) { thread (cid, 1) {"
               " for (t, 0, 7) { allocate S: i8[64] @smem allocate R: i8[64] @smem"
               " memcpy.i8.smem.gmem.async(&S[0], &A[t * 64], 64, 1, 0, 0)"
               " thread (tid, 1) { allocate W: i8[64] @nmem allocate X: i8[64] @nmem"
               " allocate Z: i8[64] @nmem memcpy.i8.nmem.gmem.async(&W[0], &F[0], 64, 1, 0, 0)"
               " fill.i8(&X[0], i8(0), 64) memcpy.i8.nmem.smem.async(&X[0], &S[0], 64, 1, 0, 0) ",
               before_sums,
               " fill.i8(&Z[0], i8(0), 64) max.i8(&Z[0], &X[0], &W[0], 64)"
               " memcpy.i8.smem.nmem.async(&R[0], &Z[0], 64, 1, 0, 0) }"
               " memcpy.i8.gmem.smem.async(&C[t * 64], &R[0], 64, 1, 0, 0) } } }"),
        RunTurns, TestTarget());
  };
  const auto behind_copy = HasSubstr("&S[0], 64, 1, 0, 0)\n        fill.i8(&Z[0]");
  EXPECT_THAT(program("maxs.i8(&X[0], &X[0], i8(3), 64)"), behind_copy);
  EXPECT_THAT(program("maxs.i8(&X[0], &Z[0], i8(3), 64)"), Not(behind_copy));
}

// What reads a buffer that does not go stays, and so does all that others have written before it.
TEST(TurnsTest, AChainGoesAsFarAsItIsInvariant) {
  const std::string text =
      Turns(StrCat("allocate U: i8[64] @nmem allocate V: i8[64] @nmem allocate W: i8[64] @nmem"
                   " memcpy.i8.nmem.gmem.async(&U[0], &F[0], 64, 1, 0, 0) ",
                   kLoadX,
                   "max.i8(&V[0], &U[0], &X[0], 64) maxs.i8(&W[0], &V[0], i8(1), 64)"
                   " max.i8(&X[0], &X[0], &W[0], 64)"));
  EXPECT_THAT(text, HasSubstr("thread (cid, 1) {\n    allocate U: i8[64] @nmem\n    thread"));
  EXPECT_THAT(text, HasSubstr("allocate V: i8[64] @nmem\n        allocate W"));
}

}  // namespace
}  // namespace polynao
