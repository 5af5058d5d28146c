#include "compiler/codegen/loop_work.h"

#include "absl/container/flat_hash_set.h"
#include "base/check.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"

namespace polynao::codegen {

namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

constexpr double kLanes = 4;
constexpr double kCall = 10;  // a function such as exp
constexpr double kUnknownExtent = 64;

class Counter {
 public:
  explicit Counter(ir::Context& context) : c_(context) {}

  Expr Loop(Stmt loop) {
    const Expr extent = loop.extent();
    Expr count = F64(kUnknownExtent);
    const bool is_known = IsKnown(extent);
    if (is_known)
      count = ir::Max(c_.Cast(ir::Type::kF64, ir::Substitute(extent, middles_)), F64(0));
    const ir::Type type = loop.var().type();
    if (is_known && IsKnown(loop.min())) {
      middles_[loop.var()] =
          ir::Substitute(loop.min() + c_.Cast(type, extent / c_.Int(extent.type(), 2)), middles_);
    } else {
      unknown_.insert(loop.var());
    }
    const Expr body = Statement(loop.body());
    // Those without loops inside are mostly vectors in the end.
    const bool is_innermost =
        !ir::AnyStmt(loop.body(), [](Stmt s) { return s.Is(StmtKind::kFor); });
    return Times(count, is_innermost ? Times(body, F64(1 / kLanes)) : Plus(body, F64(1)));
  }

 private:
  Expr Statement(Stmt s) {
    switch (s.kind()) {
      case StmtKind::kFor:
        return Loop(s);
      case StmtKind::kIf:
        return Plus(Operations(s), ir::Max(Statement(s.then_case()), Statement(s.else_case())));
      case StmtKind::kLet:
        if (ir::IsInt(s.var().type()) && IsKnown(s.value())) {
          middles_[s.var()] = ir::Substitute(s.value(), middles_);
        } else {
          unknown_.insert(s.var());
        }
        return Plus(Operations(s), Statement(s.body()));
      case StmtKind::kAllocate:
      case StmtKind::kPragma:
        return Statement(s.body());
      case StmtKind::kStore:
        return Plus(Operations(s), F64(1));
      case StmtKind::kEvaluate:
        return F64(kCall);
      case StmtKind::kSeq: {
        Expr sum = F64(0);
        for (Stmt child : s.children()) sum = Plus(sum, Statement(child));
        return sum;
      }
    }
    POLYNAO_UNREACHABLE(static_cast<int>(s.kind()));
  }

  // Of the statement's own expressions; indices cost nothing.
  Expr Operations(Stmt s) {
    double count = 0;
    seen_.clear();
    const auto operands = s.operands();
    for (size_t i = s.Is(StmtKind::kStore) ? operands.size() - 1 : 0; i < operands.size(); ++i)
      count += OperationsOf(operands[i]);
    return F64(count);
  }

  double OperationsOf(Expr e) {
    if (!seen_.insert(e).second) return 0;
    if (e.Is(ExprKind::kLoad)) return 1;
    double count = e.Is(ExprKind::kCall) ? kCall : e.operands().size() > 1 ? 1 : 0;
    for (Expr operand : e.operands()) count += OperationsOf(operand);
    return count;
  }

  // Whether its value at the middle iterations can be computed in front of all loops without a fault.
  bool IsKnown(Expr e) const {
    bool known = true;
    ir::ForEachExpr(e, [&](Expr part) {
      const bool divides = part.Is(ExprKind::kDiv) || part.Is(ExprKind::kMod);
      known &= !part.Is(ExprKind::kLoad) && !part.Is(ExprKind::kCall) &&
               !part.Is(ExprKind::kAddress) && !part.Is(ExprKind::kLet) &&
               !(part.Is(ExprKind::kVar) && unknown_.contains(part)) &&
               !(divides &&
                 (!part.operand(1).Is(ExprKind::kIntImm) || part.operand(1).int_value() <= 0));
    });
    return known;
  }

  Expr F64(double value) { return c_.Float(ir::Type::kF64, value); }
  static bool Is(Expr e, double value) {
    return e.Is(ExprKind::kFloatImm) && e.float_value() == value;
  }
  Expr Plus(Expr a, Expr b) {
    if (a.Is(ExprKind::kFloatImm) && b.Is(ExprKind::kFloatImm))
      return F64(a.float_value() + b.float_value());
    if (Is(a, 0)) return b;
    return Is(b, 0) ? a : a + b;
  }
  Expr Times(Expr a, Expr b) {
    if (a.Is(ExprKind::kFloatImm) && b.Is(ExprKind::kFloatImm))
      return F64(a.float_value() * b.float_value());
    return a * b;
  }

  ir::Context& c_;
  ir::VarMap middles_;
  absl::flat_hash_set<ir::Var> unknown_;
  absl::flat_hash_set<Expr> seen_;
};

}  // namespace

Expr LoopWork(Stmt loop) { return Counter(loop.context()).Loop(loop); }

}  // namespace polynao::codegen
