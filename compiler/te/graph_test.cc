#include "compiler/te/graph.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::te {
namespace {

using ::testing::HasSubstr;

TEST(GraphTest, ElementCounts) {
  EXPECT_EQ(ElementCount({}), 1);
  EXPECT_EQ(ElementCount({3, 4}), 12);
  EXPECT_EQ(ElementCount({3, 0, 4}), 0);
  EXPECT_EQ(ElementCount({int64_t{1} << 40, int64_t{1} << 40}), int64_t{1} << 62);
}

TEST(GraphTest, TensorsKeepTheirGraphAlive) {
  Tensor t;
  {
    Graph g("f");
    t = g.Placeholder("A", {2, 3}, Type::kF32);
  }
  EXPECT_EQ(t.name(), "A");
  EXPECT_EQ(t.rank(), 2u);
  EXPECT_EQ(t.type(), Type::kF32);
  EXPECT_EQ(ir::Print(t(1, 2)), "A[1, 2]");
}

TEST(GraphTest, ComputesTakeAxesOneByOneOrTogether) {
  Graph g("f");
  Tensor a = g.Placeholder("A", {2, 3}, Type::kF32);
  Tensor b = g.Compute("B", {2, 3}, [&](Expr x, Expr y) { return a(x, y); }, {"x", "y"});
  Tensor c = g.Compute("C", {2, 3}, [&](const Axes& i) { return a(i); });
  Tensor d = g.Compute("D", {}, [&] { return a(0, 1); });
  EXPECT_EQ(ir::Print(b.operation()->bodies[0].value), "A[x, y]");
  EXPECT_EQ(ir::Print(c.operation()->bodies[0].value), "A[i, j]");
  EXPECT_EQ(ir::Print(d.operation()->bodies[0].value), "A[0, 1]");
  EXPECT_EQ(d.rank(), 0u);
  EXPECT_TRUE(g.status().ok());
}

TEST(GraphTest, NamesOfManyAxes) {
  Graph g("f");
  Tensor a = g.Placeholder("A", {1, 1, 1, 1, 1, 1, 1}, Type::kF32);
  Tensor b = g.Compute("B", a.shape(), [&](const Axes& i) { return a(i); }, {"", "row"});
  EXPECT_EQ(b.operation()->axis_names,
            (std::vector<std::string>{"i", "row", "k", "l", "m", "n", "i6"}));
}

TEST(GraphTest, IndicesBecomeTheIndexType) {
  Graph g("f", Type::kI64);
  Tensor index = g.Placeholder("I", {4}, Type::kI32);
  Tensor a = g.Placeholder("A", {4}, Type::kF32);
  Tensor b = g.Compute("B", {4}, [&](Expr i) { return a(index(i)); });
  EXPECT_EQ(ir::Print(b.operation()->bodies[0].value), "A[cast(i64, I[i])]");
  EXPECT_TRUE(g.status().ok());
}

TEST(GraphTest, LargeTensorsSwitchToWideIndices) {
  Graph g("f");
  EXPECT_EQ(g.index_type(), Type::kI32);
  g.Placeholder("A", {1 << 16, 1 << 14}, Type::kI8);
  EXPECT_EQ(g.index_type(), Type::kI32);
  g.Placeholder("B", {1 << 16, 1 << 15}, Type::kI8);
  EXPECT_EQ(g.index_type(), Type::kI64);
}

TEST(GraphTest, SelectTakesNumbers) {
  Graph g("f");
  Tensor a = g.Placeholder("A", {4}, Type::kF16);
  Tensor i = g.Placeholder("I", {4}, Type::kI8);
  EXPECT_EQ(ir::Print(Select(i(0) < 1, a(0), 1.5)), "select(I[0] < 1, A[0], 1.5)");
  EXPECT_EQ(ir::Print(Select(i(0) < 1, i(0), -1)), "select(I[0] < 1, I[0], -1)");
}

TEST(GraphTest, Reducers) {
  ir::Context context;
  const Expr x = context.NewVar("x", Type::kI32);
  const Expr y = context.NewVar("y", Type::kI32);
  EXPECT_EQ(ir::Print(Combine(Reducer::kSum, x, y)), "x + y");
  EXPECT_EQ(ir::Print(Combine(Reducer::kProd, x, y)), "x * y");
  EXPECT_EQ(ir::Print(Combine(Reducer::kMin, x, y)), "min(x, y)");
  EXPECT_EQ(ir::Print(Combine(Reducer::kMax, x, y)), "max(x, y)");
  EXPECT_EQ(Identity(Reducer::kMax, context, Type::kI64).int_value(),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Identity(Reducer::kMin, context, Type::kI16).int_value(), 32767);
}

TEST(GraphTest, ReshapeOfAnInputIsAView) {
  Graph g("f");
  Tensor a = g.Placeholder("A", {4, 6}, Type::kF32);
  EXPECT_EQ(g.Reshape(a, {4, 6}), a);
  Tensor flat = g.Flatten(a);
  EXPECT_EQ(flat.shape(), Shape{24});
  EXPECT_EQ(flat.operation()->base, a.operation());
  EXPECT_EQ(g.Reshape(flat, {2, 12}).operation()->base, a.operation());
  EXPECT_EQ(g.Reshape(flat, {4, 6}), a);
  Tensor scalar = g.Placeholder("S", {}, Type::kF32);
  EXPECT_EQ(g.Flatten(scalar).shape(), Shape{1});
}

TEST(GraphTest, ReshapeOfAComputeIsACompute) {
  Graph g("f");
  Tensor a = g.Placeholder("A", {4, 6}, Type::kF32);
  Tensor b = g.Compute("B", {4, 6}, [&](const Axes& i) { return a(i); });
  EXPECT_EQ(ir::Print(g.Flatten(b).operation()->bodies[0].value), "B[i / 6, i % 6]");
  EXPECT_EQ(ir::Print(g.Reshape(b, {2, 2, 6}).operation()->bodies[0].value),
            "B[((i * 2 + j) * 6 + k) / 6, ((i * 2 + j) * 6 + k) % 6]");
}

TEST(GraphTest, MistakesAreNamed) {
  struct Mistake {
    std::string_view message;
    std::function<void(Graph&, const Tensor& a)> program;
  };
  const std::vector<Mistake> cases = {
      {"graph f: tensor B: extent 1 is -2, expected 0 or more",
       [](Graph& g, auto&) { g.Placeholder("B", {2, -2}, Type::kF32); }},
      {"graph f: tensor C: extent 0 is -1, expected 0 or more",
       [](Graph& g, auto& a) { g.Compute("C", {-1}, [&](Expr i) { return a(i, i); }); }},
      {"graph f: tensor A has 2 dimensions, 1 indices given",
       [](Graph& g, auto& a) { g.Compute("C", {4}, [&](Expr i) { return a(i); }); }},
      {"graph f: tensor A is indexed by a value of type f32, expected an integer",
       [](Graph& g, auto& a) { g.Compute("C", {4}, [&](Expr i) { return a(i, a(i, i)); }); }},
      {"graph f: compute C has 1 dimensions, but its function takes 2",
       [](Graph& g, auto& a) { g.Compute("C", {4}, [&](Expr i, Expr j) { return a(i, j); }); }},
      {"graph f: compute C has 1 dimensions, 2 axis names given",
       [](Graph& g, auto& a) { g.Compute("C", {4}, [&](Expr i) { return a(i, i); }, {"x", "y"}); }},
      {"graph f: reduce axis k has extent -1, expected 0 or more",
       [](Graph& g, auto&) { g.ReduceAxisOf("k", -1); }},
      {"graph f: reduce axis k from 0 of extent 4000000000 needs i64 indices",
       [](Graph& g, auto&) { g.ReduceAxisOf("k", 4'000'000'000); }},
      {"graph f: compute C uses the variable k, which is neither an axis",
       [](Graph& g, auto& a) {
         const ReduceAxis k = g.ReduceAxisOf("k", 4);
         g.Compute("C", {4}, [&](Expr i) { return a(i, k); });
       }},
      {"graph f: compute C reduces twice over axis k",
       [](Graph& g, auto& a) {
         const ReduceAxis k = g.ReduceAxisOf("k", 4);
         g.Compute("C", {4}, [&](Expr i) { return ReduceSum(a(i, k), k, k); });
       }},
      {"graph f: compute C reduces its values over different axes",
       [](Graph& g, auto& a) {
         const ReduceAxis k = g.ReduceAxisOf("k", 4);
         g.ComputeMany("C", {4},
                       [&](Expr i) { return std::vector<Body>{ReduceSum(a(i, k), k), a(i, i)}; });
       }},
      {"graph f: tensor A of shape [4, 6] has no view of shape [5, 5]: the element counts are 24 "
       "and 25",
       [](Graph& g, auto& a) { g.Reshape(a, {5, 5}); }},
      {"graph f: tensor B of 4294967296 elements needs i64 indices, but C was made before with i32",
       [](Graph& g, auto& a) {
         g.Compute("C", {4}, [&](Expr i) { return a(i, i); });
         g.Placeholder("B", {1 << 16, 1 << 16}, Type::kI8);
       }},
  };
  for (const Mistake& mistake : cases) {
    Graph g("f");
    Tensor a = g.Placeholder("A", {4, 6}, Type::kF32);
    mistake.program(g, a);
    EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument) << mistake.message;
    EXPECT_THAT(std::string(g.status().message()), HasSubstr(mistake.message));
  }
}

}  // namespace
}  // namespace polynao::te
