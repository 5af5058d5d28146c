// What a stage stores, reads and walks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

using ir::Expr;
using ir::ExprKind;

bool IsWhole(const NestStage& stage) {
  for (size_t d = 0; d < stage.axes.size(); ++d) {
    if (stage.low[d] != 0 || !stage.target->extents[d].IsInt(stage.extents[d])) return false;
  }
  return true;
}

bool HasLoads(Expr e) {
  bool has_loads = false;
  ir::ForEachExpr(e, [&](Expr part) { has_loads = has_loads || part.Is(ExprKind::kLoad); });
  return has_loads;
}

std::optional<NestStage::ReduceRange> LoopOf(const NestStage& stage, Expr var) {
  for (size_t d = 0; d < stage.axes.size(); ++d) {
    if (stage.axes[d] == var) return NestStage::ReduceRange{stage.axes[d], 0, stage.extents[d]};
  }
  for (const NestStage::ReduceRange& range : stage.ranges) {
    if (range.var == var) return range;
  }
  return std::nullopt;
}

bool IsDefined(Expr e, const NestStage& stage) {
  bool is_defined = true;
  ir::ForEachExpr(e, [&](Expr part) {
    const bool divides = part.Is(ExprKind::kDiv) || part.Is(ExprKind::kMod);
    if (divides && !ir::IsFloat(part.type()) && !part.operand(1).IsConst()) is_defined = false;
    if (!part.Is(ExprKind::kLoad)) return;
    const ir::Buffer buffer(part.buffer());
    for (size_t d = 0; d < part.operands().size(); ++d) {
      const arith::LinearForm form = arith::Decompose(part.operand(d));
      int64_t least = form.constant(), most = least;
      for (const arith::LinearForm::Term& term : form.terms()) {
        const std::optional<NestStage::ReduceRange> loop = LoopOf(stage, term.atom);
        if (!loop) {
          is_defined = false;
          return;
        }
        const int64_t first = term.coefficient * loop->min;
        const int64_t last = first + term.coefficient * (loop->extent - 1);
        least += std::min(first, last);
        most += std::max(first, last);
      }
      const Expr extent = buffer->extents[d];
      const bool exists = least >= 0 && extent.Is(ExprKind::kIntImm) && most < extent.int_value();
      is_defined = is_defined && exists;
    }
  });
  return is_defined;
}

absl::flat_hash_set<ir::Buffer> ReadsOf(const NestStage& stage) {
  absl::flat_hash_set<ir::Buffer> reads;
  for (Expr e : {stage.value, stage.element}) {
    if (!e) continue;
    ir::ForEachExpr(e, [&](Expr part) {
      if (part.Is(ExprKind::kLoad)) reads.insert(ir::Buffer(part.buffer()));
    });
  }
  return reads;
}

ir::Buffer NestStages::WholeOf(ir::Buffer buffer) const {
  for (auto it = views.rbegin(); it != views.rend(); ++it) {
    if (it->first == buffer) buffer = it->second;
  }
  return buffer;
}

}  // namespace polynao::poly
