#include "compiler/codegen/cuda/lanes.h"

#include "compiler/ir/visit.h"

namespace polynao::codegen {

using ir::Expr;
using ir::ExprKind;

bool IsMultiple(Expr e, int64_t n, const ir::VarMap& lets) {
  switch (e.kind()) {
    case ExprKind::kIntImm:
      return e.int_value() % n == 0;
    case ExprKind::kVar: {
      const auto it = lets.find(e);
      return it != lets.end() && IsMultiple(it->second, n, lets);
    }
    case ExprKind::kAdd:
    case ExprKind::kSub:
    case ExprKind::kMin:
    case ExprKind::kMax:
      return IsMultiple(e.operand(0), n, lets) && IsMultiple(e.operand(1), n, lets);
    case ExprKind::kMul:
      return IsMultiple(e.operand(0), n, lets) || IsMultiple(e.operand(1), n, lets);
    case ExprKind::kMod:
      return e.operand(1).Is(ExprKind::kIntImm) && IsMultiple(e.operand(0), n, lets) &&
             IsMultiple(e.operand(1), n, lets);
    case ExprKind::kSelect:
      return IsMultiple(e.operand(1), n, lets) && IsMultiple(e.operand(2), n, lets);
    case ExprKind::kCast:
      return e.type() == ir::Type::kI64 && ir::IsInt(e.operand(0).type()) &&
             IsMultiple(e.operand(0), n, lets);
    default:
      return false;
  }
}

std::optional<Lanes> LanesOf(Expr e, ir::Var lane, int64_t n, const ir::VarMap& lets) {
  if (!ir::UsesVar(e, lane)) return Lanes{e, 0};
  if (e == lane) return Lanes{e.context().Int(e.type(), 0), 1};
  if (e.operands().empty()) return std::nullopt;
  const std::optional<Lanes> a = LanesOf(e.operand(0), lane, n, lets);
  if (!a) return std::nullopt;
  const auto is_constant = [&](size_t i) {
    return e.operands().size() == 2 && e.operand(i).Is(ExprKind::kIntImm);
  };
  switch (e.kind()) {
    case ExprKind::kAdd:
    case ExprKind::kSub: {
      const std::optional<Lanes> b = LanesOf(e.operand(1), lane, n, lets);
      if (!b) return std::nullopt;
      const int64_t step = e.Is(ExprKind::kAdd) ? a->step + b->step : a->step - b->step;
      if (b->first.IsInt(0)) return Lanes{a->first, step};
      if (e.Is(ExprKind::kSub)) return Lanes{a->first - b->first, step};
      return Lanes{a->first.IsInt(0) ? b->first : a->first + b->first, step};
    }
    case ExprKind::kMul:
      if (!is_constant(1)) return std::nullopt;
      return Lanes{a->first * e.operand(1), a->step * e.operand(1).int_value()};
    case ExprKind::kDiv:
    case ExprKind::kMod: {
      if (!is_constant(1) || a->step != 1 || !IsMultiple(a->first, n, lets)) return std::nullopt;
      const int64_t divisor = e.operand(1).int_value();
      if (divisor <= 0 || divisor % n != 0) return std::nullopt;
      if (e.Is(ExprKind::kDiv)) return Lanes{a->first / e.operand(1), 0};
      return Lanes{a->first % e.operand(1), 1};
    }
    case ExprKind::kCast:
      if (e.type() != ir::Type::kI64 || e.operand(0).type() != ir::Type::kI32) return std::nullopt;
      return Lanes{e.context().Cast(e.type(), a->first), a->step};
    default:
      return std::nullopt;
  }
}

bool IsWide(ir::Buffer buffer, absl::Span<const Expr> indices, size_t dropped, ir::Var lane,
            int64_t n, const ir::VarMap& lets, std::vector<Expr>* first) {
  if (indices.size() <= dropped) return false;
  for (size_t d = 0; d + 1 < indices.size(); ++d) {
    if (ir::UsesVar(indices[d], lane)) return false;
  }
  const std::optional<Lanes> last = LanesOf(indices.back(), lane, n, lets);
  if (!last || last->step != 1 || !IsMultiple(last->first, n, lets)) return false;
  // Rows start at multiples of n, too.
  if (indices.size() - dropped > 1 && !IsMultiple(buffer->extents.back(), n, lets)) return false;
  first->assign(indices.begin(), indices.end());
  first->back() = last->first;
  return true;
}

}  // namespace polynao::codegen
