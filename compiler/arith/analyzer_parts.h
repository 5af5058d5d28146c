// The files that implement Analyzer share this: which operations it takes apart, and when their
// results fit their type.
#ifndef COMPILER_ARITH_ANALYZER_PARTS_H_
#define COMPILER_ARITH_ANALYZER_PARTS_H_

#include "base/check.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/const_range.h"
#include "compiler/ir/ir.h"

namespace polynao::arith {

inline bool IsArithmetic(ir::ExprKind kind) {
  return kind >= ir::ExprKind::kAdd && kind <= ir::ExprKind::kMod;
}

inline bool IsIntSum(ir::Expr e) { return IsArithmetic(e.kind()) && ir::IsIndexable(e.type()); }

inline bool IsPositiveConstant(ir::Expr e) {
  return e.Is(ir::ExprKind::kIntImm) && e.int_value() > 0;
}

// `x / c` with c > 0.
inline bool IsConstantDiv(ir::Expr e) {
  return e.Is(ir::ExprKind::kDiv) && IsPositiveConstant(e.operand(1));
}

inline ConstRange Apply(ir::ExprKind kind, ConstRange a, ConstRange b) {
  switch (kind) {
    case ir::ExprKind::kAdd:
      return a + b;
    case ir::ExprKind::kSub:
      return a - b;
    case ir::ExprKind::kMul:
      return a * b;
    case ir::ExprKind::kDiv:
      return FloorDiv(a, b);
    case ir::ExprKind::kMod:
      return FloorMod(a, b);
    case ir::ExprKind::kMin:
      return Min(a, b);
    case ir::ExprKind::kMax:
      return Max(a, b);
    default:
      POLYNAO_UNREACHABLE(ir::ExprKindName(kind));
  }
}

// Returns true if values in `range`, the saturated result of an operation, are values of `type`.
// For i64 an infinite end may be a value that did not fit.
inline bool Fits(ConstRange range, ir::Type type) {
  if (type == ir::Type::kU64) return range.IsEmpty();
  if (type == ir::Type::kI64) return range.IsEmpty() || range.IsBounded();
  return ConstRange::OfType(type).Contains(range);
}

// Returns true if operations on `type` are mathematical in `mode`.
inline bool IsExact(ir::Type type, Mode mode) {
  return mode == Mode::kIndex && (type == ir::Type::kI32 || type == ir::Type::kI64);
}

}  // namespace polynao::arith

#endif  // COMPILER_ARITH_ANALYZER_PARTS_H_
