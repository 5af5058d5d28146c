#include "compiler/te/card/folded_reduction.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/visit.h"
#include "compiler/te/card/graph_copy.h"

namespace polynao::te {
namespace {

using ir::ExprKind;

// Fewer places are taken in one by one.
constexpr int64_t kLeastPlaces = 16;

// The smallest divisor from the square root on: both steps then have few instructions. 1 or n itself if there is no
// other.
int64_t RowsAtOnce(int64_t n) {
  for (int64_t rows = 1; rows < n; ++rows) {
    if (rows * rows >= n && n % rows == 0) return rows;
  }
  return n;
}

// The axes of an index, whose extents are given, in the order in which its places run: each a multiple of the next,
// 32 a + b of b < 32. Nothing if places of several axes meet, as those of a window do.
std::optional<std::vector<size_t>> OrderOfIndex(Expr index, const Axes& axes,
                                                const std::vector<int64_t>& extents) {
  const arith::LinearForm form = arith::Decompose(index);
  std::vector<std::pair<int64_t, size_t>> places;  // coefficient, axis
  for (size_t a = 0; a < axes.size(); ++a) {
    if (!ir::UsesVar(index, axes[a])) continue;
    if (form.CoefficientOf(axes[a]) < 1) return std::nullopt;
    places.emplace_back(form.CoefficientOf(axes[a]), a);
  }
  if (places.size() != form.terms().size()) return std::nullopt;
  std::sort(places.rbegin(), places.rend());
  std::vector<size_t> order;
  for (size_t k = 0; k < places.size(); ++k) {
    const bool is_last = k + 1 == places.size();
    if (!is_last && places[k].first < places[k + 1].first * extents[places[k + 1].second]) {
      return std::nullopt;
    }
    order.push_back(places[k].second);
  }
  return order;
}

// Results' axes and the reduced ones (these count on from the results') in the order in which the largest of the
// elements that are read has them; axes that it lacks come first. Empty if some element has a reduced axis last, so
// that rows of what is reduced stand side by side, or axes of an index that meet, and if none has all that are reduced.
std::vector<size_t> OrderOfAxes(const Operation& operation, const Body& body) {
  Axes all = operation.axes;
  all.insert(all.end(), body.axes.begin(), body.axes.end());
  std::vector<int64_t> extents = operation.shape;
  for (const ReduceAxis& axis : body.axes) extents.push_back(axis.extent);
  const size_t results = operation.axes.size();
  std::vector<size_t> best;
  bool has_columns = true;
  ir::ForEachExpr(body.value, [&](Expr e) {
    if (!e.Is(ExprKind::kLoad)) return;
    std::vector<size_t> order;
    for (const Expr index : e.operands()) {
      const std::optional<std::vector<size_t>> axes = OrderOfIndex(index, all, extents);
      if (!axes) {
        has_columns = false;
        return;
      }
      for (const size_t a : *axes) {
        if (std::find(order.begin(), order.end(), a) == order.end()) order.push_back(a);
      }
    }
    if (!order.empty() && order.back() >= results) has_columns = false;
    if (order.size() > best.size()) best = order;
  });
  const auto reduced =
      std::count_if(best.begin(), best.end(), [&](size_t a) { return a >= results; });
  if (!has_columns || reduced != static_cast<std::ptrdiff_t>(body.axes.size())) return {};
  std::vector<size_t> order;
  for (size_t a = 0; a < results; ++a) {
    if (std::find(best.begin(), best.end(), a) == best.end()) order.push_back(a);
  }
  order.insert(order.end(), best.begin(), best.end());
  return order;
}

class Folder {
 public:
  Folder(Graph& graph, const Operation& operation)
      : g_(graph), operation_(operation), body_(operation.bodies[0]) {}

  // What the operation is now; nothing if it stays as it is.
  std::optional<Body> Run() {
    if (operation_.kind != Operation::Kind::kCompute || operation_.bodies.size() != 1 ||
        !body_.reducer || IsArgReducer(*body_.reducer) || ElementCount(operation_.shape) == 0) {
      return std::nullopt;
    }
    int64_t places = 1;
    for (const ReduceAxis& axis : body_.axes) places *= axis.extent;
    if (places < kLeastPlaces) return std::nullopt;
    order_ = OrderOfAxes(operation_, body_);
    if (order_.empty()) return std::nullopt;
    if (body_.axes.size() == 1) {
      rows_ = RowsAtOnce(body_.axes[0].extent);
      if (rows_ == body_.axes[0].extent) return std::nullopt;
    }
    const Tensor parts = Parts();
    std::vector<ReduceAxis> axes;
    for (const int64_t extent : Folded()) axes.push_back(g_.ReduceAxisOf("q", extent));
    Axes place;
    size_t next = 0;
    for (const size_t a : order_) {
      if (a < operation_.axes.size()) {
        place.push_back(operation_.axes[a]);
      } else if (rows_ > 0 || a > operation_.axes.size()) {
        place.push_back(axes[next++]);
      }
    }
    return Body(*body_.reducer, parts(place), axes);
  }

 private:
  Expr Index(int64_t i) const { return g_.context().Int(g_.index_type(), i); }

  // Extents of the reduced axes that the parts still have, in the order of memory.
  Shape Folded() const {
    if (rows_ > 0) return {rows_};
    Shape extents;
    for (const size_t a : order_) {
      if (a > operation_.axes.size())
        extents.push_back(body_.axes[a - operation_.axes.size()].extent);
    }
    return extents;
  }

  // The first step.
  Tensor Parts() {
    const size_t results = operation_.axes.size();
    const Shape folded = Folded();
    Shape shape;
    size_t next = 0;
    for (const size_t a : order_) {
      if (a < results) {
        shape.push_back(operation_.shape[a]);
      } else if (rows_ > 0 || a > results) {
        shape.push_back(folded[next++]);
      }
    }
    const ReduceAxis& first = body_.axes[0];
    const ReduceAxis p = g_.ReduceAxisOf("p", rows_ > 0 ? first.extent / rows_ : first.extent);
    return g_.Compute(StrCat(operation_.name, ".parts"), shape, [&](const Axes& at) {
      ir::VarMap by;
      size_t k = 0;
      for (const size_t a : order_) {
        if (a < results) {
          by[operation_.axes[a]] = at[k++];
          continue;
        }
        const ReduceAxis& axis = body_.axes[a - results];
        Expr place = p;
        if (rows_ > 0) {
          place = p * Index(rows_) + at[k++];
        } else if (a > results) {
          place = at[k++];
        }
        by[axis] = axis.min == 0 ? place : place + Index(axis.min);
      }
      return Body(*body_.reducer, ir::Substitute(body_.value, by), {p});
    });
  }

  Graph& g_;
  const Operation& operation_;
  const Body& body_;
  std::vector<size_t> order_;
  int64_t rows_ = 0;  // of one axis those that an instruction takes in; 0: several axes
};

}  // namespace

std::optional<Tensor> FoldReductions(const Tensor& output) {
  const GraphState& whole = *output.graph();
  const std::shared_ptr<GraphState> state = whole.Empty();
  Graph g(state);
  OwnOperations own;
  bool has_any = false;
  for (const Operation& operation : whole.operations) {
    std::vector<Body> bodies = operation.bodies;
    if (const std::optional<Body> folded = Folder(g, operation).Run()) {
      bodies = {*folded};
      has_any = true;
    }
    CopyTo(*state, operation, own).bodies = std::move(bodies);
  }
  if (!has_any) return std::nullopt;
  return Tensor(state, own.at(output.operation()));
}

}  // namespace polynao::te
