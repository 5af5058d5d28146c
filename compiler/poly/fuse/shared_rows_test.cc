#include "compiler/poly/fuse/shared_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/text.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao::poly {
namespace {

int LoopsIn(const ir::Function& function) {
  int loops = 0;
  ir::ForEachStmt(function.body, [&](ir::Stmt s) {
    loops += s.Is(ir::StmtKind::kFor) ? 1 : 0;
    return true;
  });
  return loops;
}

// How many loops are left of `body`, in a tile with arrays u, v and w, and what is computed stays.
int Left(const std::string& body) {
  const ir::Function before =
      ir::ParseFunction(
          StrCat("func f(A: f32[9, 70] in, B: f32[9, 70] in, Z: f32[8, 64] out, n: i64) {\n"
                 "  allocate u: f32[8, 64]\n  allocate v: f32[8, 64]\n  allocate w: f32[8, 64]\n"
                 "  for (y: i64, 0, 8) { for (x: i64, 0, 64) {\n"
                 "    u[y, x] = 1.0 v[y, x] = 2.0 w[y, x] = 3.0 } }\n",
                 body,
                 "  for (y: i64, 0, 8) { for (x: i64, 0, 64) {\n"
                 "    Z[y, x] = u[y, x] + v[y, x] * 3.0 + w[y, x] * 7.0 } }\n}\n"))
          .value();
  ir::Function after = before;
  after.body = WithSharedRows(before.body);
  EXPECT_EQ(ir::CompareMeaning(before, after, 1, {.runs = 3}), "") << ir::Print(after);
  return LoopsIn(after) - 4;
}

TEST(SharedRowsTest, LoopsThatReadTheSameRowsBecomeOne) {
  EXPECT_EQ(Left("vectorize (x: i64, 0, 60) { u[1, x] = A[2, x] + A[3, x + 1] }\n"
                 "vectorize (z: i64, 0, 60) { v[2, z + 4] = A[3, z + 2] }\n"
                 "vectorize (x: i64, 0, 60) { w[3, x] = A[2, x] * B[0, x] }\n"),
            1);
  // With the loops around.
  EXPECT_EQ(
      Left("for (y: i64, 0, 8) { vectorize (x: i64, 0, 64) { u[y, x] = A[y, x] + A[y + 1, x] } }\n"
           "for (r: i64, 0, 8) { vectorize (x: i64, 0, 64) { v[r, x] = A[r, x + 6] } }\n"),
      2);
  EXPECT_EQ(Left("vectorize (x: i64, 0, max(min(n, 60), 0)) { u[1, x] = A[2, x] }\n"
                 "vectorize (x: i64, 0, max(min(n, 60), 0)) { v[2, x] = A[2, x + 2] }\n"),
            1);
}

TEST(SharedRowsTest, OthersStay) {
  const std::string first = "vectorize (x: i64, 0, 60) { u[1, x] = A[2, x] }\n";
  for (
      const char* second : {
          "vectorize (x: i64, 0, 60) { v[1, x] = B[2, x] }",  // other rows
          "vectorize (x: i64, 0, 60) { v[1, x] = A[3, x] }",
          "vectorize (x: i64, 0, 61) { v[1, x] = A[2, x] }",  // other bounds
          "vectorize (x: i64, 1, 60) { v[1, x] = A[2, x] }",
          "for (x: i64, 0, 60) { v[1, x] = A[2, x] }",
          "vectorize (x: i64, 0, 60) { v[1, x] = A[2, x] + u[1, 59 - x] }",  // what the first one stores
          "vectorize (x: i64, 0, 60) { u[1, 59 - x] = A[2, x] }",
          "vectorize (x: i64, 0, 60) { Z[1, x] = A[2, x] }",  // who knows what overlaps
      }) {
    EXPECT_EQ(Left(StrCat(first, second, "\n")), 2) << second;
  }
  EXPECT_EQ(Left("vectorize (x: i64, 0, 60) { u[1, x] = A[2, x] + v[1, 59 - x] }\n"
                 "vectorize (x: i64, 0, 60) { v[1, x] = A[2, x] }\n"),
            2);
  // All registers are in use.
  std::string sum = "A[2, x]";
  for (int i = 0; i < 14; ++i) StrAppend(&sum, " + A[", i / 7, ", x + ", i % 7, "]");
  EXPECT_EQ(
      Left(StrCat(
          "vectorize (x: i64, 0, 60) { u[1, x] = ", sum, " }\n",
          "vectorize (x: i64, 0, 60) { v[1, x] = (", sum,
          ") * B[0, x] + A[8, x + 1] + A[7, x] + A[6, x]"
          " + A[5, x] + A[5, x + 1] + A[5, x + 2] + A[5, x + 3] + A[5, x + 4] + A[5, x + 5] }\n")),
      2);
}

}  // namespace
}  // namespace polynao::poly
