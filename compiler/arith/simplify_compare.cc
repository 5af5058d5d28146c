// Simplification of comparisons of integers, by the sum that is their operands' difference.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/analyzer_parts.h"
#include "compiler/arith/const_range.h"
#include "compiler/arith/linear_form.h"

namespace polynao::arith {

using ir::Expr;
using ir::ExprKind;
using ir::Type;

namespace {

// An expression of a narrower type with the same values, and an interval that holds them.
struct Narrow {
  Expr e;
  ConstRange range;
};

// Sums, products, minima and maxima of casts from one type, of which the casts keep all values, and
// of constants, written in that type: 2048 - i * 192 for i64(2048) - cast(i64, i) * i64(192).
class Narrower {
 public:
  explicit Narrower(std::function<ConstRange(Expr)> range) : range_(std::move(range)) {}

  // Whether `e` has casts to be left out and nothing that needs the wider type, as it seems from
  // outside; finds the type of what is cast.
  bool Find(Expr e) {
    switch (e.kind()) {
      case ExprKind::kIntImm:
        return true;
      case ExprKind::kCast: {
        const Type from = e.operand(0).type();
        if (!ir::IsIndexable(from) || (type_ && *type_ != from)) return false;
        type_ = from;
        return ConstRange::OfType(e.type()).Contains(ConstRange::OfType(from));
      }
      case ExprKind::kAdd:
      case ExprKind::kSub:
      case ExprKind::kMul:
      case ExprKind::kMin:
      case ExprKind::kMax:
        return Find(e.operand(0)) && Find(e.operand(1));
      default:
        return false;
    }
  }

  // After Find: `e` in the type found, or nothing if a part of it can leave that type.
  std::optional<Narrow> Write(Expr e) {
    if (!type_) return std::nullopt;
    const ConstRange all = ConstRange::OfType(*type_);
    if (e.Is(ExprKind::kIntImm)) {
      const int64_t value = e.int_value();
      if (!all.Contains(value)) return std::nullopt;
      return Narrow{e.context().Int(*type_, value), ConstRange::Point(value)};
    }
    if (e.Is(ExprKind::kCast)) return Narrow{e.operand(0), range_(e.operand(0))};
    const std::optional<Narrow> x = Write(e.operand(0)), y = Write(e.operand(1));
    if (!x || !y) return std::nullopt;
    const ConstRange range = Combined(e.kind(), x->range, y->range);
    if (!Fits(range, *type_)) return std::nullopt;
    return Narrow{e.context().Binary(e.kind(), x->e, y->e), range};
  }

 private:
  static ConstRange Combined(ExprKind kind, ConstRange x, ConstRange y) {
    switch (kind) {
      case ExprKind::kAdd:
        return x + y;
      case ExprKind::kSub:
        return x - y;
      case ExprKind::kMul:
        return x * y;
      case ExprKind::kMin:
        return Min(x, y);
      default:
        return Max(x, y);
    }
  }

  std::function<ConstRange(Expr)> range_;
  std::optional<Type> type_;
};

}  // namespace

// What casts to a wider type keep is compared without them: facts are about what is cast.
std::optional<Expr> Analyzer::CompareNarrow(Expr e, Mode mode) {
  Narrower narrower([&](Expr x) { return RangeOf(x, mode); });
  if (!ir::IsIndexable(e.operand(0).type()) || !narrower.Find(e.operand(0)) ||
      !narrower.Find(e.operand(1))) {
    return std::nullopt;
  }
  const std::optional<Narrow> x = narrower.Write(e.operand(0)), y = narrower.Write(e.operand(1));
  if (!x || !y) return std::nullopt;
  return SimplifyCompare(context_.Binary(e.kind(), x->e, y->e), mode);
}

Expr Analyzer::SimplifyCompare(Expr e, Mode mode) {
  const Expr a = SimplifyIn(e.operand(0), mode);
  const Expr b = SimplifyIn(e.operand(1), mode);
  const Expr plain = context_.Binary(e.kind(), a, b);
  if (const auto narrow = CompareNarrow(plain, mode)) return *narrow;
  if (!ir::IsIndexable(a.type())) {
    if (a.IsConst() && b.IsConst() && ir::IsInt(a.type())) {  // i1 or u64
      return context_.Bool(*ir::EvaluateInt(e.kind(), a.type(), a.int_value(), b.int_value()) != 0);
    }
    return ApplyRules(FoldFloats(plain), mode);
  }
  LinearForm difference = *MathForm(a, mode);
  if (!difference.Add(*MathForm(b, mode), -1)) return ApplyRules(plain, mode);
  const std::optional<bool> truth = DecideComparison(e.kind(), difference, mode);
  if (truth && !CanTrap(plain)) return context_.Bool(*truth);

  // The sum to compare with zero, as small as it gets: `sum < 0`, or `sum == 0`.
  const bool is_order = e.Is(ExprKind::kLt) || e.Is(ExprKind::kLe);
  LinearForm sum = std::move(difference);
  if (e.Is(ExprKind::kLe) && !sum.AddConstant(-1)) return ApplyRules(plain, mode);
  if (!ReduceComparison(is_order, sum, mode)) return ApplyRules(plain, mode);
  // x / d + k < 0 exactly if x < -k d, and k < x / d exactly if (k + 1) d <= x.
  if (is_order && sum.terms().size() == 1 && std::abs(sum.terms()[0].coefficient) == 1 &&
      sum.terms()[0].atom.Is(ExprKind::kDiv) &&
      sum.terms()[0].atom.operand(1).Is(ExprKind::kIntImm) &&
      sum.terms()[0].atom.operand(1).int_value() > 0) {
    const Expr quotient = sum.terms()[0].atom;
    const int64_t sign = sum.terms()[0].coefficient;
    LinearForm undivided = LinearForm::Constant(sum.constant());
    if (undivided.AddConstant(sign < 0 ? 1 : 0) &&
        undivided.Scale(quotient.operand(1).int_value()) &&
        undivided.AddConstant(sign < 0 ? -1 : 0) &&
        undivided.Add(*MathForm(quotient.operand(0), mode), sign) &&
        ReduceComparison(is_order, undivided, mode)) {
      if (const auto shown = ShowComparison(plain, is_order, std::move(undivided), mode)) {
        return ApplyRules(*shown, mode);
      }
    }
  }
  const auto shown = ShowComparison(plain, is_order, std::move(sum), mode);
  if (!shown) return ApplyRules(plain, mode);
  if (const auto narrow = CompareNarrow(*shown, mode)) return *narrow;
  return ApplyRules(*shown, mode);
}

// Whether the comparison of a with b is true, where `difference` is a - b.
std::optional<bool> Analyzer::DecideComparison(ExprKind kind, const LinearForm& difference,
                                               Mode mode) {
  constexpr int kFactDepth = 2;
  const ConstRange range = Bound(difference, mode, kFactDepth);
  const auto nonzero = [&] { return !nonzero_.empty() && IsNonZero(difference, mode); };
  switch (kind) {
    case ExprKind::kLt:
      if (range.max < 0 || (range.max == 0 && nonzero())) return true;
      if (range.min >= 0) return false;
      return std::nullopt;
    case ExprKind::kLe:
      if (range.max <= 0) return true;
      if (range.min > 0 || (range.min == 0 && nonzero())) return false;
      return std::nullopt;
    default: {
      const bool is_eq = kind == ExprKind::kEq;
      const int64_t factor = difference.CommonFactor();
      if (!range.Contains(0) || (factor != 0 && difference.constant() % factor != 0)) {
        return !is_eq;
      }
      if (range == ConstRange::Point(0)) return is_eq;
      if (nonzero()) return !is_eq;
      return std::nullopt;
    }
  }
}

// Makes `sum` smaller where `sum < 0` (`is_order`) or `sum == 0` stays the same. False if a
// coefficient left int64_t.
bool Analyzer::ReduceComparison(bool is_order, LinearForm& sum, Mode mode) {
  for (bool changed = true; changed;) {
    changed = false;
    const int64_t factor = sum.CommonFactor();
    if (factor > 1 && (is_order || sum.constant() % factor == 0)) {
      // factor y + k < 0 exactly if y + floor(k / factor) < 0.
      LinearForm reduced = LinearForm::Constant(FloorDiv(sum.constant(), factor));
      for (const LinearForm::Term& term : sum.terms()) {
        if (!reduced.AddTerm(term.atom, term.coefficient / factor)) return false;
      }
      sum = std::move(reduced);
    }
    if (!is_order) break;
    // c x + y < 0 exactly if x < 0, where 0 <= y < c.
    std::vector<int64_t> coefficients;
    for (const LinearForm::Term& term : sum.terms()) {
      coefficients.push_back(std::abs(term.coefficient));
    }
    std::sort(coefficients.rbegin(), coefficients.rend());
    for (int64_t c : coefficients) {
      if (c == 1) break;
      LinearForm whole = LinearForm::Constant(FloorDiv(sum.constant(), c));
      LinearForm rest = LinearForm::Constant(FloorMod(sum.constant(), c));
      for (const LinearForm::Term& term : sum.terms()) {
        const bool divides = term.coefficient % c == 0;
        if (!(divides ? whole.AddTerm(term.atom, term.coefficient / c)
                      : rest.AddTerm(term.atom, term.coefficient))) {
          return false;
        }
      }
      if (rest.IsConstant()) continue;
      const ConstRange rest_range = Bound(rest, mode, 0);
      if (rest_range.min >= 0 && rest_range.max < c) {
        sum = std::move(whole);
        changed = true;
        break;
      }
    }
  }
  // x - 4 (x / 4) - k is x % 4 - k.
  LinearForm recombined = Recombine(sum, mode);
  if (recombined.terms().size() < sum.terms().size()) sum = std::move(recombined);
  return true;
}

// `sum < 0` (`is_order`), `sum == 0` or `sum != 0`, as `plain` says, if that can be computed without
// wrapping, costs no more than `plain`, and traps where it does.
std::optional<Expr> Analyzer::ShowComparison(Expr plain, bool is_order, LinearForm sum, Mode mode) {
  if (sum.IsConstant()) return std::nullopt;  // decided, but for operands that trap
  // `a == b` and `b == a` become the same.
  if (!is_order && sum.terms()[0].coefficient < 0 && !sum.Scale(-1)) return std::nullopt;
  // Positive terms to the left, negative ones to the right, the constant where it reads best.
  LinearForm left, right;
  for (const LinearForm::Term& term : sum.terms()) {
    const bool ok = term.coefficient > 0 ? left.AddTerm(term.atom, term.coefficient)
                                         : right.AddTerm(term.atom, -term.coefficient);
    if (!ok) return std::nullopt;
  }
  const int64_t constant = sum.constant();
  if (constant <= kMinusInfinity + 1 || constant == kInfinity) return std::nullopt;
  ExprKind kind = plain.kind();
  bool ok = true;
  if (is_order) {
    kind = ExprKind::kLt;
    if (left.IsConstant()) {  // constant + 1 <= right
      kind = ExprKind::kLe;
      ok = left.AddConstant(constant + 1);
    } else if (constant == -1 && !right.IsConstant()) {  // left <= right
      kind = ExprKind::kLe;
    } else if (constant > 0 && !right.IsConstant()) {  // left + constant < right
      ok = left.AddConstant(constant);
    } else {  // left < right - constant
      ok = right.AddConstant(-constant);
    }
  } else {
    ok = right.AddConstant(-constant);
  }
  if (!ok) return std::nullopt;
  const Expr a = plain.operand(0), b = plain.operand(1);
  std::vector<LinearForm> computed;
  CollectSums(a, mode, computed);
  CollectSums(b, mode, computed);
  auto print = [&](const LinearForm& side) {
    const bool fits = side == *MathForm(a, mode) || side == *MathForm(b, mode) ||
                      std::find(computed.begin(), computed.end(), side) != computed.end();
    return Print(
        side, {.type = a.type(), .mode = mode, .fits = fits, .wraps = false, .computed = computed});
  };
  const auto left_expr = print(left), right_expr = print(right);
  if (!left_expr || !right_expr) return std::nullopt;
  const Expr shown = context_.Binary(kind, *left_expr, *right_expr);
  if (Cost(shown) > Cost(plain) || !KeepsTraps(plain, shown)) return std::nullopt;
  return shown;
}

}  // namespace polynao::arith
