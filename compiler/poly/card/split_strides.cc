#include "compiler/poly/card/split_strides.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/stage_graph.h"
#include "isa/granularity.h"

namespace polynao::poly {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Var;
using Term = arith::LinearForm::Term;

// A buffer's dimension, of which `to` has the steps and the places of a step.
struct Split {
  Buffer from, to;
  size_t dimension;
  int64_t step;
};

// `e` with loads of split.to; none if a read's place within a step is not known to be one.
Expr WithSplitLoads(const NestStage& stage, Expr e, const Split& split) {
  ir::Context& c = e.context();
  std::vector<Expr> operands;
  for (Expr operand : e.operands()) {
    operands.push_back(WithSplitLoads(stage, operand, split));
    if (!operands.back()) return Expr();
  }
  if (!e.Is(ExprKind::kLoad) || !(Buffer(e.buffer()) == split.from)) {
    return operands.empty() ? e : c.Rebuild(e, operands);
  }
  const Expr index = operands[split.dimension];
  const arith::LinearForm form = arith::Decompose(index);
  const int64_t place = ir::FloorMod(form.constant(), split.step);
  std::vector<Term> steps, places;
  int64_t least = place, most = place;
  for (const Term& term : form.terms()) {
    if (term.coefficient % split.step == 0) {
      steps.push_back({term.atom, term.coefficient / split.step});
      continue;
    }
    const std::optional<NestStage::ReduceRange> range = LoopOf(stage, term.atom);
    if (!range) return Expr();
    const int64_t first = term.coefficient * range->min;
    const int64_t last = term.coefficient * (range->min + range->extent - 1);
    least += std::min(first, last), most += std::max(first, last);
    places.push_back(term);
  }
  if (least < 0 || most >= split.step) return Expr();
  const auto at = operands.begin() + static_cast<ptrdiff_t>(split.dimension);
  *at = arith::SumExpr(c, index.type(), steps, ir::FloorDiv(form.constant(), split.step));
  operands.insert(at + 1, arith::SumExpr(c, index.type(), places, place));
  return c.Load(split.to, operands);
}

// Whether all reads could be changed.
bool Apply(const Split& split, std::vector<NestStage>& stages) {
  std::vector<NestStage> changed = stages;
  for (NestStage& stage : changed) {
    for (Expr* e : {&stage.value, &stage.element}) {
      if (!*e) continue;
      *e = WithSplitLoads(stage, *e, split);
      if (!*e) return false;
    }
  }
  stages = std::move(changed);
  return true;
}

// A dimension of a buffer that is not computed here which an axis of a stage walks by steps, behind those `tried`.
std::optional<Split> FindSplit(ir::Context& c, const std::vector<NestStage>& stages,
                               absl::flat_hash_set<std::pair<Buffer, size_t>>& tried) {
  absl::flat_hash_set<Buffer> targets;
  for (const NestStage& stage : stages) targets.insert(stage.target);
  std::optional<Split> found;
  const auto look = [&](const NestStage& stage, Expr load, size_t d) {
    const Buffer from(load.buffer());
    const int64_t extent = ShapeOf(from)[d];
    for (const Var& axis : stage.axes) {
      const int64_t step = arith::Decompose(load.operands()[d]).CoefficientOf(axis);
      const bool is_stride = step > 1 && step < std::min(isa::kVectorGroup, extent);
      if (found || !is_stride || extent % step != 0 || !tried.insert({from, d}).second) continue;
      std::vector<Expr> extents(from->extents.begin(), from->extents.end());
      const ir::Type type = extents[d].type();
      extents[d] = c.Int(type, extent / step);
      extents.insert(extents.begin() + static_cast<ptrdiff_t>(d) + 1, c.Int(type, step));
      found = {from, c.NewBuffer(from->name, from->type, extents), d, step};
    }
  };
  for (const NestStage& stage : stages) {
    for (const Expr e : {stage.value, stage.element}) {
      if (!e) continue;
      ir::ForEachExpr(e, [&](Expr load) {
        if (!load.Is(ExprKind::kLoad) || targets.contains(Buffer(load.buffer()))) return;
        for (size_t d = 0; d < load.operands().size(); ++d) look(stage, load, d);
      });
    }
  }
  return found;
}

}  // namespace

std::vector<std::pair<Buffer, Buffer>> SplitStrides(ir::Context& c,
                                                    std::vector<NestStage>& stages) {
  std::vector<std::pair<Buffer, Buffer>> views;
  absl::flat_hash_set<std::pair<Buffer, size_t>> tried;
  while (const std::optional<Split> split = FindSplit(c, stages, tried)) {
    if (Apply(*split, stages)) views.emplace_back(split->to, split->from);
  }
  return views;
}

}  // namespace polynao::poly
