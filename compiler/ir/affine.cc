#include "compiler/ir/affine.h"

#include <algorithm>

#include "compiler/ir/flat_index.h"

namespace polynao::ir {
namespace {

// Sum and product of expressions. A null expression is zero.
Expr Plus(Expr a, Expr b) {
  if (!a) return b;
  if (!b) return a;
  return FoldedSum(a, b);
}

Expr Times(Expr a, Expr b) { return a && b ? FoldedProduct(a, b) : Expr(); }

Expr Minus(Expr a) { return Times(a, a ? a.context().I64(-1) : Expr()); }

bool IsFree(const Affine& affine) {
  return std::none_of(affine.coefficients.begin(), affine.coefficients.end(),
                      [](Expr e) { return static_cast<bool>(e); });
}

// Whether `e` uses none of `vars` and no memory.
bool IsInvariant(Expr e, absl::Span<const Var> vars) {
  if (e.Is(ExprKind::kLoad) || e.Is(ExprKind::kCall) || e.Is(ExprKind::kLet)) return false;
  if (std::find(vars.begin(), vars.end(), e) != vars.end()) return false;
  return std::all_of(e.operands().begin(), e.operands().end(),
                     [&](Expr operand) { return IsInvariant(operand, vars); });
}

}  // namespace

std::optional<Affine> Linearize(Expr e, absl::Span<const Var> vars) {
  if (!IsInt(e.type())) return std::nullopt;
  Context& context = e.context();
  Affine result{.constant = Expr(), .coefficients = std::vector<Expr>(vars.size())};
  for (size_t k = 0; k < vars.size(); ++k) {
    if (e == vars[k]) {
      result.coefficients[k] = context.I64(1);
      return result;
    }
  }
  if (IsInvariant(e, vars)) {
    if (!e.IsInt(0)) {
      result.constant =
          e.Is(ExprKind::kIntImm) ? context.I64(e.int_value()) : context.Cast(Type::kI64, e);
    }
    return result;
  }
  switch (e.kind()) {
    case ExprKind::kCast:
      // An index that overflows its type stops the program, so widening changes nothing.
      if (e.type() != Type::kI64) return std::nullopt;
      return Linearize(e.operand(0), vars);
    case ExprKind::kAdd:
    case ExprKind::kSub: {
      const std::optional<Affine> a = Linearize(e.operand(0), vars);
      const std::optional<Affine> b = Linearize(e.operand(1), vars);
      if (!a || !b) return std::nullopt;
      const auto combine = [&](Expr x, Expr y) {
        return Plus(x, e.Is(ExprKind::kAdd) ? y : Minus(y));
      };
      result.constant = combine(a->constant, b->constant);
      for (size_t k = 0; k < vars.size(); ++k) {
        result.coefficients[k] = combine(a->coefficients[k], b->coefficients[k]);
      }
      return result;
    }
    case ExprKind::kMul: {
      std::optional<Affine> a = Linearize(e.operand(0), vars);
      std::optional<Affine> b = Linearize(e.operand(1), vars);
      if (!a || !b) return std::nullopt;
      if (IsFree(*a)) std::swap(a, b);
      if (!IsFree(*b)) return std::nullopt;
      result.constant = Times(a->constant, b->constant);
      for (size_t k = 0; k < vars.size(); ++k) {
        result.coefficients[k] = Times(a->coefficients[k], b->constant);
      }
      return result;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace polynao::ir
