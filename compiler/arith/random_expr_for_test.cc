#include "compiler/arith/random_expr_for_test.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/arith/const_range.h"

namespace polynao::arith {

using ir::Expr;
using ir::ExprKind;
using ir::Type;

RandomExpr::RandomExpr(ir::Context& context, uint64_t seed, std::vector<Type> types, bool may_trap)
    : context_(context), random_(seed), types_(std::move(types)), may_trap_(may_trap) {
  for (Type type : types_) {
    for (int i = 0; i < 2; ++i) {
      free_vars_.push_back(context_.NewVar(absl::StrCat("x", free_vars_.size()), type));
    }
    buffers_.push_back(context_.NewBuffer("A", type, {context_.I32(12)}));
  }
  vars_ = free_vars_;
}

Expr RandomExpr::Constant(Type type) {
  constexpr std::array<int64_t, 12> kConstants = {0, 1, 2, 3, 4, 5, 7, 8, 16, -1, -2, 100};
  const ConstRange range = ConstRange::OfType(type);
  switch (Pick(6)) {
    case 0:
      return context_.Int(type, range.min + Pick(2));
    case 1:
      return context_.Int(type, range.max - Pick(2));
    default:
      return context_.Int(type, kConstants[static_cast<size_t>(Pick(kConstants.size()))]);
  }
}

Expr RandomExpr::Leaf(Type type) {
  if (Pick(3) == 0) return Constant(type);
  std::vector<ir::Var> fitting;
  for (ir::Var var : vars_) {
    if (var.type() == type) fitting.push_back(var);
  }
  return fitting[static_cast<size_t>(Pick(static_cast<int>(fitting.size())))];
}

// Often a constant: there are more rewrites for these.
Expr RandomExpr::Divisor(Type type, int depth) {
  if (may_trap_ && Pick(5) == 0) return Int(type, depth);
  Expr divisor = Constant(type);
  while (!may_trap_ && divisor.IsInt(0)) divisor = Constant(type);
  return divisor;
}

Expr RandomExpr::Int(Type type, int depth) {
  if (depth == 0 || Pick(8) == 0) return Leaf(type);
  // Operands in order, so that a seed gives the same tree with every compiler.
  const auto binary = [&](ExprKind kind) {
    const Expr a = Int(type, depth - 1);
    return context_.Binary(kind, a, Int(type, depth - 1));
  };
  const auto divided = [&](ExprKind kind) {
    const Expr a = Int(type, depth - 1);
    return context_.Binary(kind, a, Divisor(type, depth - 1));
  };
  switch (Pick(may_trap_ ? 14 : 13)) {
    case 0:
    case 1:
    case 2:
      return binary(ExprKind::kAdd);
    case 3:
      return binary(ExprKind::kSub);
    case 4: {
      const Expr a = Int(type, depth - 1);
      return a * (Pick(6) == 0 ? Int(type, depth - 1) : Constant(type));
    }
    case 5:
    case 6:
      return divided(ExprKind::kDiv);
    case 7:
      return divided(ExprKind::kMod);
    case 8:
      return binary(ExprKind::kMin);
    case 9:
      return binary(ExprKind::kMax);
    case 10: {
      const Expr condition = Bool(depth - 1);
      const Expr a = Int(type, depth - 1);
      return context_.Select(condition, a, Int(type, depth - 1));
    }
    case 11: {
      const Type from = AnyType();
      return from == type ? Int(type, depth - 1) : context_.Cast(type, Int(from, depth - 1));
    }
    case 12: {
      const ir::Var var = context_.NewVar("t", AnyType());
      const Expr value = Int(var.type(), depth - 1);
      vars_.push_back(var);
      const Expr body = Int(type, depth - 1);
      vars_.pop_back();
      return context_.Let(var, value, body);
    }
    default: {
      const auto i = std::find(types_.begin(), types_.end(), type) - types_.begin();
      return buffers_[static_cast<size_t>(i)](context_.Cast(Type::kI32, Int(AnyType(), depth - 1)));
    }
  }
}

Expr RandomExpr::Bool(int depth) {
  const Type type = AnyType();
  const int choice = depth == 0 ? 0 : Pick(9);
  if (choice == 1) return ir::Not(Bool(depth - 1));
  if (choice == 2 || choice == 3) {
    const Expr a = Bool(depth - 1);
    const Expr b = Bool(depth - 1);
    return choice == 2 ? ir::And(a, b) : ir::Or(a, b);
  }
  const Expr a = depth == 0 ? Leaf(type) : Int(type, depth - 1);
  const Expr b = depth == 0 ? Leaf(type) : Int(type, depth - 1);
  constexpr std::array<ExprKind, 9> kKinds = {ExprKind::kLt, ExprKind::kLt, ExprKind::kLt,
                                              ExprKind::kLt, ExprKind::kLt, ExprKind::kLe,
                                              ExprKind::kLe, ExprKind::kEq, ExprKind::kNe};
  return context_.Binary(kKinds[static_cast<size_t>(choice)], a, b);
}

}  // namespace polynao::arith
