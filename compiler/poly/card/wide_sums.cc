#include "compiler/poly/card/wide_sums.h"

#include <utility>

#include "base/text.h"
#include "compiler/ir/visit.h"

namespace polynao::poly {

using ir::Expr;
using ir::ExprKind;
using ir::Type;

std::vector<NestStage> WithWideSums(const std::vector<const NestStage*>& stages, ir::Context& c,
                                    const std::function<bool(Type)>& multiplies) {
  std::vector<NestStage> result;
  bool has_sums = false;
  for (const NestStage* stage : stages) {
    const Type type = stage->target->type;
    const bool is_it = stage->reduction == ExprKind::kAdd && ir::IsFloat(type) &&
                       ir::ByteSize(type) < ir::ByteSize(Type::kF32) &&
                       stage->element.Is(ExprKind::kMul) && multiplies(type);
    if (!is_it) {
      result.push_back(*stage);
      continue;
    }
    has_sums = true;
    NestStage sums = *stage, rounded = *stage;
    std::vector<Expr> extents, at(rounded.axes.begin(), rounded.axes.end());
    for (size_t d = 0; d < sums.axes.size(); ++d) {
      sums.axes[d] = c.NewVar(sums.axes[d].name(), sums.axes[d].type());
      extents.push_back(c.Int(sums.axes[d].type(), sums.extents[d]));
    }
    ir::VarMap by;
    for (size_t d = 0; d < sums.axes.size(); ++d) by[rounded.axes[d]] = sums.axes[d];
    const auto wide = [&](Expr factor) { return c.Cast(Type::kF32, ir::Substitute(factor, by)); };
    sums.target = c.NewBuffer(StrCat(stage->target->name, ".sums"), Type::kF32, extents);
    sums.name += ".sums";
    sums.low.assign(sums.low.size(), 0);
    sums.value = Expr();
    sums.element = wide(stage->element.operand(0)) * wide(stage->element.operand(1));
    rounded.reduction.reset();
    rounded.ranges.clear();
    rounded.element = Expr();
    const Expr sum = c.Load(sums.target, at);
    rounded.value = c.Cast(type, stage->value ? c.Cast(Type::kF32, stage->value) + sum : sum);
    result.push_back(std::move(sums));
    result.push_back(std::move(rounded));
  }
  return has_sums ? result : std::vector<NestStage>();
}

}  // namespace polynao::poly
