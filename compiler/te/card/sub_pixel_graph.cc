#include "compiler/te/card/sub_pixel_graph.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"
#include "compiler/te/card/card_group.h"
#include "compiler/te/card/graph_copy.h"

namespace polynao::te {
namespace {

using ir::ExprKind;

// Dimensions of Z.
enum { kRow, kColumn, kRowStep, kColumnStep, kChannel, kRank };

// (axis + before) / step and (axis + before) % step.
struct Step {
  int64_t step = 1, before = 0;
};
std::optional<Step> StepOf(Expr quotient, Expr remainder, Expr axis) {
  if (!quotient.Is(ExprKind::kDiv) || !remainder.Is(ExprKind::kMod)) return std::nullopt;
  const Expr place = quotient.operand(0), step = quotient.operand(1);
  if (remainder.operand(0) != place || remainder.operand(1) != step ||
      !step.Is(ExprKind::kIntImm)) {
    return std::nullopt;
  }
  if (place == axis) return Step{step.int_value(), 0};
  if (!place.Is(ExprKind::kAdd) || place.operand(0) != axis ||
      !place.operand(1).Is(ExprKind::kIntImm)) {
    return std::nullopt;
  }
  return Step{step.int_value(), place.operand(1).int_value()};
}

const Operation& Producer(const GraphState& graph, Expr load) {
  return *graph.producers.at(ir::Buffer(load.buffer())).first;
}

// The load of weights F[a, b, o, ..] in the sum Z, where the other factor differs along rows and columns alone.
std::optional<Expr> WeightsOf(const GraphState& graph, const Operation& sums) {
  const Body& body = sums.bodies[0];
  Axes row(sums.axes.begin() + kRowStep, sums.axes.end());
  row.insert(row.end(), body.axes.begin(), body.axes.end());
  std::optional<Expr> weights;
  bool is_image = true;
  ir::ForEachExpr(body.value, [&](Expr e) {
    if (!e.Is(ExprKind::kLoad)) return;
    const bool is_row =
        std::equal(row.begin(), row.end(), e.operands().begin(), e.operands().end());
    if (is_row && Producer(graph, e).kind == Operation::Kind::kPlaceholder) {
      weights = e;
      return;
    }
    for (Expr index : e.operands()) {
      ir::ForEachExpr(index, [&](Expr x) {
        is_image = is_image &&
                   std::find(sums.axes.begin() + kRowStep, sums.axes.end(), x) == sums.axes.end();
      });
    }
  });
  return is_image ? weights : std::nullopt;
}

}  // namespace

std::optional<SubPixelGraph> ReadSubPixels(const Tensor& output) {
  const GraphState& whole = *output.graph();
  const Operation& y = *output.operation();
  if (y.kind != Operation::Kind::kCompute || y.bodies.size() != 1 || y.bodies[0].reducer ||
      y.shape.size() != 3) {
    return std::nullopt;
  }
  // Y reads one tensor, at one place; what it does besides is elementwise.
  std::optional<Expr> read;
  bool is_one = true;
  ir::ForEachExpr(y.bodies[0].value, [&](Expr e) {
    if (!e.Is(ExprKind::kLoad)) return;
    is_one = is_one && (!read || *read == e);
    read = e;
  });
  if (!read || !is_one || read->operands().size() != kRank) return std::nullopt;
  const auto at = read->operands();
  const std::optional<Step> rows = StepOf(at[kRow], at[kRowStep], y.axes[0]);
  const std::optional<Step> columns = StepOf(at[kColumn], at[kColumnStep], y.axes[1]);
  const Operation& sums = Producer(whole, *read);
  if (!rows || !columns || at[kChannel] != y.axes[2] || !IsSumOfProducts(sums)) return std::nullopt;
  const std::optional<Expr> weights = WeightsOf(whole, sums);
  if (!weights) return std::nullopt;
  const Operation& filters = Producer(whole, *weights);
  const mapping::SubPixels places = {sums.shape[kRowStep], sums.shape[kColumnStep],
                                     sums.shape[kChannel]};
  // All places of a step are there, of several steps, or of one those that Y has.
  const auto has_all = [](const Step& step, int64_t count, int64_t extent) {
    const bool is_one = step.before == 0 && extent == count && count <= step.step;
    return is_one || (count == step.step && step.before + extent > count);
  };
  if (!has_all(*rows, places.rows, y.shape[0]) || !has_all(*columns, places.columns, y.shape[1]) ||
      ElementCount(y.shape) == 0) {
    return std::nullopt;
  }

  const std::shared_ptr<GraphState> state = whole.Empty();
  Graph g(state);
  OwnOperations own;
  Tensor rows_of_weights, t;
  for (const Operation& operation : whole.operations) {
    if (&operation == &filters) {
      Shape shape = {places.count()};
      shape.insert(shape.end(), filters.shape.begin() + 3, filters.shape.end());
      rows_of_weights = filters.is_constant
                            ? g.ConstantPlaceholder(filters.name, shape, filters.outputs[0]->type)
                            : g.Placeholder(filters.name, shape, filters.outputs[0]->type);
    } else if (&operation == &sums) {
      const Body& body = sums.bodies[0];
      const Tensor z = g.Compute(
          sums.name, {sums.shape[kRow], sums.shape[kColumn], places.count()}, [&](const Axes& a) {
            Axes row = {a[2]};
            row.insert(row.end(), body.axes.begin(), body.axes.end());
            const Expr value = ir::Replace(body.value, {{*weights, rows_of_weights(row)}});
            return Body(
                *body.reducer,
                ir::Substitute(value, {{sums.axes[kRow], a[0]}, {sums.axes[kColumn], a[1]}}),
                body.axes);
          });
      t = g.Compute(y.name, z.shape(),
                    [&](const Axes& a) { return ir::Replace(y.bodies[0].value, {{*read, z(a)}}); });
    } else if (&operation != &y) {
      CopyTo(*state, operation, own);
    }
  }
  return SubPixelGraph{t,
                       {.of_pixel = places,
                        .rows_before = rows->before,
                        .columns_before = columns->before,
                        .rows = y.shape[0],
                        .columns = y.shape[1]}};
}

}  // namespace polynao::te
