// Copies on chip that turn rows into columns by an instruction: all values are the interpreter's, of all types, in
// graphs that only move elements and in those that compute before and behind. POLYNAO_RANDOM_CASES=2000 runs more
// random graphs, POLYNAO_SEED=7 the same ones.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/ir/visit.h"
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
using te::Graph;
using te::Shape;
using te::Tensor;

// How often each instruction stands in a program.
int Count(const ir::Function& function, std::string_view family) {
  int count = 0;
  ir::ForEachStmt(function.body, [&](ir::Stmt s) {
    count += s.Is(ir::StmtKind::kEvaluate) && s.value().name().starts_with(StrCat(family, "."));
    return true;
  });
  return count;
}

// X with two dimensions swapped.
Tensor Swapped(Graph& g, const Tensor& x, size_t a, size_t b) {
  Shape shape = x.shape();
  std::swap(shape[a], shape[b]);
  return g.Compute("T", shape, [&](const Axes& at) {
    Axes from = at;
    std::swap(from[a], from[b]);
    return x(from);
  });
}

TEST(TurnedCopiesTest, ByTheInstruction) {
  const isa::Machine machine = TestMachine("mlu270", {});
  for (const Type type :
       {Type::kF16, Type::kBF16, Type::kF32, Type::kI32, Type::kI16, Type::kI8, Type::kU8}) {
    // Matrices alone; one behind the other; rows that do not follow one another in what they become columns of.
    for (const auto& [shape, dimension] :
         {std::pair(Shape{256, 128}, 0), {{49, 250}, 0}, {{3, 64, 96}, 1}, {{64, 3, 96}, 0}}) {
      Graph g("turn");
      const Tensor x = g.Placeholder("X", shape, type);
      const Tensor y = Swapped(g, x, dimension, shape.size() - 1);
      const absl::StatusOr<Result> result = OnCard(y, machine, 0, Inputs(y, 1, ir::Values::kAll));
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_GT(Count(result->function, "transpose"), 0) << ir::TypeName(type) << shape[0];
      EXPECT_EQ(Stores(result->function), 0) << ir::TypeName(type) << shape[0];
      Exceptions exceptions;
      MustAgree(y, machine, 0, /*seed=*/1, exceptions);
    }
  }
}

// Matrices behind one another of which the second would begin where no vector instruction may.
TEST(TurnedCopiesTest, MatricesThatBeginElsewhere) {
  const isa::Machine machine = TestMachine("mlu270", {"card.clusters=1", "cluster.cores=1"});
  for (const Shape& shape : {Shape{16, 31, 33}, {8, 63, 65}, {4, 65, 63}}) {
    Graph g("turn");
    const Tensor y = Swapped(g, g.Placeholder("X", shape, Type::kF16), 1, 2);
    const absl::StatusOr<Result> result = OnCard(y, machine, 0, Inputs(y, 1, ir::Values::kAll));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(Stores(result->function), 0) << shape[1];
    Exceptions exceptions;
    MustAgree(y, machine, 0, /*seed=*/1, exceptions);
  }
}

TEST(TurnedCopiesTest, RandomGraphs) {
  ForRandomSeeds(60, /*scalar_rate=*/6, [](Random& random, unsigned seed, Exceptions& exceptions) {
    const isa::Machine machine =
        TestMachine("mlu370", {StrCat("core.nmem_kib=", random.Pick(1, 8) * 64),
                               StrCat("card.clusters=", random.Pick(1, 4)),
                               StrCat("cluster.cores=", random.Of<int64_t>({1, 2, 4}))});
    const Type type = random.Of<Type>({Type::kF16, Type::kF32, Type::kI32, Type::kI16, Type::kI8});
    const std::vector<int64_t> extents = {1, 2, 7, 8, 16, 31, 32, 48, 63, 64, 65, 96, 128};
    Shape shape;
    for (int64_t rank = random.Pick(2, random.OneIn(2) ? 3 : 2); rank > 0; --rank) {
      shape.push_back(random.Of(extents));
    }
    Graph g("turn");
    Tensor t = g.Placeholder("X", shape, type);
    std::string text = StrCat(ir::TypeName(type));
    const auto compute = [&] {
      if (!random.OneIn(3)) return;
      StrAppend(&text, " lanes");
      const Tensor before = t;
      t = g.Compute("L", before.shape(), [&](const Axes& at) { return before(at) + before(at); });
    };
    compute();
    for (int64_t n = random.Pick(1, 2); n > 0; --n) {
      const size_t last = t.rank() - 1, other = random.Pick(0, last - 1);
      StrAppend(&text, " ", other);
      t = Swapped(g, t, other, last);
      compute();
    }
    for (const int64_t extent : shape) StrAppend(&text, " x", extent);
    SCOPED_TRACE(text);
    MustAgree(t, machine, random.OneIn(2) ? 0 : random.Pick(0, 100), seed, exceptions);
  });
}

}  // namespace
}  // namespace polynao
