// Graphs of reductions, windows, margins, transposed and strided reads, compiled for the card without a schedule and
// simulated: all values are those of the interpreter. POLYNAO_RANDOM_CASES=2000 runs more random graphs,
// POLYNAO_SEED=7 the same ones again.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/text.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/text.h"
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

// A graph of one to six computes, each of them lanes, a copy from other places, or a reduction.
class RandomGraph {
 public:
  explicit RandomGraph(Random& random)
      : random_(random),
        g_("random"),
        type_(random.Of<Type>({Type::kF16, Type::kF32, Type::kI32})) {}

  Tensor Make() {
    Shape shape;
    const int64_t rank = random_.Pick(1, 3);
    for (int64_t d = 0; d < rank; ++d) {
      shape.push_back(random_.Of<int64_t>({1, 2, 3, 5, 7, 16, 31, 64, 65, 130}));
    }
    while (te::ElementCount(shape) > 12000) shape.pop_back();
    Tensor t = Input(shape);
    const int64_t computes = random_.Pick(1, 6);
    for (int64_t i = 0; i < computes; ++i) {
      t = Next(t, i + 1 == computes ? "Y" : StrCat("T", i));
      StrAppend(&text_, " -> ", absl::StrJoin(t.shape(), "x"));
    }
    return t;
  }
  const std::string& Text() const { return text_; }

 private:
  Tensor Input(const Shape& shape) {
    StrAppend(&text_, " ", ir::TypeName(type_), " ", absl::StrJoin(shape, "x"));
    return g_.Placeholder(StrCat("X", inputs_++), shape, type_);
  }
  Tensor At(const std::string& name, const Shape& shape,
            const std::function<Expr(const Axes&)>& f) {
    return g_.Compute(name, shape, [&](const Axes& at) { return f(at); });
  }

  Tensor Next(const Tensor& t, const std::string& name) {
    const size_t d = random_.Pick(0, t.rank() - 1);
    const int64_t n = t.shape()[d];
    Shape shape = t.shape();
    switch (random_.Pick(0, 9)) {
      case 0:
        StrAppend(&text_, " transposed");
        return Transposed(t, name);
      case 1: {  // with margins
        const int64_t before = random_.Pick(0, 2), after = random_.Pick(0, 2);
        StrAppend(&text_, " padded", d);
        shape[d] = before + n + after;
        return At(name, shape, [&](const Axes& at) {
          Axes from = at;
          from[d] = at[d] - before;
          return te::Select(ir::And(before <= at[d], at[d] < before + n), t(from),
                            random_.Pick(-2, 2));
        });
      }
      case 2: {  // every other
        const int64_t step = random_.Pick(1, 3),
                      from = random_.Pick(0, std::min<int64_t>(n - 1, 2));
        StrAppend(&text_, " strided", d, "by", step);
        shape[d] = (n - from + step - 1) / step;
        return At(name, shape, [&](const Axes& at) {
          Axes place = at;
          place[d] = at[d] * step + from;
          return t(place);
        });
      }
      case 3:
        StrAppend(&text_, " reversed", d);
        return At(name, shape, [&](const Axes& at) {
          Axes place = at;
          place[d] = n - 1 - at[d];
          return t(place);
        });
      case 4: {  // neighbours
        if (n < 3) return Lanes(t, name);
        StrAppend(&text_, " stencil", d);
        shape[d] = n - 2;
        return At(name, shape, [&](const Axes& at) {
          Axes middle = at, after = at;
          middle[d] = at[d] + 1;
          after[d] = at[d] + 2;
          return ir::Max(t(at), t(after)) + t(middle);
        });
      }
      case 5: {  // a window's largest
        const int64_t window = std::min<int64_t>(n, random_.Pick(2, 3)), step = random_.Pick(1, 2);
        StrAppend(&text_, " window", d);
        shape[d] = (n - window) / step + 1;
        const te::ReduceAxis r = g_.ReduceAxisOf("r", window);
        return g_.Compute(name, shape, [&](const Axes& at) {
          Axes place = at;
          place[d] = at[d] * step + r;
          return te::ReduceMax(t(place), r);
        });
      }
      case 6:
      case 7: {  // over one dimension, and what follows from that
        const Tensor reduced = Reduced(t, name + ".r", d);
        if (random_.OneIn(2) || t.rank() == 1) {
          StrAppend(&text_, " normalized", d);
          return At(name, shape, [&](const Axes& at) {
            Axes of = at;
            if (t.rank() > 1) of.erase(of.begin() + static_cast<ptrdiff_t>(d));
            if (t.rank() == 1) of[0] = g_.context().Int(g_.index_type(), 0);
            return t(at) - reduced(of);
          });
        }
        StrAppend(&text_, " reduced", d);
        return At(name, reduced.shape(), [&](const Axes& at) { return reduced(at) + reduced(at); });
      }
      default:
        return Lanes(t, name);
    }
  }

  Tensor Transposed(const Tensor& t, const std::string& name) {
    std::vector<size_t> order(t.rank());
    for (size_t d = 0; d < order.size(); ++d) order[d] = d;
    std::swap(order[random_.Pick(0, order.size() - 1)], order[random_.Pick(0, order.size() - 1)]);
    Shape shape;
    for (size_t d : order) shape.push_back(t.shape()[d]);
    return At(name, shape, [&](const Axes& at) {
      Axes place(order.size());
      for (size_t d = 0; d < order.size(); ++d) place[order[d]] = at[d];
      return t(place);
    });
  }

  Tensor Reduced(const Tensor& t, const std::string& name, size_t d) {
    Shape shape = t.shape();
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(d));
    const bool is_all = shape.empty();
    if (is_all) shape = {1};
    const te::ReduceAxis r = g_.ReduceAxisOf("r", t.shape()[d]);
    // Sums of floats may be added in parts, and then differ.
    const int64_t kind = random_.Pick(type_ == Type::kI32 ? 0 : 1, 2);
    return g_.Compute(name, shape, [&](const Axes& at) {
      Axes place = is_all ? Axes() : at;
      place.insert(place.begin() + static_cast<ptrdiff_t>(d), r);
      return kind == 0   ? te::ReduceSum(t(place), r)
             : kind == 1 ? te::ReduceMax(t(place), r)
                         : te::ReduceMin(t(place), r);
    });
  }

  Tensor Lanes(const Tensor& t, const std::string& name) {
    StrAppend(&text_, " lanes");
    // With another tensor, of the last dimensions alone, or of none.
    Shape shape(t.shape().begin() + random_.Pick(0, t.rank()), t.shape().end());
    const Tensor other = Input(shape);
    const int64_t kind = random_.Pick(0, 2);
    return At(name, t.shape(), [&](const Axes& at) {
      const Expr b = other(Axes(at.end() - static_cast<ptrdiff_t>(shape.size()), at.end()));
      return kind == 0 ? t(at) + b : kind == 1 ? ir::Max(t(at), b) : t(at) * b - t(at);
    });
  }

  Random& random_;
  Graph g_;
  const Type type_;
  int inputs_ = 0;
  std::string text_;
};

// A row that is repeated for the rows of a reduction in parts is made where the parts are: in each of them.
TEST(VectorGraphsTest, RepeatedRowsOfAReductionInParts) {
  const isa::Machine machine = TestMachine("mlu270", {"core.nmem_kib=128", "card.clusters=2"});
  for (const Shape& other : {Shape{64}, Shape{}}) {
    SCOPED_TRACE(other.size());
    Graph g("parts");
    const Tensor x = g.Placeholder("X0", {7, 64}, Type::kF16);
    const Tensor y = g.Placeholder("X1", other, Type::kF16);
    const Tensor lanes = g.Compute("T", {7, 64}, [&](const Axes& at) -> Expr {
      const Expr factor = y(Axes(at.end() - static_cast<ptrdiff_t>(other.size()), at.end()));
      return x(at) * factor - x(at);
    });
    const te::ReduceAxis r = g.ReduceAxisOf("r", 7);
    const Tensor most = g.Compute(
        "M", {64}, [&](const Axes& at) { return te::ReduceMax(lanes(Axes{r, at[0]}), r); });
    const Tensor result = g.Compute("Y", {64}, [&](const Axes& at) { return most(at) + most(at); });
    Exceptions exceptions;
    for (size_t choice = 0; choice < 40; ++choice) {
      SCOPED_TRACE(choice);
      MustAgree(result, machine, choice, /*seed=*/1, exceptions);
    }
  }
}

TEST(VectorGraphsTest, RandomGraphs) {
  ForRandomSeeds(120, /*scalar_rate=*/3, [](Random& random, unsigned seed, Exceptions& exceptions) {
    const isa::Machine machine =
        TestMachine("mlu270", {StrCat("core.nmem_kib=", random.Pick(2, 8) * 64),
                               StrCat("card.clusters=", random.Pick(1, 4)),
                               StrCat("cluster.cores=", random.Pick(1, 4))});
    RandomGraph graph(random);
    const Tensor y = graph.Make();
    SCOPED_TRACE(graph.Text());
    MustAgree(y, machine, random.OneIn(2) ? 0 : random.Pick(0, 40), seed, exceptions);
  });
}

}  // namespace
}  // namespace polynao
