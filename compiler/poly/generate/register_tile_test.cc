#include "compiler/poly/generate/register_tile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/text.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao::poly {
namespace {

using testing::HasSubstr;
using testing::Not;

ir::Function Parse(const std::string& text) {
  absl::StatusOr<ir::Function> f = ir::ParseFunction(text);
  EXPECT_TRUE(f.ok()) << f.status();
  return *std::move(f);
}

// The function with its loop over k, which is inside of everything else, over a register tile.
ir::Function Tiled(const ir::Function& f, const std::vector<int64_t>& sizes) {
  ir::Function result = f;
  result.body = WithRegisterTile(f.body, sizes);
  return result;
}

// for (k) for (i, a, m) for (j, b, n), with constants for bounds where given.
std::string Product(const std::string& m, const std::string& n, const std::string& update) {
  return StrCat(
      "func f(C: f32[12, 48], A: f32[12, 8], B: f32[8, 48], s: f32[8], k: i64, m: i64, n: i64) {\n"
      "  for (p: i64, 0, min(k, 8)) { for (i: i64, 1, ",
      m, ") { for (j: i64, 2, ", n, ") {\n    ", update, " } } }\n}\n");
}

// All iterations along i and j up to the sizes of the tile, and empty loops.
void ExpectSameForAllExtents(const std::string& update, int64_t rows, int64_t lanes) {
  for (int64_t m = -1; m <= rows; ++m) {
    for (int64_t n = -1; n <= lanes; ++n) {
      // Extents that are constants for the test are not for the rewriting.
      const ir::Function f = Parse(Product(StrCat("m - m + ", m), StrCat("n - n + ", n), update));
      const ir::Function tiled = Tiled(f, {rows, lanes});
      ASSERT_NE(tiled.body, f.body);
      const auto seed = static_cast<uint64_t>(m * 100 + n + 200);
      ASSERT_EQ(ir::CompareMeaning(f, tiled, seed, {.draws = 6, .runs = 1}), "") << m << " x " << n;
    }
  }
}

TEST(RegisterTileTest, EveryPartOfATileMeansTheSame) {
  ExpectSameForAllExtents("C[i, j] = C[i, j] + A[i, p] * B[p, j]", 3, 16);
  ExpectSameForAllExtents("C[i, j] = C[i, j] + B[p, j] / s[p]", 1, 8);
}

TEST(RegisterTileTest, Triangles) {
  // Rows of which each is one longer, or two shorter, than the last, up to the tile's end.
  for (int64_t m = 0; m <= 3; ++m) {
    for (int64_t first = -3; first <= 24; ++first) {
      for (const char* step : {"+ i", "- 2 * i"}) {
        const ir::Function f =
            Parse(Product(StrCat("m - m + ", m), StrCat("min(16, n - n + ", first, " ", step, ")"),
                          "C[i, j] = C[i, j] + A[i, p] * B[p, j]"));
        const ir::Function tiled = Tiled(f, {3, 16});
        ASSERT_NE(tiled.body, f.body);
        const auto seed = static_cast<uint64_t>(m * 100 + first + 200);
        ASSERT_EQ(ir::CompareMeaning(f, tiled, seed, {.draws = 6, .runs = 1}), "")
            << m << ", " << first << step;
      }
    }
  }
}

TEST(RegisterTileTest, TilesThatAreWholeForSomeIterationsAround) {
  // p is 0 to 7: rows that begin to exist, cease to, or both; and lanes.
  for (const char* m : {"min(3, p - 2)", "min(3, 6 - p)", "min(3, min(p, 8 - p))",
                        "min(3, p + (n - n) + 9)", "min(3, 1 - p)", "min(3, p - 6)"}) {
    for (const char* n : {"min(16, 12 + p)", "min(16, 18 - p)", "min(16, n - n + 16)",
                          "min(16, n - n + 9)", "min(16, 11 + p + i)"}) {
      const ir::Function f = Parse(Product(m, n, "C[i, j] = C[i, j] + A[i, p] * B[p, j]"));
      const ir::Function tiled = Tiled(f, {3, 16});
      ASSERT_NE(tiled.body, f.body) << m << " x " << n;
      EXPECT_THAT(ir::Print(tiled.body), HasSubstr("unroll"));
      ASSERT_EQ(ir::CompareMeaning(f, tiled, 1, {.draws = 12, .runs = 6}), "") << m << " x " << n;
    }
  }
}

// The interpreter names an index that is out of range.
TEST(RegisterTileTest, IdleLanesReadNothing) {
  for (int64_t n = 0; n <= 16; ++n) {
    const ir::Function f = Parse(
        StrCat("func f(C: f32[2, ", n, "], A: f32[2, 8], B: f32[8, ", n,
               "], n: i64) { for (p: i64, 0, 8) { for (i: i64, 0, 2) { for (j: i64, 0, n - n + ", n,
               ") { C[i, j] = C[i, j] + A[i, p] * B[p, j] } } } }"));
    const ir::Function tiled = Tiled(f, {2, 16});
    ASSERT_NE(tiled.body, f.body);
    ASSERT_EQ(ir::CompareMeaning(f, tiled, 1, {.draws = 6, .runs = 1}), "") << n;
  }
}

TEST(RegisterTileTest, LoadsOfSelectsStayWhereTheyAre) {
  // A[i, p] and s[p] stand before the vector; what a select guards must not.
  const ir::Function f =
      Parse(Product("m - m + 2", "n - n + 5",
                    "C[i, j] = C[i, j] + A[i, p] * s[p] + (p < 0 ? A[i - 99, p] : B[p, j])"));
  const ir::Function tiled = Tiled(f, {3, 16});
  EXPECT_EQ(ir::CompareMeaning(f, tiled, 1), "");
  const std::string text = ir::Print(tiled.body);
  EXPECT_THAT(text, HasSubstr("let A: f32 = A[i, p]"));
  EXPECT_THAT(text, Not(HasSubstr("= A[i - 99, p]")));
}

TEST(RegisterTileTest, ConstantExtents) {
  // A tile that always is whole needs no other form; one that never is stays as it was.
  const ir::Function whole = Parse(Product("3", "16", "C[i, j] = C[i, j] + A[i, p] * B[p, j]"));
  EXPECT_THAT(ir::Print(Tiled(whole, {3, 16}).body), Not(HasSubstr("if")));
  EXPECT_EQ(ir::CompareMeaning(whole, Tiled(whole, {3, 16}), 1), "");
  const ir::Function part = Parse(Product("3", "15", "C[i, j] = C[i, j] + A[i, p] * B[p, j]"));
  EXPECT_EQ(Tiled(part, {3, 16}).body, part.body);
}

TEST(RegisterTileTest, BoundsThatDependOnOtherLoopsStay) {
  // Of max(i, 3) and i % 3, corners do not tell what is between; where p / 2 and 2 * p reach 3, no sum tells.
  for (const auto& [m, n] :
       {std::pair("p / 2", "n"), std::pair("2 * p", "n"), std::pair("m", "max(p, 2)"),
        std::pair("m", "i % 3"), std::pair("m", "max(i, 3)"), std::pair("m", "0 - min(i, 3)")}) {
    const ir::Function f = Parse(Product(m, n, "C[i, j] = C[i, j] + A[i, p] * B[p, j]"));
    EXPECT_EQ(Tiled(f, {3, 16}).body, f.body);
  }
}

TEST(RegisterTileTest, NoRowsWhereOtherElementsAreUsed) {
  for (const char* update : {"C[i, j] = C[i, j] + C[0, j]",  // another element of C
                             "C[p, j] = C[p, j] + A[i, p]",  // another one for each p
                             "{ C[i, j] = 0.0 B[p, j] = 1.0 }"}) {
    const ir::Function f = Parse(Product("min(m, 3)", "min(n, 16)", update));
    EXPECT_THAT(ir::Print(Tiled(f, {3, 16}).body), Not(HasSubstr("C.row"))) << update;
  }
}

TEST(RegisterTileTest, Sum) {
  const ir::Function f = Parse(
      "func f(x: f64[4], A: f64[4, 8], n: i64) {\n"
      "  for (k: i64, 0, min(n, 8)) { x[2] = x[2] + A[1, k] }\n}\n");
  ir::Function with_sum = f;
  with_sum.body = WithSum(f.body);
  EXPECT_THAT(ir::Print(with_sum.body), HasSubstr("x.sum[] = x.sum[] + A[1, k]"));
  EXPECT_EQ(ir::CompareMeaning(f, with_sum, 1), "");
  const ir::Function moves =
      Parse("func f(x: f64[8], n: i64) { for (k: i64, 0, min(n, 8)) { x[k] = x[k] + 1.0 } }\n");
  EXPECT_EQ(WithSum(moves.body), moves.body);
  // An empty loop touches no element, not even one that is not there.
  const ir::Function empty = Parse(
      "func f(x: f64[4], n: i64) { for (k: i64, 0, n - n) { x[n - n + 9] = x[n - n + 9] + 1.0 } }");
  with_sum.body = WithSum(empty.body);
  ASSERT_NE(with_sum.body, empty.body);
  with_sum.params = empty.params;
  EXPECT_EQ(ir::CompareMeaning(empty, with_sum, 1), "");
}

}  // namespace
}  // namespace polynao::poly
