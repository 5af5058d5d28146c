#include "compiler/poly/model/ast_value.h"

#include <isl/ast.h>
#include <isl/id.h>
#include <isl/val.h>

#include <utility>
#include <vector>

#include "base/check.h"

namespace polynao::poly {

using ir::Expr;
using ir::ExprKind;
using ir::Type;

bool IsConstant(Expr e) { return e.Is(ExprKind::kIntImm); }

Expr Plus(Expr a, int64_t b) {
  ir::Context& c = a.context();
  if (IsConstant(a)) return c.I64(a.int_value() + b);
  if (a.Is(ExprKind::kAdd) && IsConstant(a.operand(1))) {
    return Plus(a.operand(0), a.operand(1).int_value() + b);
  }
  if (a.Is(ExprKind::kSub) && IsConstant(a.operand(1))) {
    return Plus(a.operand(0), b - a.operand(1).int_value());
  }
  if (b == 0) return a;
  return b > 0 ? a + c.I64(b) : a - c.I64(-b);
}

Expr Plus(Expr a, Expr b) {
  if (IsConstant(b)) return Plus(a, b.int_value());
  if (IsConstant(a)) return Plus(b, a.int_value());
  return a + b;
}

Expr Minus(Expr a, Expr b) {
  if (IsConstant(b)) return Plus(a, -b.int_value());
  if (a == b) return a.context().I64(0);
  // (b + x) - b
  if (a.Is(ExprKind::kAdd) && a.operand(0) == b) return a.operand(1);
  if (a.Is(ExprKind::kAdd) && a.operand(1) == b) return a.operand(0);
  if (a.Is(ExprKind::kAdd) && IsConstant(a.operand(1))) {
    return Plus(Minus(a.operand(0), b), a.operand(1).int_value());
  }
  return a - b;
}

Expr Times(Expr a, Expr b) {
  if (IsConstant(a)) std::swap(a, b);
  if (!IsConstant(b)) return a * b;
  if (IsConstant(a)) return a.context().I64(a.int_value() * b.int_value());
  return b.IsInt(1) ? a : a * b;
}

namespace {

class AstReader {
 public:
  AstReader(const AstNames& names, ir::Context& context) : names_(names), c_(context) {}

  // An integer (i64) or a condition of isl's.
  Expr Value(const isl::ast_expr& e) {
    switch (isl_ast_expr_get_type(e.get())) {
      case isl_ast_expr_int:
        return c_.I64(isl_val_get_num_si(isl::manage(isl_ast_expr_get_val(e.get())).get()));
      case isl_ast_expr_id: {
        const isl::id id = isl::manage(isl_ast_expr_get_id(e.get()));
        const auto it = names_.find(isl_id_get_name(id.get()));
        POLYNAO_CHECK(it != names_.end()) << Text(e);
        return it->second;
      }
      case isl_ast_expr_op:
        return Operation(e);
      case isl_ast_expr_error:
        break;
    }
    POLYNAO_UNREACHABLE(Text(e));
  }

 private:
  Expr Operation(const isl::ast_expr& e) {
    std::vector<Expr> args;
    for (int i = 0; i < isl_ast_expr_op_get_n_arg(e.get()); ++i) {
      args.push_back(Value(isl::manage(isl_ast_expr_op_get_arg(e.get(), i))));
    }
    const auto fold = [&](ExprKind kind) {
      Expr result = args[0];
      for (size_t i = 1; i < args.size(); ++i)
        result = c_.Binary(kind, result, Condition(kind, args[i]));
      return result;
    };
    switch (isl_ast_expr_op_get_type(e.get())) {
      case isl_ast_expr_op_and:
      case isl_ast_expr_op_and_then:
        args[0] = Condition(ExprKind::kAnd, args[0]);
        return fold(ExprKind::kAnd);
      case isl_ast_expr_op_or:
      case isl_ast_expr_op_or_else:
        args[0] = Condition(ExprKind::kOr, args[0]);
        return fold(ExprKind::kOr);
      case isl_ast_expr_op_max:
        return fold(ExprKind::kMax);
      case isl_ast_expr_op_min:
        return fold(ExprKind::kMin);
      case isl_ast_expr_op_minus:
        return IsConstant(args[0]) ? c_.I64(-args[0].int_value()) : c_.I64(0) - args[0];
      case isl_ast_expr_op_add:
        return Plus(args[0], args[1]);
      case isl_ast_expr_op_sub:
        return Minus(args[0], args[1]);
      case isl_ast_expr_op_mul:
        return Times(args[0], args[1]);
      // Exact quotients, and those of numbers that are not negative, are floors as well.
      case isl_ast_expr_op_div:
      case isl_ast_expr_op_fdiv_q:
      case isl_ast_expr_op_pdiv_q:
        return args[0] / args[1];
      case isl_ast_expr_op_pdiv_r:
      case isl_ast_expr_op_zdiv_r:
        return args[0] % args[1];
      case isl_ast_expr_op_cond:
      case isl_ast_expr_op_select:
        return c_.Select(Condition(ExprKind::kAnd, args[0]), args[1], args[2]);
      case isl_ast_expr_op_eq:
        return ir::Eq(args[0], args[1]);
      case isl_ast_expr_op_le:
        return args[0] <= args[1];
      case isl_ast_expr_op_lt:
        return args[0] < args[1];
      case isl_ast_expr_op_ge:
        return args[0] >= args[1];
      case isl_ast_expr_op_gt:
        return args[0] > args[1];
      default:
        POLYNAO_UNREACHABLE(Text(e));
    }
  }

  // isl writes 1 for true.
  Expr Condition(ExprKind kind, Expr e) {
    const bool is_logic = kind == ExprKind::kAnd || kind == ExprKind::kOr;
    return is_logic && e.type() == Type::kI64 && IsConstant(e) ? c_.Bool(e.int_value() != 0) : e;
  }

  const AstNames& names_;
  ir::Context& c_;
};

}  // namespace

Expr AstValue(const isl::ast_expr& e, const AstNames& names, ir::Context& context) {
  return AstReader(names, context).Value(e);
}

}  // namespace polynao::poly
