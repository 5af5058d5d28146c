// Reductions of columns in two steps: what they are rewritten to means the same, and all values on the card are the
// interpreter's. POLYNAO_RANDOM_CASES=2000 runs more random graphs, POLYNAO_SEED=7 the same ones.
#include "compiler/te/card/folded_reduction.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "base/text.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/random_value.h"
#include "compiler/ir/tensor.h"
#include "compiler/te/graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/machine.h"
#include "tests/end_to_end/card_graph_for_test.h"

namespace polynao {
namespace {

using ir::Expr;
using ir::Type;
using te::Axes;
using te::Body;
using te::Graph;
using te::Reducer;
using te::Shape;
using te::Tensor;

// Y[a, c] = the reduction of 2 X[a, r, s, c] over r < n and s < m, or of what stands in another order in memory.
Tensor Columns(Graph& g, Type type, Reducer reducer, const Shape& extents, bool rows_last) {
  const int64_t a = extents[0], n = extents[1], m = extents[2], c = extents[3];
  const Tensor x = g.Placeholder("X", rows_last ? Shape{a, c, n, m} : Shape{a, n, m, c}, type);
  std::vector<te::ReduceAxis> axes = {g.ReduceAxisOf("r", n)};
  if (m > 1) axes.push_back(g.ReduceAxisOf("s", m));
  return g.Compute("Y", {a, c}, [&](Expr i, Expr k) {
    const Expr s = m > 1 ? Expr(axes[1]) : g.context().Int(g.index_type(), 0);
    const Expr element = rows_last ? x(i, k, axes[0], s) : x(i, axes[0], s, k);
    return Body(reducer, element + element, axes);
  });
}

bool IsFolded(Reducer reducer, const Shape& extents, bool rows_last = false) {
  Graph g("columns");
  return te::FoldReductions(Columns(g, Type::kI32, reducer, extents, rows_last)).has_value();
}

TEST(FoldedReductionsTest, WhatIsFolded) {
  EXPECT_TRUE(IsFolded(Reducer::kSum, {1, 64, 1, 32}));
  EXPECT_TRUE(IsFolded(Reducer::kMax, {2, 49, 1, 3}));
  EXPECT_TRUE(IsFolded(Reducer::kMin, {1, 4, 5, 3}));
  EXPECT_FALSE(IsFolded(Reducer::kSum, {1, 31, 1, 32})) << "a prime";
  EXPECT_FALSE(IsFolded(Reducer::kSum, {1, 15, 1, 32})) << "few places";
  EXPECT_FALSE(IsFolded(Reducer::kSum, {1, 64, 1, 32}, /*rows_last=*/true)) << "rows";
}

TEST(FoldedReductionsTest, MeansTheSameAndRunsOnTheCard) {
  ForRandomSeeds(60, /*scalar_rate=*/1, [](Random& random, unsigned seed, Exceptions& exceptions) {
    const isa::Machine machine =
        TestMachine("mlu370", {StrCat("core.nmem_kib=", random.Pick(1, 8) * 64),
                               StrCat("card.clusters=", random.Pick(1, 4)),
                               StrCat("cluster.cores=", random.Of<int64_t>({1, 2, 4}))});
    const Type type = random.Of<Type>({Type::kI32, Type::kF32});
    const Reducer reducer = random.Of<Reducer>({Reducer::kSum, Reducer::kMax, Reducer::kMin});
    const Shape extents = {
        random.Of<int64_t>({1, 1, 2, 3}), random.Of<int64_t>({1, 5, 16, 31, 36, 49, 64, 100}),
        random.Of<int64_t>({1, 1, 2, 7}), random.Of<int64_t>({1, 3, 63, 64, 65, 128})};
    Graph g("columns");
    const Tensor y = Columns(g, type, reducer, extents, random.OneIn(5));
    SCOPED_TRACE(StrCat(ir::TypeName(type), " ", extents[0], "x", extents[1], "x", extents[2], "x",
                        extents[3]));
    if (const std::optional<Tensor> folded = te::FoldReductions(y)) {
      // Of small whole numbers sums of floats are exact in any order.
      const std::vector<ir::Tensor> inputs = Inputs(y, seed, ir::Values::kExact);
      const absl::StatusOr<ir::Tensor> expected = Meaning(y, inputs);
      const absl::StatusOr<ir::Tensor> found = Meaning(*folded, inputs);
      ASSERT_TRUE(expected.ok() && found.ok()) << expected.status() << found.status();
      EXPECT_EQ(ir::FirstDifference(*found, *expected), -1);
    }
    MustAgree(y, machine, random.OneIn(2) ? 0 : random.Pick(0, 40), seed, exceptions);
  });
}

}  // namespace
}  // namespace polynao
