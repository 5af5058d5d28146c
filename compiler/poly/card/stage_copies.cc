#include "compiler/poly/card/stage_copies.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/stage_graph.h"

namespace polynao::poly {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;

// The only load of an expression that depends on nothing else; none if there are other loads or variables.
Expr OnlyLoadOf(Expr e) {
  Expr load;
  bool is_only = true;
  const auto visit = [&](const auto& self, Expr part) -> void {
    if (part.Is(ExprKind::kVar)) is_only = false;
    if (part.Is(ExprKind::kLoad)) {
      is_only = is_only && (!load || load == part);
      load = part;
      return;
    }
    for (Expr operand : part.operands()) self(self, operand);
  };
  visit(visit, e);
  return is_only ? load : Expr();
}

}  // namespace

std::optional<NestStage> WithTurnedFactors(const NestStage& stage, ir::Context& c,
                                           std::vector<NestStage>& copies) {
  if (stage.reduction != ExprKind::kAdd || !stage.element.Is(ExprKind::kMul)) return std::nullopt;
  std::vector<Expr> order(stage.axes.begin(), stage.axes.end());
  for (const NestStage::ReduceRange& range : stage.ranges) order.push_back(range.var);
  NestStage turned = stage;
  for (size_t f = 0; f < 2; ++f) {
    Expr factor = stage.element.operand(f);
    while (factor.Is(ExprKind::kCast)) factor = factor.operand(0);
    const Expr load = OnlyLoadOf(factor);
    if (!load) return std::nullopt;
    // Each index one variable, plus a constant.
    std::vector<std::pair<size_t, size_t>>
        places;  // in the order of variables, and which index that is
    for (size_t d = 0; d < load.operands().size(); ++d) {
      size_t variable = order.size();
      for (size_t v = 0; v < order.size(); ++v) {
        if (!ir::UsesVar(load.operands()[d], order[v])) continue;
        if (variable < order.size()) return std::nullopt;
        variable = v;
      }
      if (variable == order.size()) return std::nullopt;
      places.emplace_back(variable, d);
    }
    if (factor == load && std::is_sorted(places.begin(), places.end())) continue;
    std::sort(places.begin(), places.end());
    NestStage copy = {.name = stage.name,
                      .place = stage.place,
                      .target = {},
                      .axes = {},
                      .low = {},
                      .extents = {},
                      .value = {}};
    std::vector<Expr> extents, indices;
    ir::VarMap by;
    for (const auto& [v, d] : places) {
      const bool is_axis = v < stage.axes.size();
      const NestStage::ReduceRange* range =
          is_axis ? nullptr : &stage.ranges[v - stage.axes.size()];
      const int64_t extent = is_axis ? stage.extents[v] : range->extent;
      const int64_t min = is_axis ? 0 : range->min;
      const ir::Var axis = c.NewVar(ir::Var(order[v]).name(), order[v].type());
      copy.axes.push_back(axis);
      copy.low.push_back(0);
      copy.extents.push_back(extent);
      extents.push_back(c.Int(order[v].type(), extent));
      by[order[v]] = min == 0 ? Expr(axis) : axis + min;
      indices.push_back(min == 0 ? order[v] : order[v] - min);
    }
    copy.value = ir::Substitute(factor, by);
    copy.target =
        c.NewBuffer(StrCat(ir::Buffer(load.buffer())->name, ".factor"), factor.type(), extents);
    turned.element = ir::Replace(turned.element, {{factor, c.Load(copy.target, indices)}});
    copies.push_back(std::move(copy));
  }
  if (copies.empty()) return std::nullopt;
  return turned;
}

std::optional<MergedCopy> MergeDimensions(const NestStage& stage, ir::Type index_type,
                                          ir::Context& c) {
  if (stage.reduction || !stage.value || !stage.value.Is(ExprKind::kLoad)) return std::nullopt;
  const Buffer from(stage.value.buffer());
  const te::Shape whole = ShapeOf(stage.target), read = ShapeOf(from);
  const size_t rank = stage.axes.size();
  if (read.size() != stage.value.operands().size()) return std::nullopt;
  // Which axis each of the read dimensions is, whole in both; -1: none.
  std::vector<int> axis(read.size(), -1);
  for (size_t d = 0; d < read.size(); ++d) {
    for (size_t a = 0; a < rank; ++a) {
      const bool is_whole = stage.low[a] == 0 && stage.extents[a] == whole[a] &&
                            stage.extents[a] == read[d] &&
                            stage.value.operands()[d] == stage.axes[a];
      if (is_whole) axis[d] = static_cast<int>(a);
    }
  }
  const auto goes_on = [&](size_t d) { return d > 0 && axis[d] > 0 && axis[d] == axis[d - 1] + 1; };
  NestStage merged = stage;
  std::vector<bool> is_inner(rank);  // axes that become part of the one before
  std::vector<Expr> indices, extents, shape;
  for (size_t d = 0; d < read.size(); ++d) {
    if (goes_on(d)) {
      is_inner[axis[d]] = true;
      extents.back() = extents.back() * c.Int(index_type, read[d]);
      continue;
    }
    indices.push_back(stage.value.operands()[d]);
    extents.push_back(c.Int(index_type, read[d]));
  }
  if (extents.size() == read.size()) return std::nullopt;
  merged.axes.clear(), merged.low.clear(), merged.extents.clear();
  for (size_t a = 0; a < rank; ++a) {
    if (is_inner[a]) {
      merged.extents.back() *= stage.extents[a];
      shape.back() = shape.back() * c.Int(index_type, whole[a]);
      continue;
    }
    merged.axes.push_back(stage.axes[a]);
    merged.low.push_back(stage.low[a]);
    merged.extents.push_back(stage.extents[a]);
    shape.push_back(c.Int(index_type, whole[a]));
  }
  merged.target = c.NewBuffer(stage.target->name, stage.target->type, shape);
  const Buffer view = c.NewBuffer(from->name, from->type, extents);
  merged.value = c.Load(view, indices);
  return MergedCopy{.stage = merged, .views = {{merged.target, stage.target}, {view, from}}};
}

Expr WithAxesAsOne(Expr e, absl::Span<const ir::Var> axes, absl::Span<const int64_t> extents,
                   ir::Var one) {
  const auto uses = [&](Expr part) {
    return std::any_of(axes.begin(), axes.end(),
                       [&](const ir::Var& axis) { return ir::UsesVar(part, axis); });
  };
  if (!uses(e)) return e;
  if (e.operands().empty()) return Expr();
  std::vector<Expr> operands;
  for (Expr operand : e.operands()) {
    if (!e.Is(ExprKind::kLoad) || !uses(operand)) {
      operands.push_back(WithAxesAsOne(operand, axes, extents, one));
      if (!operands.back()) return Expr();
      continue;
    }
    const arith::LinearForm form = arith::Decompose(operand);
    const int64_t step = form.CoefficientOf(axes.back());
    std::vector<arith::LinearForm::Term> terms = {{one, step}};
    for (const arith::LinearForm::Term& term : form.terms()) {
      if (std::find(axes.begin(), axes.end(), term.atom) != axes.end()) continue;
      if (uses(term.atom)) return Expr();
      terms.push_back(term);
    }
    int64_t stride = step;
    for (size_t a = axes.size(); a-- > 0; stride *= extents[a]) {
      if (stride == 0 || (extents[a] > 1 && form.CoefficientOf(axes[a]) != stride)) return Expr();
    }
    operands.push_back(arith::SumExpr(e.context(), operand.type(), terms, form.constant()));
  }
  return e.context().Rebuild(e, operands);
}

}  // namespace polynao::poly
