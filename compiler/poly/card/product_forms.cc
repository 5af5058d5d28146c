#include "compiler/poly/card/product_forms.h"

#include <algorithm>
#include <cstddef>

#include "absl/container/flat_hash_map.h"
#include "base/text.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"

namespace polynao::poly {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;

OwnFactors WithOwnFactors(const std::vector<const NestStage*>& stages, ir::Context& c) {
  OwnFactors result;
  const auto is_computed = [&](Buffer buffer) {
    return std::any_of(stages.begin(), stages.end(),
                       [&](const NestStage* stage) { return stage->target == buffer; });
  };
  for (const NestStage* stage : stages) {
    result.stages.push_back(*stage);
    if (stage->reduction != ExprKind::kAdd || !stage->element.Is(ExprKind::kMul)) continue;
    absl::flat_hash_map<Buffer, Expr> first;
    absl::flat_hash_map<Expr, Expr> by;
    ir::ForEachExpr(stage->element, [&](Expr e) {
      if (!e.Is(ExprKind::kLoad)) return;
      const Buffer buffer(e.buffer());
      const auto [it, is_new] = first.try_emplace(buffer, e);
      if (is_new || it->second == e || by.contains(e) || is_computed(buffer)) return;
      const Buffer other = c.NewBuffer(buffer->name, buffer->type, buffer->extents);
      result.views.emplace_back(other, buffer);
      by[e] = c.Load(other, e.operands());
    });
    result.stages.back().element = ir::Replace(stage->element, by);
  }
  if (result.views.empty()) result.stages.clear();
  return result;
}

std::optional<std::pair<NestStage, NestStage>> AsTwoSums(const NestStage& stage, ir::Context& c) {
  const Expr e = stage.element;
  if (stage.reduction != ExprKind::kAdd || !e.Is(ExprKind::kAdd)) return std::nullopt;
  if (!e.operand(0).Is(ExprKind::kMul) || !e.operand(1).Is(ExprKind::kMul)) return std::nullopt;
  NestStage first = stage, second = stage;
  ir::VarMap by;
  std::vector<Expr> extents;
  for (size_t d = 0; d < stage.axes.size(); ++d) {
    first.axes[d] = c.NewVar(stage.axes[d].name(), stage.axes[d].type());
    by[stage.axes[d]] = first.axes[d];
    extents.push_back(c.Int(stage.axes[d].type(), stage.extents[d]));
  }
  first.name += ".first";
  first.target = c.NewBuffer(StrCat(stage.target->name, ".first"), stage.target->type, extents);
  first.low.assign(stage.axes.size(), 0);
  first.value = Expr();
  first.element = ir::Substitute(e.operand(0), by);
  second.name += ".second";
  second.element = e.operand(1);
  const Expr sums = c.Load(first.target, std::vector<Expr>(stage.axes.begin(), stage.axes.end()));
  second.value = stage.value ? stage.value + sums : sums;
  return std::pair(std::move(first), std::move(second));
}

}  // namespace polynao::poly
