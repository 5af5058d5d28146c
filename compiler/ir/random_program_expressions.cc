// Values, conditions and calls.
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/random_externs.h"
#include "compiler/ir/random_program_generator.h"

namespace polynao::ir::random_program {
namespace {

double EdgeFloat(Random& random, Type type) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double denormal = type == Type::kF16    ? 0x1p-24
                          : type == Type::kBF16 ? 0x1p-133
                          : type == Type::kF32  ? 0x1p-149
                                                : 0x1p-1074;
  return random.OneOf<double>({infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), -0.0,
                               0.0, denormal, -3 * denormal, 65504, 1e30, -1e-30, 1.0 / 3});
}

}  // namespace

Expr Generator::RandomConstant(Type type) {
  if (IsFloat(type)) {
    if (random_.Percent(15)) return c_.Float(type, EdgeFloat(random_, type));
    return c_.Float(type, static_cast<double>(random_.Between(-40, 40)) / 8);
  }
  if (random_.Percent(15)) return c_.Int(type, EdgeInt(random_, type));
  return c_.Int(type, random_.Between(-5, 9));
}

std::optional<Expr> Generator::RandomLoad(Type type, int depth) {
  std::vector<const BufferState*> fitting;
  for (const BufferState& state : buffers_) {
    if (state.readable && state.buffer->type == type) fitting.push_back(&state);
  }
  if (fitting.empty() || nested_loads_ >= 2) return std::nullopt;
  const BufferState& state = *random_.Pick(fitting);
  ++nested_loads_;
  const auto [indices, guard] = RandomIndices(state);
  --nested_loads_;
  const Expr load = c_.Load(state.buffer, indices);
  if (!guard) return load;
  return c_.Select(guard, load, depth > 0 ? RandomValue(type, depth - 1) : RandomConstant(type));
}

Expr Generator::RandomLeaf(Type type) {
  std::vector<Expr> choices;
  for (Expr value : values_) {
    if (value.type() == type) choices.push_back(value);
  }
  for (const IntVar& v : ints_) {
    if (v.var.type() == type) choices.push_back(v.var);
  }
  for (const EdgeVar& v : edge_vars_) {
    if (v.var.type() == type) choices.push_back(v.var);
  }
  for (const auto* list : {&counts_, &starts_, &anys_}) {
    for (Var v : *list) {
      if (v.type() == type) choices.push_back(v);
    }
  }
  if (!choices.empty() && random_.Percent(30)) return random_.Pick(choices);
  if (random_.Percent(75)) {
    if (std::optional<Expr> load = RandomLoad(type, 0)) return *load;
  }
  if (IsInt(type) && type != Type::kI1 && !ints_.empty() && random_.Percent(60)) {
    const Var var = random_.Pick(ints_).var;
    return var.type() == type ? var : CastTo(type, var);
  }
  return RandomConstant(type);
}

Expr Generator::RandomCondition(int depth) {
  if (const Made::Value* again = Repeated(made_.values, [](const Made::Value& value) {
        return value.e.type() == Type::kI1 && value.must_not_wrap;
      })) {
    return again->e;
  }
  const bool outer = std::exchange(must_not_wrap_, true);
  const Expr condition = RandomBool(depth);
  must_not_wrap_ = outer;
  if (options_.repetition > 0 && !condition.operands().empty()) {
    made_.values.push_back({condition, true});
  }
  return condition;
}

Expr Generator::RandomBool(int depth) {
  if (depth > 0) {
    switch (random_.Between(0, 9)) {
      case 0:
      case 1: {
        const Expr a = RandomBool(depth - 1);
        return And(a, RandomBool(depth - 1));
      }
      case 2: {
        const Expr a = RandomBool(depth - 1);
        return Or(a, RandomBool(depth - 1));
      }
      case 3:
        return Not(RandomBool(depth - 1));
      case 4: {
        const Expr condition = RandomBool(depth - 1);
        const Expr a = RandomBool(depth - 1);
        return c_.Select(condition, a, RandomBool(depth - 1));
      }
      case 5:
        if (random_.Percent(50)) return RandomLeaf(Type::kI1);
        return CastTo(Type::kI1, RandomValue(RandomType(), depth - 1));
      default:
        break;
    }
  }
  if (options_.edges && random_.Percent(25)) return EdgeComparison();
  const ExprKind kind =
      random_.OneOf({ExprKind::kEq, ExprKind::kNe, ExprKind::kLt, ExprKind::kLt, ExprKind::kLe});
  if (random_.Percent(65)) {
    const Type type = random_.Percent(80) ? Type::kI32 : Type::kI64;
    const Expr a = RandomRanged(type, depth).e;
    return c_.Binary(kind, a, RandomRanged(type, depth - 1).e);
  }
  const Type type = RandomType();
  const Expr a = RandomValue(type, depth - 1);
  const Expr b = RandomValue(type, depth - 1);
  // Conditions have no order.
  return c_.Binary(type == Type::kI1 ? ExprKind::kNe : kind, a, b);
}

Expr Generator::RandomValue(Type type, int depth) {
  if (const Made::Value* again = Repeated(made_.values, [&](const Made::Value& value) {
        return value.e.type() == type && (value.must_not_wrap || !must_not_wrap_);
      })) {
    return again->e;
  }
  const Expr value = NewValue(type, depth);
  if (options_.repetition > 0 && !value.IsConst() && !value.Is(ExprKind::kVar)) {
    made_.values.push_back({value, must_not_wrap_});
  }
  return value;
}

Expr Generator::NewValue(Type type, int depth) {
  if (type == Type::kI1) return depth > 0 ? RandomCondition(depth) : RandomLeaf(type);
  if (options_.edges && IsInt(type) && random_.Percent(5)) {
    const Expr minus_one = c_.Int(type, -1);
    const Expr a = RandomLeaf(type);
    return random_.Percent(75) ? a / minus_one : a % minus_one;
  }
  if (must_not_wrap_ && (type == Type::kI32 || type == Type::kI64)) {
    return random_.Percent(50) ? RandomRanged(type, depth).e : RandomLeaf(type);
  }
  if (depth <= 0 || random_.Percent(15)) return RandomLeaf(type);
  if (options_.extern_calls && random_.Percent(20)) {
    if (std::optional<Expr> call = ExternValue(type, depth)) return *call;
  }
  auto operand = [&] { return RandomValue(type, depth - 1); };
  const int64_t choice = random_.Between(0, 15);
  switch (choice) {
    case 0:
    case 1:
    case 2: {
      const Expr a = operand();
      return a + operand();
    }
    case 3: {
      const Expr a = operand();
      return a - operand();
    }
    case 4:
    case 5:
    case 6: {
      const Expr a = operand();
      return a * operand();
    }
    case 7:
      return IsFloat(type) ? FloatDivision(type, depth) : IntDivision(type, depth);
    case 8: {
      const Expr a = operand();
      return Min(a, operand());
    }
    case 9: {
      const Expr a = operand();
      return Max(a, operand());
    }
    case 10:
    case 11: {
      const Expr condition = RandomCondition(depth - 1);
      const Expr a = operand();
      return c_.Select(condition, a, operand());
    }
    case 12: {
      const Expr value = RandomValue(RandomType(), depth - 1);
      const Var var = c_.NewVar(Name("l"), value.type());
      const MadeScope scope(*this);
      values_.push_back(var);
      const Expr body = operand();
      values_.pop_back();
      return c_.Let(var, value, body);
    }
    case 13:
    case 14:
      if (IsFloat(type)) return Intrinsic(type, depth);
      if (random_.Percent(75)) return BitOperation(type, depth);
      [[fallthrough]];
    default:
      return CastTo(type, RandomValue(RandomType(), depth - 1));
  }
}

Expr Generator::BitOperation(Type type, int depth) {
  const ExprKind kind = random_.OneOf({ExprKind::kBitAnd, ExprKind::kBitOr, ExprKind::kBitXor,
                                       ExprKind::kShiftLeft, ExprKind::kShiftRight});
  const Expr a = RandomValue(type, depth - 1);
  const bool shifts = kind == ExprKind::kShiftLeft || kind == ExprKind::kShiftRight;
  // Most counts within the width, some around it.
  if (shifts && !options_.variable_shifts) {
    return c_.Binary(kind, a, c_.Int(type, random_.Between(0, BitWidth(type) - 1)));
  }
  if (shifts && random_.Percent(60)) {
    return c_.Binary(kind, a, c_.Int(type, random_.Between(-1, BitWidth(type))));
  }
  return c_.Binary(kind, a, RandomValue(type, depth - 1));
}

Expr Generator::FloatDivision(Type type, int depth) {
  const Expr a = RandomValue(type, depth - 1);
  return a / RandomValue(type, depth - 1);
}

Expr Generator::IntDivision(Type type, int depth) {
  const ExprKind kind = random_.OneOf({ExprKind::kDiv, ExprKind::kMod});
  const Expr a = RandomValue(type, depth - 1);
  // It may stand in a condition below.
  const bool outer = std::exchange(must_not_wrap_, true);
  const Expr b = RandomValue(type, depth - 1);
  must_not_wrap_ = outer;
  const Expr zero = c_.Int(type, 0);
  const Expr one = c_.Int(type, 1);
  if (options_.may_stop && random_.Percent(20)) return c_.Binary(kind, a, b);
  switch (random_.Between(0, 3)) {
    case 0:
      return c_.Select(Ne(b, zero), c_.Binary(kind, a, b), a);
    case 1:
      return c_.Binary(kind, a, Max(b, one));
    case 2:
      return c_.Binary(kind, a, c_.Select(Eq(b, zero), one, b));
    default: {
      const Expr constant = RandomConstant(type);
      return c_.Binary(kind, a, constant.IsInt(0) ? c_.Int(type, -1) : constant);
    }
  }
}

Expr Generator::Intrinsic(Type type, int depth) {
  const bool exact = !options_.inexact_intrinsics || random_.Percent(50);
  std::vector<const PureIntrinsic*> fitting;
  for (const PureIntrinsic& intrinsic : PureIntrinsics()) {
    if ((intrinsic.accuracy == Accuracy::kExact) == exact) fitting.push_back(&intrinsic);
  }
  const PureIntrinsic& intrinsic = *random_.Pick(fitting);
  std::vector<Expr> arguments;
  for (int i = 0; i < intrinsic.arity; ++i) arguments.push_back(RandomValue(type, depth - 1));
  return c_.Call(type, intrinsic.name, arguments);
}

const ExternNode* Generator::PickExtern(std::optional<Type> result) {
  if (externs_.empty()) externs_ = RandomExterns(context_);
  std::vector<const ExternNode*> fitting;
  for (const ExternNode* callee : externs_) {
    if (callee->result == result) fitting.push_back(callee);
  }
  return fitting.empty() ? nullptr : random_.Pick(fitting);
}

std::optional<Generator::ExternCall> Generator::RandomCall(const ExternNode* callee, int depth) {
  ExternCall made;
  std::vector<Expr> arguments;
  absl::flat_hash_set<Buffer> used;
  for (const Param& param : callee->params) {
    if (param.var) {
      const bool outer = std::exchange(must_not_wrap_, true);
      arguments.push_back(RandomValue(param.var.type(), depth - 1));
      must_not_wrap_ = outer;
      continue;
    }
    std::vector<BufferState> fitting;
    for (const BufferState& state : buffers_) {
      // What is written overlaps nothing else in the call.
      if (state.buffer->type == param.buffer->type && state.readable &&
          !used.contains(state.buffer) && (param.access == Access::kIn || state.writable)) {
        fitting.push_back(state);
      }
    }
    if (fitting.empty() || nested_loads_ >= 2) return std::nullopt;
    const BufferState state = random_.Pick(fitting);
    used.insert(state.buffer);
    ++nested_loads_;
    const auto [indices, guard] = RandomIndices(state);
    --nested_loads_;
    arguments.push_back(c_.Address(state.buffer, indices));
    if (guard) made.guard = made.guard ? And(made.guard, guard) : guard;
  }
  made.call = c_.Call(callee, arguments);
  return made;
}

std::optional<Expr> Generator::ExternValue(Type type, int depth) {
  const ExternNode* callee = PickExtern(type);
  if (callee == nullptr) return std::nullopt;
  const std::optional<ExternCall> made = RandomCall(callee, depth);
  if (!made) return std::nullopt;
  return made->guard ? c_.Select(made->guard, made->call, RandomConstant(type)) : made->call;
}

}  // namespace polynao::ir::random_program
