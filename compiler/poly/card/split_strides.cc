#include "compiler/poly/card/split_strides.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
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
using Term = arith::LinearForm::Term;

// The values of an axis of a stage, or of what it reduces over.
std::optional<NestStage::ReduceRange> RangeOf(const NestStage& stage, Expr atom) {
  for (size_t d = 0; d < stage.axes.size(); ++d) {
    if (stage.axes[d] == atom) return NestStage::ReduceRange{stage.axes[d], 0, stage.extents[d]};
  }
  for (const NestStage::ReduceRange& range : stage.ranges) {
    if (range.var == atom) return range;
  }
  return std::nullopt;
}

// A buffer's last dimension, of which `to` has the steps and the places of a step.
struct Split {
  Buffer from, to;
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
  const Expr index = operands.back();
  const arith::LinearForm form = arith::Decompose(index);
  const int64_t place = ir::FloorMod(form.constant(), split.step);
  std::vector<Term> steps, places;
  int64_t least = place, most = place;
  for (const Term& term : form.terms()) {
    if (term.coefficient % split.step == 0) {
      steps.push_back({term.atom, term.coefficient / split.step});
      continue;
    }
    const std::optional<NestStage::ReduceRange> range = RangeOf(stage, term.atom);
    if (!range) return Expr();
    const int64_t first = term.coefficient * range->min;
    const int64_t last = term.coefficient * (range->min + range->extent - 1);
    least += std::min(first, last), most += std::max(first, last);
    places.push_back(term);
  }
  if (least < 0 || most >= split.step) return Expr();
  operands.back() =
      arith::SumExpr(c, index.type(), steps, ir::FloorDiv(form.constant(), split.step));
  operands.push_back(arith::SumExpr(c, index.type(), places, place));
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

// Of each buffer that is not computed here the step by which a stage's last axis walks its last dimension.
std::vector<std::pair<Buffer, int64_t>> StepsOf(const std::vector<NestStage>& stages) {
  std::vector<std::pair<Buffer, int64_t>> steps;
  absl::flat_hash_map<Buffer, bool> is_known;
  for (const NestStage& stage : stages) is_known[stage.target] = true;
  for (const NestStage& stage : stages) {
    for (const Expr e : {stage.value, stage.element}) {
      if (!e || stage.axes.empty()) continue;
      ir::ForEachExpr(e, [&](Expr load) {
        if (!load.Is(ExprKind::kLoad) || load.operands().empty()) return;
        const Buffer buffer(load.buffer());
        const int64_t step =
            arith::Decompose(load.operands().back()).CoefficientOf(stage.axes.back());
        const int64_t extent = ShapeOf(buffer).back();
        const bool is_stride = step > 1 && step < std::min(isa::kVectorGroup, extent);
        if (!is_stride || extent % step != 0 || is_known[buffer]) return;
        is_known[buffer] = true;
        steps.emplace_back(buffer, step);
      });
    }
  }
  return steps;
}

}  // namespace

std::vector<std::pair<Buffer, Buffer>> SplitStrides(ir::Context& c,
                                                    std::vector<NestStage>& stages) {
  std::vector<std::pair<Buffer, Buffer>> views;
  for (const auto& [buffer, step] : StepsOf(stages)) {
    std::vector<Expr> extents(buffer->extents.begin(), buffer->extents.end());
    const ir::Type type = extents.back().type();
    extents.back() = c.Int(type, extents.back().int_value() / step);
    extents.push_back(c.Int(type, step));
    const Split split = {buffer, c.NewBuffer(buffer->name, buffer->type, extents), step};
    if (Apply(split, stages)) views.emplace_back(split.to, buffer);
  }
  return views;
}

}  // namespace polynao::poly
