#include "compiler/arith/order.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compiler/arith/wraps.h"

namespace polynao::arith {

namespace {

using ir::Expr;
using ir::ExprKind;

// { c + e, d + e } of max(c, d) + e, with `kind` kMax; nothing if there is no such summand.
std::vector<Expr> Parts(Expr sum, ExprKind kind) {
  if (sum.Is(kind)) return {sum.operand(0), sum.operand(1)};
  if (sum.Is(ExprKind::kSub)) {
    std::vector<Expr> parts = Parts(sum.operand(0), kind);
    for (Expr& part : parts) part = part - sum.operand(1);
    return parts;
  }
  if (!sum.Is(ExprKind::kAdd)) return {};
  for (const int side : {0, 1}) {
    std::vector<Expr> parts = Parts(sum.operand(side), kind);
    for (Expr& part : parts) part = part + sum.operand(1 - side);
    if (!parts.empty()) return parts;
  }
  return {};
}

// Whether a sum in an index is that of mathematical integers.
bool IsExact(Analyzer& analyzer, Expr sum) {
  return IsMathematical(sum.type()) || !CanWrap(analyzer, sum);
}

void AssumeFrom(Analyzer& analyzer, ir::Var var, Expr first) {
  for (Expr part : Parts(first, ExprKind::kMax)) {
    if (!IsExact(analyzer, part)) continue;
    analyzer.Assume(part <= var);
    AssumeFrom(analyzer, var, part);
  }
}

void AssumeBelow(Analyzer& analyzer, ir::Var var, Expr end) {
  for (Expr part : Parts(end, ExprKind::kMin)) {
    if (!IsExact(analyzer, part)) continue;
    analyzer.Assume(var < part);
    AssumeBelow(analyzer, var, part);
  }
}

}  // namespace

void BindLoopWithParts(Analyzer& analyzer, ir::Stmt loop) {
  analyzer.BindLoop(loop.var(), loop.min(), loop.extent());
  AssumeFrom(analyzer, loop.var(), loop.min());
  // The end of a loop over u8 up to 255 is 256, which wraps.
  const Expr end = loop.min() + loop.extent();
  if (IsExact(analyzer, end)) AssumeBelow(analyzer, loop.var(), analyzer.Simplify(end));
}

bool IsLess(Analyzer& analyzer, Expr a, Expr b) {
  if (analyzer.CanProve(a < b)) return true;
  const std::vector<Expr> bounds = Parts(b, ExprKind::kMax);
  return std::any_of(bounds.begin(), bounds.end(),
                     [&](Expr bound) { return analyzer.CanProve(a < bound); });
}

}  // namespace polynao::arith
