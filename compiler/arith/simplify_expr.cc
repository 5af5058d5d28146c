// Simplification of expressions: constants, sums, comparisons by forms and intervals, then the
// table of rules.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/check.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/logic.h"
#include "compiler/arith/rules.h"
#include "compiler/ir/visit.h"

namespace polynao::arith {

using ir::Expr;
using ir::ExprKind;
using ir::Type;

namespace {

// Types whose values are numbers in an int64_t; u64 is left alone.
bool IsNumericInt(Type type) { return ir::IsIndexable(type); }

bool IsArithmetic(ExprKind kind) { return kind >= ExprKind::kAdd && kind <= ExprKind::kMod; }

}  // namespace

Expr Analyzer::Simplify(Expr e, Mode mode) {
  // Recursion goes as deep as the expression; what is deeper is simplified from the leaves up, and
  // without facts from conditions inside.
  constexpr int kMaxDepth = 200;
  if (questions_ == 0) steps_ = 0;
  ++questions_;
  if (Depth(e) > kMaxDepth) {
    const int nested = nested_conditions_;
    nested_conditions_ = options_.max_nested_conditions;
    ir::ForEachExpr(e, [&](Expr x) {
      steps_ = 0;
      SimplifyIn(x, mode);
      if (mode == Mode::kData) SimplifyIn(x, Mode::kIndex);
    });
    nested_conditions_ = nested;
  }
  const Expr result = SimplifyIn(e, mode);
  --questions_;
  return result;
}

Expr Analyzer::SimplifyIn(Expr e, Mode mode) {
  if (e.operands().empty()) {
    if (!e.Is(ExprKind::kVar)) return e;
    if (e.type() == Type::kI1) {
      auto it = known_.find(e);
      return it == known_.end() ? e : context_.Bool(it->second);
    }
    if (!ir::IsInt(e.type())) return e;
    auto it = ranges_.find(e);
    return it != ranges_.end() && it->second.IsPoint() ? context_.Int(e.type(), it->second.min) : e;
  }
  const Key key = {e.node(), mode};
  if (auto it = memo().simplified.find(key); it != memo().simplified.end()) return it->second;
  if (OutOfSteps() || recursion_ > kMaxRecursion) return e;
  // What opens a scope has a new memo inside; it must not come back to itself through a fact.
  const bool opens_scope = e.Is(ExprKind::kSelect) || e.Is(ExprKind::kLet) ||
                           e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr);
  if (opens_scope && !active_.insert(e).second) return e;
  // Stands in should the computation come back to `e`.
  memo().simplified[key] = e;
  ++recursion_;
  Expr result = SimplifyNew(e, mode);
  --recursion_;
  if (opens_scope) active_.erase(e);
  if (result.type() == Type::kI1 && !result.IsConst()) {
    for (Expr x : {result, e}) {
      auto it = known_.find(x);
      if (it != known_.end() && !CanTrap(e)) result = context_.Bool(it->second);
    }
  }
  memo().simplified[key] = result;
  if (result != e) memo().simplified.emplace(Key{result.node(), mode}, result);
  return result;
}

Expr Analyzer::SimplifyNew(Expr e, Mode mode) {
  switch (e.kind()) {
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kVar:
      return e;
    case ExprKind::kAdd:
    case ExprKind::kSub:
    case ExprKind::kMul:
    case ExprKind::kDiv:
    case ExprKind::kMod:
      return IsNumericInt(e.type()) ? SimplifySum(e, mode) : SimplifyOpaque(e, mode);
    case ExprKind::kMin:
    case ExprKind::kMax:
      return SimplifyMinMax(e, mode);
    case ExprKind::kEq:
    case ExprKind::kNe:
    case ExprKind::kLt:
    case ExprKind::kLe:
      return SimplifyCompare(e, mode);
    case ExprKind::kAnd:
    case ExprKind::kOr:
      return SimplifyLogic(e, mode);
    case ExprKind::kSelect:
      return SimplifySelect(e, mode);
    case ExprKind::kLet:
      return SimplifyLet(e, mode);
    case ExprKind::kCast:
      return SimplifyCast(e, mode);
    case ExprKind::kBitAnd:
    case ExprKind::kBitOr:
    case ExprKind::kBitXor:
    case ExprKind::kShiftLeft:
    case ExprKind::kShiftRight:
    case ExprKind::kNot:
    case ExprKind::kLoad:
    case ExprKind::kAddress:
    case ExprKind::kCall:
      return SimplifyOpaque(e, mode);
  }
  POLYNAO_UNREACHABLE(static_cast<int>(e.kind()));
}

Expr Analyzer::SimplifyOperands(Expr e, Mode mode) {
  std::vector<Expr> operands;
  operands.reserve(e.operands().size());
  for (size_t i = 0; i < e.operands().size(); ++i) {
    operands.push_back(SimplifyIn(e.operand(i), OperandMode(e, i, mode)));
  }
  return context_.Rebuild(e, operands);
}

// Operands, constants and rules, without taking `e` itself apart as a sum or comparison.
Expr Analyzer::SimplifyOpaque(Expr e, Mode mode) {
  return ApplyRules(FoldFloats(SimplifyOperands(e, mode)), mode);
}

// ---- constants ----------------------------------------------------------------------------------

Expr Analyzer::FoldFloats(Expr e) {
  if (ir::IsBitOperation(e.kind()) && e.operand(0).Is(ExprKind::kIntImm) &&
      e.operand(1).Is(ExprKind::kIntImm)) {
    return context_.Int(e.type(), *ir::EvaluateInt(e.kind(), e.type(), e.operand(0).int_value(),
                                                   e.operand(1).int_value()));
  }
  if (!ir::IsBinary(e.kind()) || !e.operand(0).Is(ExprKind::kFloatImm) ||
      !e.operand(1).Is(ExprKind::kFloatImm)) {
    return e;
  }
  const double a = e.operand(0).float_value(), b = e.operand(1).float_value();
  // One rounding: sums, products and quotients of narrower floats rounded to f64 first, then to the
  // narrower type, are as if rounded once.
  switch (e.kind()) {
    case ExprKind::kAdd:
      return context_.Float(e.type(), a + b);
    case ExprKind::kSub:
      return context_.Float(e.type(), a - b);
    case ExprKind::kMul:
      return context_.Float(e.type(), a * b);
    case ExprKind::kDiv:
      return context_.Float(e.type(), a / b);
    case ExprKind::kMin:
      return b < a ? e.operand(1) : e.operand(0);
    case ExprKind::kMax:
      return a < b ? e.operand(1) : e.operand(0);
    case ExprKind::kEq:
      return context_.Bool(a == b);
    case ExprKind::kNe:
      return context_.Bool(a != b);
    case ExprKind::kLt:
      return context_.Bool(a < b);
    case ExprKind::kLe:
      return context_.Bool(a <= b);
    default:
      return e;
  }
}

// An operator on a constant and a select of constants: select(p, 5, 7) + 7 is select(p, 12, 14), and
// select(p, 5, 7) < 6 is p.
std::optional<Expr> Analyzer::FoldSelect(Expr e, Mode mode, int depth) {
  constexpr int kMaxDepth = 3;  // of selects in selects
  if (!ir::IsBinary(e.kind()) || depth == kMaxDepth) return std::nullopt;
  const bool first = e.operand(0).Is(ExprKind::kSelect);
  const Expr select = e.operand(first ? 0 : 1), other = e.operand(first ? 1 : 0);
  if (!select.Is(ExprKind::kSelect) || !other.IsConst()) return std::nullopt;
  Expr arms[2];
  for (size_t i = 0; i < 2; ++i) {
    const Expr arm = select.operand(i + 1);
    const Expr applied =
        first ? context_.Binary(e.kind(), arm, other) : context_.Binary(e.kind(), other, arm);
    if (arm.IsConst()) {
      arms[i] = SimplifyIn(applied, mode);
      if (!arms[i].IsConst()) return std::nullopt;  // divides by zero
    } else if (const auto folded = FoldSelect(applied, mode, depth + 1)) {
      arms[i] = *folded;
    } else {
      return std::nullopt;
    }
  }
  return SimplifyIn(context_.Select(select.operand(0), arms[0], arms[1]), mode);
}

Expr Analyzer::SimplifyCast(Expr e, Mode mode) {
  Expr from = SimplifyIn(e.operand(0), mode);
  const bool to_int = ir::IsInt(e.type());
  if (from.Is(ExprKind::kIntImm)) {
    const int64_t value = from.int_value();
    if (to_int && e.type() != Type::kI1) return context_.Int(e.type(), value);
    if (!to_int) return context_.Float(e.type(), ir::IntToFloat(from.type(), value, e.type()));
  }
  if (from.Is(ExprKind::kFloatImm) && !to_int) return context_.Float(e.type(), from.float_value());
  // Integer to integer through a type that holds the value: the step between changes nothing.
  if (from.Is(ExprKind::kCast) && IsNumericInt(e.type()) && IsNumericInt(from.type())) {
    const Expr origin = from.operand(0);
    if (ir::IsInt(origin.type()) &&
        ConstRange::OfType(from.type()).Contains(RangeOf(origin, mode))) {
      from = origin;
    }
  }
  return context_.Cast(e.type(), from);
}

// ---- sums ---------------------------------------------------------------------------------------

namespace {

// What in `root` may trap wherever `root` is evaluated. A select whose arms may trap counts as a whole:
// that an arm is evaluated somewhere does not say that the arm's loads are.
absl::flat_hash_set<Expr> Traps(Expr root) {
  absl::flat_hash_set<Expr> traps, seen;
  std::vector<Expr> stack = {root};
  while (!stack.empty()) {
    const Expr e = stack.back();
    stack.pop_back();
    if (e.operands().empty() && !IsTrap(e)) continue;
    if (!seen.insert(e).second) continue;
    const bool is_conditional =
        e.Is(ExprKind::kSelect) || e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr);
    if (IsTrap(e)) traps.insert(e);
    for (size_t i = 0; i < e.operands().size(); ++i) {
      if (!is_conditional || i == 0) {
        stack.push_back(e.operand(i));
      } else if (CanTrap(e.operand(i))) {
        traps.insert(e);
      }
    }
  }
  return traps;
}

}  // namespace

// Whether whatever may trap in `before` is still there in `after`.
bool Analyzer::KeepsTraps(Expr before, Expr after) {
  if (before == after || !CanTrap(before)) return true;
  const absl::flat_hash_set<Expr> kept = Traps(after);
  for (Expr e : Traps(before)) {
    if (!kept.contains(e)) return false;
  }
  return true;
}

Expr Analyzer::SimplifySum(Expr e, Mode mode) {
  const Expr opaque = SimplifyOpaque(e, mode);
  if (!opaque.operands().empty() && !IsArithmetic(opaque.kind())) return opaque;
  if (opaque.operands().empty()) return opaque;
  const LinearForm form = RingForm(e, mode, 0);
  const bool exact = NoWrap(e, mode);
  if (!CanTrap(opaque)) {
    if (form.IsConstant()) return context_.Int(e.type(), form.constant());
    const ConstRange range = RangeOf(e, mode);
    if (range.IsPoint()) return context_.Int(e.type(), range.min);
  }
  std::vector<LinearForm> computed;
  if (exact && mode == Mode::kIndex) CollectSums(e, mode, computed);
  const auto printed = Print(
      form, {.type = e.type(), .mode = mode, .fits = true, .wraps = !exact, .computed = computed});
  if (!printed || Cost(*printed) > Cost(opaque) || !KeepsTraps(opaque, *printed)) return opaque;
  return *printed;
}

// ---- comparisons --------------------------------------------------------------------------------

Expr Analyzer::SimplifyCompare(Expr e, Mode mode) {
  const Expr a = SimplifyIn(e.operand(0), mode);
  const Expr b = SimplifyIn(e.operand(1), mode);
  const Expr plain = context_.Binary(e.kind(), a, b);
  if (!IsNumericInt(a.type())) {
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
    LinearForm undivided = LinearForm::Constant(sum.constant() + (sign < 0 ? 1 : 0));
    if (undivided.Scale(quotient.operand(1).int_value()) &&
        undivided.AddConstant(sign < 0 ? -1 : 0) &&
        undivided.Add(*MathForm(quotient.operand(0), mode), sign) &&
        ReduceComparison(is_order, undivided, mode)) {
      if (const auto shown = ShowComparison(plain, is_order, std::move(undivided), mode)) {
        return ApplyRules(*shown, mode);
      }
    }
  }
  const auto shown = ShowComparison(plain, is_order, std::move(sum), mode);
  return ApplyRules(shown ? *shown : plain, mode);
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
      if (term.coefficient != kMinusInfinity) coefficients.push_back(std::abs(term.coefficient));
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
    if (term.coefficient == kMinusInfinity) return std::nullopt;
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

// ---- min and max --------------------------------------------------------------------------------

Expr Analyzer::SimplifyMinMax(Expr e, Mode mode) {
  constexpr int kFactDepth = 1;
  Expr a = SimplifyIn(e.operand(0), mode);
  Expr b = SimplifyIn(e.operand(1), mode);
  if (IsNumericInt(e.type())) {
    LinearForm difference = *MathForm(a, mode);
    if (difference.Add(*MathForm(b, mode), -1)) {
      const ConstRange range = Bound(difference, mode, kFactDepth);
      const bool is_min = e.Is(ExprKind::kMin);
      if (range.max <= 0 && !CanTrap(is_min ? b : a)) return is_min ? a : b;
      if (range.min >= 0 && !CanTrap(is_min ? a : b)) return is_min ? b : a;
    }
    // Constants stand right, and min(i, j) is min(j, i).
    auto order = [&](Expr x) { return std::tuple(x.IsConst(), Rank(x), x.id()); };
    if (order(b) < order(a)) std::swap(a, b);
  }
  return ApplyRules(FoldFloats(context_.Binary(e.kind(), a, b)), mode);
}

// ---- conditions ---------------------------------------------------------------------------------

namespace {

void Flatten(Expr e, ExprKind kind, size_t limit, std::vector<Expr>& parts) {
  if (e.Is(kind) && parts.size() < limit) {
    Flatten(e.operand(0), kind, limit, parts);
    Flatten(e.operand(1), kind, limit, parts);
  } else {
    parts.push_back(e);
  }
}

}  // namespace

// p && q: q is evaluated where p is true, so p is a fact in it; and where nothing can trap the
// order is free, so q is a fact in p. For || with the negations.
Expr Analyzer::SimplifyLogic(Expr e, Mode mode) {
  constexpr size_t kMaxParts = 16;
  const ExprKind kind = e.kind();
  const bool is_and = kind == ExprKind::kAnd;
  std::vector<Expr> parts;
  Flatten(e, kind, kMaxParts, parts);
  if (parts.size() > kMaxParts || nested_conditions_ >= options_.max_nested_conditions) {
    return ApplyRules(SimplifyOperands(e, mode), mode);
  }
  ++nested_conditions_;
  std::vector<Expr> kept;
  {
    Scope scope(*this);
    for (size_t i = 0; i < parts.size(); ++i) {
      const Expr part = SimplifyIn(parts[i], mode);
      if (part.IsInt(is_and ? 1 : 0)) continue;
      const size_t first = kept.size();
      Flatten(part, kind, kMaxParts, kept);
      if (part.IsConst()) break;  // the rest is not evaluated
      for (size_t j = first; j < kept.size(); ++j) AssumeInScope(kept[j], is_and, mode);
    }
  }
  if (kept.size() > 1 && kept.size() <= kMaxParts) DropImplied(is_and, mode, kept);
  --nested_conditions_;
  if (kept.empty()) return context_.Bool(is_and);
  Expr result = kept[0];
  for (size_t i = 1; i < kept.size(); ++i) result = context_.Binary(kind, result, kept[i]);
  if (result == e || result.kind() != kind) return ApplyRules(result, mode);
  // Rules look at pairs; the chain is short here.
  result = kept[0];
  for (size_t i = 1; i < kept.size(); ++i) {
    result = ApplyRules(context_.Binary(kind, result, kept[i]), mode);
  }
  return result;
}

// Drops parts that others imply. A part may rely on those behind it, too, up to the first one that
// may stop the program: without the part they are evaluated more often.
void Analyzer::DropImplied(bool is_and, Mode mode, std::vector<Expr>& kept) {
  // Asked before any part is a fact.
  bool total = true;
  std::vector<bool> may_trap, may_stop;
  for (Expr e : kept) {
    may_trap.push_back(CanTrap(e));
    may_stop.push_back(may_trap.back() || (mode == Mode::kIndex && CanOverflow(e)));
    total = total && !may_trap.back();
  }
  for (size_t i = kept.size(); i-- > 0 && kept.size() > 1;) {
    if (may_trap[i]) continue;
    Scope scope(*this);
    for (size_t j = 0; j < kept.size() && !(j > i && may_stop[j]); ++j) {
      if (j != i) AssumeInScope(kept[j], is_and, mode);
    }
    const Expr part = SimplifyIn(kept[i], mode);
    if (part.IsInt(is_and ? 1 : 0)) {
      const auto at = static_cast<int64_t>(i);
      kept.erase(kept.begin() + at);
      may_trap.erase(may_trap.begin() + at);
      may_stop.erase(may_stop.begin() + at);
    } else if (part.IsConst() && total) {
      kept = {part};
    }
  }
}

Expr Analyzer::SimplifySelect(Expr e, Mode mode) {
  const Expr condition = SimplifyIn(e.operand(0), Mode::kIndex);
  if (condition.IsConst()) return SimplifyIn(e.operand(condition.int_value() != 0 ? 1 : 2), mode);
  Expr arms[2];
  for (int i = 0; i < 2; ++i) {
    const Expr arm = e.operand(i + 1);
    if (nested_conditions_ >= options_.max_nested_conditions || arm.operands().empty()) {
      arms[i] = SimplifyIn(arm, mode);
      continue;
    }
    ++nested_conditions_;
    Scope scope(*this);
    AssumeInScope(condition, i == 0, Mode::kIndex);
    arms[i] = SimplifyIn(arm, mode);
    --nested_conditions_;
  }
  return ApplyRules(context_.Select(condition, arms[0], arms[1]), mode);
}

Expr Analyzer::SimplifyLet(Expr e, Mode mode) {
  const Expr value = SimplifyIn(e.operand(0), mode);
  if (value.operands().empty()) {
    return SimplifyIn(ir::Substitute(e.operand(1), {{e.var(), value}}), mode);
  }
  Expr body;
  {
    Scope scope(*this);
    BindLet(e.var(), value, mode);
    body = SimplifyIn(e.operand(1), mode);
  }
  if (!CanTrap(value) && !ir::UsesVar(body, e.var())) return body;
  return context_.Let(e.var(), value, body);
}

// ---- rules --------------------------------------------------------------------------------------

Expr Analyzer::ApplyRules(Expr e, Mode mode) {
  if (const auto folded = FoldSelect(e, mode, 0)) return *folded;
  auto fits_domain = [&](const CompiledRule& rule, const Bindings& bindings) {
    for (std::string_view meta : {"x", "y", "z", "w"}) {
      const Expr bound = bindings.Find(meta);
      if (!bound) continue;
      const bool is_int = IsNumericInt(bound.type());
      switch (rule.rule->domain) {
        case Domain::kBool:
          return false;
        case Domain::kInt:
        case Domain::kIndex:
          if (!is_int) return false;
          break;
        case Domain::kFloat:
          if (!ir::IsFloat(bound.type())) return false;
          break;
        case Domain::kAny:
          break;
      }
    }
    return true;
  };
  for (const CompiledRule& rule : RulesFor(e.kind())) {
    Bindings bindings;
    if (!Match(rule.pattern, e, bindings) || !fits_domain(rule, bindings)) continue;
    if (rule.rule->domain == Domain::kIndex) {
      // The arithmetic of the pattern must not wrap: all of it is i32 or i64 in an index, or
      // proven.
      std::vector<std::pair<const Pattern*, Expr>> nodes = {{&rule.pattern, e}};
      bool exact = true;
      while (!nodes.empty() && exact) {
        auto [pattern, x] = nodes.back();
        nodes.pop_back();
        if (pattern->kind != Pattern::Kind::kOperation) continue;
        if (IsArithmetic(x.kind())) exact = NoWrap(x, mode);
        for (size_t i = 0; i < pattern->operands.size(); ++i) {
          nodes.push_back({&pattern->operands[i], x.operand(i)});
        }
      }
      if (!exact) continue;
    }
    bool total = true;
    for (char meta : rule.rule->total) {
      total = total && !CanTrap(bindings.Find(std::string_view(&meta, 1)));
    }
    if (!total || OutOfSteps()) continue;
    if (!rule.rule->condition.empty()) {
      const Expr condition = Instantiate(rule.condition, bindings, Type::kI1, context_);
      if (!SimplifyIn(condition, mode).IsInt(1)) continue;
    }
    const Type type = IsComparison(e.kind()) ? Type::kI1 : e.type();
    return SimplifyIn(Instantiate(rule.replacement, bindings, type, context_), mode);
  }
  return e;
}

}  // namespace polynao::arith
