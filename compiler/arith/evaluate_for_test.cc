#include "compiler/arith/evaluate_for_test.h"

#include "base/check.h"
#include "compiler/arith/const_range.h"
#include "compiler/ir/visit.h"

namespace polynao::arith {

using ir::Expr;
using ir::ExprKind;
using ir::Type;

namespace {

constexpr Outcome kTrap = {Outcome::kTrap};

Outcome Apply(Expr e, Mode mode, int64_t a, int64_t b) {
  __int128 result = 0;
  switch (e.kind()) {
    case ExprKind::kAdd:
      result = static_cast<__int128>(a) + b;
      break;
    case ExprKind::kSub:
      result = static_cast<__int128>(a) - b;
      break;
    case ExprKind::kMul:
      result = static_cast<__int128>(a) * b;
      break;
    case ExprKind::kDiv:  // wraps in an index, too
      if (b == 0) return kTrap;
      return {Outcome::kValue, ir::WrapInt(e.type(), FloorDiv(a, b))};
    case ExprKind::kMod:
      if (b == 0) return kTrap;
      return {Outcome::kValue, FloorMod(a, b)};
    case ExprKind::kBitAnd:
    case ExprKind::kBitOr:
    case ExprKind::kBitXor:
    case ExprKind::kShiftLeft:
    case ExprKind::kShiftRight:
      return {Outcome::kValue, *ir::EvaluateInt(e.kind(), e.type(), a, b)};
    case ExprKind::kMin:
      return {Outcome::kValue, b < a ? b : a};
    case ExprKind::kMax:
      return {Outcome::kValue, a < b ? b : a};
    case ExprKind::kEq:
      return {Outcome::kValue, a == b};
    case ExprKind::kNe:
      return {Outcome::kValue, a != b};
    case ExprKind::kLt:
      return {Outcome::kValue, a < b};
    case ExprKind::kLe:
      return {Outcome::kValue, a <= b};
    default:
      POLYNAO_UNREACHABLE(ir::ExprKindName(e.kind()));
  }
  const int64_t wrapped = ir::WrapInt(e.type(), static_cast<int64_t>(result));
  const bool exact = mode == Mode::kIndex && (e.type() == Type::kI32 || e.type() == Type::kI64);
  if (exact && wrapped != result) return {Outcome::kOverflow};
  return {Outcome::kValue, wrapped};
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  switch (outcome.kind) {
    case Outcome::kValue:
      return out << outcome.value;
    case Outcome::kTrap:
      return out << "trap";
    case Outcome::kOverflow:
      return out << "overflow";
  }
  return out;
}

void Evaluator::Bind(ir::Var var, const std::vector<int64_t>& values) {
  POLYNAO_CHECK(values.size() == points_) << values.size();
  Outcomes& outcomes = vars_[var];
  outcomes.clear();
  for (int64_t value : values) outcomes.push_back({Outcome::kValue, value});
}

const Outcomes& Evaluator::Of(Expr e, Mode mode) {
  if (e.Is(ExprKind::kVar)) return vars_.at(e);
  const std::pair<Expr, Mode> key(e, mode);
  if (auto it = done_.find(key); it != done_.end()) return it->second;
  Outcomes outcomes = Compute(e, mode);
  return done_.emplace(key, std::move(outcomes)).first->second;
}

Outcomes Evaluator::Compute(Expr e, Mode mode) {
  if (e.Is(ExprKind::kIntImm)) return Outcomes(points_, {Outcome::kValue, e.int_value()});
  if (e.Is(ExprKind::kLoad)) {
    std::vector<const Outcomes*> indices;
    for (Expr index : e.operands()) indices.push_back(&Of(index, Mode::kIndex));
    Outcomes result(points_);
    for (size_t p = 0; p < points_; ++p) {
      uint64_t hash = e.buffer()->id + 1;
      for (size_t i = 0; i < indices.size() && result[p].kind == Outcome::kValue; ++i) {
        const Outcome index = (*indices[i])[p];
        if (index.kind != Outcome::kValue) {
          result[p] = index;
        } else if (index.value < 0 || index.value >= e.buffer()->extents[i].int_value()) {
          result[p] = kTrap;
        }
        hash = (hash * 31 + static_cast<uint64_t>(index.value)) * 0x9e3779b97f4a7c15;
      }
      if (result[p].kind != Outcome::kValue) continue;
      result[p].value = ir::WrapInt(e.type(), static_cast<int64_t>(hash >> 20));
    }
    return result;
  }
  const Outcomes& first = Of(e.operand(0), OperandMode(e, 0, mode));
  Outcomes result = first;
  switch (e.kind()) {
    case ExprKind::kLet: {
      // The same values in both modes, since what is below remembers what it evaluates: where the value
      // overflows in an index, that of data. Where it stops the program, the body is not used.
      Outcomes value = Of(e.operand(0), Mode::kData);
      for (Outcome& outcome : value) {
        if (outcome.kind != Outcome::kValue) outcome = {Outcome::kValue, 0};
      }
      vars_[e.var()] = std::move(value);
      const Outcomes& body = Of(e.operand(1), mode);
      for (size_t p = 0; p < points_; ++p) {
        if (result[p].kind == Outcome::kValue) result[p] = body[p];
      }
      return result;
    }
    case ExprKind::kCast:
      for (Outcome& outcome : result) {
        if (e.type() == Type::kI1) {
          outcome.value = outcome.value != 0;
        } else {
          outcome.value = ir::WrapInt(e.type(), outcome.value);
        }
      }
      return result;
    case ExprKind::kNot:
      for (Outcome& outcome : result) {
        if (outcome.kind == Outcome::kValue) outcome.value = 1 - outcome.value;
      }
      return result;
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      const Outcomes& second = Of(e.operand(1), mode);
      const int64_t goes_on = e.Is(ExprKind::kAnd) ? 1 : 0;
      for (size_t p = 0; p < points_; ++p) {
        if (result[p] == Outcome{Outcome::kValue, goes_on}) result[p] = second[p];
      }
      return result;
    }
    case ExprKind::kSelect: {
      const Outcomes& a = Of(e.operand(1), mode);
      const Outcomes& b = Of(e.operand(2), mode);
      for (size_t p = 0; p < points_; ++p) {
        if (result[p].kind == Outcome::kValue) result[p] = result[p].value != 0 ? a[p] : b[p];
      }
      return result;
    }
    default:
      break;
  }
  const Outcomes& second = Of(e.operand(1), mode);
  for (size_t p = 0; p < points_; ++p) {
    if (result[p].kind != Outcome::kValue) continue;
    result[p] = second[p].kind != Outcome::kValue
                    ? second[p]
                    : Apply(e, mode, result[p].value, second[p].value);
  }
  return result;
}

Outcome Evaluate(Expr e, const Values& values, Mode mode) {
  Evaluator evaluator(1);
  for (ir::Var var : ir::FreeVars(e)) evaluator.Bind(var, {values.at(var.id())});
  return evaluator.Of(e, mode)[0];
}

}  // namespace polynao::arith
