#include "compiler/arith/wraps.h"

#include "compiler/arith/const_range.h"
#include "compiler/ir/visit.h"

namespace polynao::arith {

using ir::Expr;
using ir::ExprKind;

namespace {

// Of the operation `e`, as a mathematical one.
ConstRange RangeOfOperation(Analyzer& analyzer, Expr e) {
  const ConstRange a = analyzer.Range(e.operand(0)), b = analyzer.Range(e.operand(1));
  switch (e.kind()) {
    case ExprKind::kAdd:
      return a + b;
    case ExprKind::kSub:
      return a - b;
    case ExprKind::kMul:
      return a * b;
    default:
      return FloorDiv(a, b);
  }
}

}  // namespace

bool CanWrap(Analyzer& analyzer, Expr root) {
  if (IsMathematical(root.type())) return analyzer.CanOverflow(root);
  bool wraps = false;
  ir::ForEachExpr(root, [&](Expr e) {
    const bool may_leave = e.Is(ExprKind::kAdd) || e.Is(ExprKind::kSub) || e.Is(ExprKind::kMul) ||
                           e.Is(ExprKind::kDiv);
    if (wraps || !may_leave || ir::IsFloat(e.type())) return;
    // u64 has no ranges.
    wraps = !ir::IsIndexable(e.type()) ||
            !ConstRange::OfType(e.type()).Contains(RangeOfOperation(analyzer, e)) ||
            (e.type() == ir::Type::kI64 && !RangeOfOperation(analyzer, e).IsBounded());
  });
  return wraps;
}

bool HasValuesInType(Analyzer& analyzer, Expr min, Expr extent) {
  const ConstRange end = analyzer.Range(min) + analyzer.Range(extent);
  const int64_t greatest = ConstRange::OfType(min.type()).max;
  return end.max != kInfinity && (end.max <= greatest || end.max - 1 == greatest);
}

}  // namespace polynao::arith
