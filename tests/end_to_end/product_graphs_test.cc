// Graphs of products with weights of their own for each of a batch, in any order in memory, with lanes and reductions
// of rows around and between them, compiled for the card without a schedule and simulated: all values are those of the
// interpreter. POLYNAO_RANDOM_CASES=2000 runs more random graphs, POLYNAO_SEED=7 the same ones again.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/text.h"
#include "compiler/te/graph.h"
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

// One or two products; the second one's rows are computed from the first one's results.
class RandomProducts {
 public:
  RandomProducts(Random& random, Type type)
      : random_(random),
        g_("random"),
        type_(type),
        sum_(ir::IsFloat(type) ? Type::kF32 : Type::kI32) {
    const int64_t batches = random_.Pick(0, 2);
    for (int64_t d = 0; d < batches; ++d) batch_.push_back(random_.Of<int64_t>({1, 2, 3, 5}));
  }

  Tensor Make() {
    Shape shape = batch_;
    shape.push_back(Extent());
    shape.push_back(Extent());
    StrAppend(&text_, ir::TypeName(type_), " ", absl::StrJoin(shape, "x"));
    Tensor rows = Input(shape);
    if (random_.OneIn(2)) return Behind(Product(rows, "S"), "Y");
    const Tensor first = Narrow(Product(rows, "P"), "S");
    rows = first;
    if (ir::IsFloat(type_) || random_.OneIn(2)) rows = LessLargest(first);
    return Behind(Product(rows, "O"), "Y");
  }
  const std::string& Text() const { return text_; }

 private:
  int64_t Extent() { return random_.Of<int64_t>({1, 2, 3, 5, 7, 16, 31, 64, 65, 100, 130}); }
  Tensor Input(const Shape& shape) { return g_.Placeholder(StrCat("X", inputs_++), shape, type_); }
  template <typename F>
  Tensor At(const std::string& name, const Shape& shape, const F& f) {
    return g_.Compute(name, shape, [&](const Axes& at) { return f(at); });
  }

  // Rows times weights that stand in memory in some order of their dimensions.
  Tensor Product(const Tensor& rows, const std::string& name) {
    const int64_t depth = rows.shape().back(), channels = Extent();
    Shape own = batch_;  // [.., channel, depth]
    own.push_back(channels), own.push_back(depth);
    std::vector<size_t> order(own.size());
    std::iota(order.begin(), order.end(), 0);
    const int64_t swaps = random_.Pick(0, 2);
    for (int64_t i = 0; i < swaps; ++i) {
      std::swap(order[random_.Pick(0, order.size() - 1)], order[random_.Pick(0, order.size() - 1)]);
    }
    Shape stored;
    for (const size_t d : order) stored.push_back(own[d]);
    StrAppend(&text_, " * ", absl::StrJoin(stored, "x"), " (", absl::StrJoin(order, " "), ")");
    const Tensor weights = Input(stored);
    Shape shape = rows.shape();
    shape.back() = channels;
    const te::ReduceAxis r = g_.ReduceAxisOf("r", depth);
    return g_.Compute(name, shape, [&](const Axes& at) {
      Axes row = at, filter(at.begin(), at.end() - 2), place;
      row.back() = r;
      filter.push_back(at.back()), filter.push_back(r);
      for (const size_t d : order) place.push_back(filter[d]);
      const auto wide = [&](Expr e) { return e.type() == sum_ ? e : e.context().Cast(sum_, e); };
      return te::ReduceSum(wide(rows(row)) * wide(weights(place)), r);
    });
  }

  Tensor Narrow(const Tensor& sums, const std::string& name) {
    return At(name, sums.shape(), [&](const Axes& at) {
      const Expr value = sums(at);
      const Expr wide = value.type() == Type::kF32 ? value : g_.context().Cast(Type::kF32, value);
      const Expr scaled = wide * 0.03125;
      return type_ == Type::kF32 ? scaled : g_.context().Cast(type_, scaled);
    });
  }

  // Each row less its largest element.
  Tensor LessLargest(const Tensor& t) {
    StrAppend(&text_, " less its largest");
    const te::ReduceAxis k = g_.ReduceAxisOf("k", t.shape().back());
    const Shape rows(t.shape().begin(), t.shape().end() - 1);
    const bool is_wide = type_ == Type::kI8 || type_ == Type::kI16;
    const Tensor wide =
        is_wide ? At("W", t.shape(),
                     [&](const Axes& at) { return g_.context().Cast(Type::kI32, t(at)); })
                : t;
    const Tensor largest = g_.Compute("M", rows, [&](const Axes& at) {
      Axes own = at;
      own.push_back(k);
      return te::ReduceMax(wide(own), k);
    });
    return At("D", t.shape(), [&](const Axes& at) {
      const Expr value = wide(at) - largest(Axes(at.begin(), at.end() - 1));
      return is_wide ? g_.context().Cast(type_, value) : value;
    });
  }

  Tensor Behind(const Tensor& sums, const std::string& name) {
    switch (random_.Pick(0, 2)) {
      case 0:
        return sums;
      case 1:
        return Narrow(sums, name);
      default: {
        StrAppend(&text_, " + bias");
        const Tensor bias = g_.Placeholder("B", {sums.shape().back()}, sum_);
        return At(name, sums.shape(), [&](const Axes& at) { return sums(at) + bias({at.back()}); });
      }
    }
  }

  Random& random_;
  Graph g_;
  const Type type_, sum_;
  Shape batch_;
  int inputs_ = 0;
  std::string text_;
};

TEST(ProductGraphsTest, RandomGraphs) {
  ForRandomSeeds(80, /*scalar_rate=*/1, [](Random& random, unsigned seed, Exceptions& exceptions) {
    const Type type = random.Of<Type>({Type::kI8, Type::kI16, Type::kF16, Type::kF32});
    const isa::Machine machine =
        TestMachine("mlu370", {StrCat("core.nmem_kib=", random.Pick(4, 12) * 64),
                               StrCat("card.clusters=", random.Pick(1, 4)),
                               StrCat("cluster.cores=", random.Pick(1, 4))});
    RandomProducts graph(random, type);
    const Tensor y = graph.Make();
    SCOPED_TRACE(graph.Text());
    MustAgree(y, machine, random.OneIn(2) ? 0 : random.Pick(0, 40), seed, exceptions);
  });
}

}  // namespace
}  // namespace polynao
