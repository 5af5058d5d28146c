#include "compiler/te/card/split_reduction.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/te/card/graph_copy.h"

namespace polynao::te {
SplitReduction Split(const Tensor& output, const Operation& reduction, size_t axis, int64_t chunks,
                     int64_t length) {
  const GraphState& whole = *output.graph();
  const std::shared_ptr<GraphState> state = whole.Empty();
  Graph g(state);
  const Body& body = reduction.bodies[0];
  const int64_t rest = body.axes[axis].extent - chunks * length;
  const auto index = [&](int64_t i) { return whole.context->Int(whole.index_type, i); };
  // The reduction of `extent` places of the axis from `from` on.
  const auto part = [&](const Axes& results, Expr from, int64_t extent) {
    ir::VarMap by;
    for (size_t d = 0; d < results.size(); ++d) by[reduction.axes[d]] = results[d];
    std::vector<ReduceAxis> axes;
    for (size_t r = 0; r < body.axes.size(); ++r) {
      const ReduceAxis& old = body.axes[r];
      axes.push_back(
          g.ReduceAxisOf(StrCat("r", r), r == axis ? 0 : old.min, r == axis ? extent : old.extent));
      by[old] = r == axis ? from + axes[r] : Expr(axes[r]);
    }
    return Body(*body.reducer, ir::Substitute(body.value, by), axes);
  };
  SplitReduction split;
  OwnOperations own;
  for (const Operation& operation : whole.operations) {
    if (&operation == &reduction) {
      Shape shape = {chunks};
      shape.insert(shape.end(), operation.shape.begin(), operation.shape.end());
      const Tensor parts = g.Compute(StrCat(operation.name, ".parts"), shape, [&](const Axes& at) {
        Expr from = at[0] * length;
        if (body.axes[axis].min != 0) from = from + index(body.axes[axis].min);
        return part(Axes(at.begin() + 1, at.end()), from, length);
      });
      split.partial = parts.operation();
      Tensor others, sum;
      if (rest > 0) {
        others = g.Compute(StrCat(operation.name, ".rest"), operation.shape, [&](const Axes& at) {
          return part(at, index(body.axes[axis].min + chunks * length), rest);
        });
      }
      const ReduceAxis c = g.ReduceAxisOf("c", chunks);
      const auto all = [&](const Axes& at) {
        Axes place = {c};
        place.insert(place.end(), at.begin(), at.end());
        return Body(*body.reducer, parts(place), {c});
      };
      if (rest > 0) sum = g.Compute(StrCat(operation.name, ".sum"), operation.shape, all);
      Operation& copy = CopyTo(*state, operation, own);
      copy.bodies = {rest > 0 ? Body(Combine(*body.reducer, sum(copy.axes), others(copy.axes)))
                              : all(copy.axes)};
    } else {
      CopyTo(*state, operation, own);
    }
  }
  split.output = Tensor(state, own.at(output.operation()));
  return split;
}

}  // namespace polynao::te
