#include "compiler/arith/symbolic_interval.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace polynao::arith {
namespace {

using ir::Context;
using ir::Expr;
using ir::ExprKind;
using ir::Type;
using Term = LinearForm::Term;

// Larger sizes count as unknown.
constexpr int64_t kMaxSize = int64_t{1} << 61;

// a + factor * b, nothing if a coefficient leaves int64_t.
std::optional<LinearForm> Sum(LinearForm a, const LinearForm& b, int64_t factor = 1) {
  if (!a.Add(b, factor)) return std::nullopt;
  return a;
}

ConstRange Scaled(ConstRange range, int64_t factor) { return range * ConstRange::Point(factor); }

// The positive constant that `e` is divided by (or taken modulo), or 0.
int64_t PositiveDivisor(Expr e) {
  const Expr divisor = e.operand(1);
  return divisor.Is(ExprKind::kIntImm) && divisor.int_value() > 0 ? divisor.int_value() : 0;
}

ConstRange RangeOfAtom(Expr e, const VarRanges& ranges) {
  const auto operand = [&](size_t i) { return RangeOf(e.operand(i), ranges); };
  switch (e.kind()) {
    case ExprKind::kVar: {
      auto it = ranges.find(e);
      return it == ranges.end() ? ConstRange() : it->second;
    }
    case ExprKind::kDiv:
      return PositiveDivisor(e) == 0 ? ConstRange() : FloorDiv(operand(0), operand(1));
    case ExprKind::kMod:
      return PositiveDivisor(e) == 0 ? ConstRange() : FloorMod(operand(0), operand(1));
    case ExprKind::kMin:
      return Min(operand(0), operand(1));
    case ExprKind::kMax:
      return Max(operand(0), operand(1));
    case ExprKind::kMul:
      return operand(0) * operand(1);
    case ExprKind::kSelect:
      return Union(operand(1), operand(2));
    case ExprKind::kCast: {
      if (!ir::IsInt(e.operand(0).type())) return ConstRange();
      const ConstRange range = operand(0);
      const bool fits =
          range.IsBounded() && ir::FitsInt(e.type(), range.min) && ir::FitsInt(e.type(), range.max);
      return fits ? range : ConstRange();
    }
    default:
      return ConstRange();
  }
}

// The difference of two atoms.
ConstRange AtomDifference(Expr a, Expr b, const VarRanges& ranges) {
  const ConstRange range = RangeOfAtom(a, ranges) - RangeOfAtom(b, ranges);
  if (a.kind() != b.kind()) return range;
  const auto difference = [&](size_t i) {
    return DifferenceRange(Decompose(a.operand(i)), Decompose(b.operand(i)), ranges);
  };
  if (a.Is(ExprKind::kMin) || a.Is(ExprKind::kMax)) {
    // max(a1, a2) <= max(b1 + d1, b2 + d2) <= max(b1, b2) + max(d1, d2), and so on.
    return Intersect(range, Union(difference(0), difference(1)));
  }
  if (a.Is(ExprKind::kDiv) && PositiveDivisor(a) > 0 && a.operand(1) == b.operand(1)) {
    // floor((x + d) / n) - floor(x / n) is at least floor(d / n), and at most that rounded up.
    const ConstRange divisor = ConstRange::Point(PositiveDivisor(a));
    const ConstRange d = difference(0), zero = ConstRange::Point(0);
    const ConstRange down = FloorDiv(d, divisor), up = zero - FloorDiv(zero - d, divisor);
    return Intersect(range, {down.min, up.max});
  }
  return range;
}

// The values of `form`. Pairs of like atoms with opposite coefficients are compared with each
// other.
ConstRange SumOfPairs(const LinearForm& form, const VarRanges& ranges) {
  ConstRange sum = ConstRange::Point(form.constant());
  std::vector<Term> terms(form.terms().begin(), form.terms().end());
  while (!terms.empty()) {
    const Term last = terms.back();
    terms.pop_back();
    const auto partner = std::find_if(terms.begin(), terms.end(), [&](const Term& term) {
      return term.coefficient == -last.coefficient && term.atom.kind() == last.atom.kind() &&
             !last.atom.Is(ExprKind::kVar);
    });
    if (partner == terms.end()) {
      sum = sum + Scaled(RangeOfAtom(last.atom, ranges), last.coefficient);
    } else {
      sum = sum + Scaled(AtomDifference(last.atom, partner->atom, ranges), last.coefficient);
      terms.erase(partner);
    }
  }
  return sum;
}

// `form` with clamps replaced by what they clamp, and how much that may be off: max(x, 0) is x plus
// 0 ... 3 if x >= -3. Adds to `correction`. Nothing if a coefficient leaves int64_t.
std::optional<LinearForm> WithoutClamps(const LinearForm& form, const VarRanges& ranges,
                                        ConstRange& correction) {
  LinearForm result = LinearForm::Constant(form.constant());
  for (const auto& [atom, coefficient] : form.terms()) {
    const bool is_clamp = (atom.Is(ExprKind::kMin) || atom.Is(ExprKind::kMax)) &&
                          (atom.operand(0).IsConst() || atom.operand(1).IsConst());
    if (!is_clamp) {
      if (!result.AddTerm(atom, coefficient)) return std::nullopt;
      continue;
    }
    const Expr clamped = atom.operand(atom.operand(0).IsConst() ? 1 : 0);
    const Expr limit = atom.operand(atom.operand(0).IsConst() ? 0 : 1);
    const ConstRange zero = ConstRange::Point(0);
    const ConstRange over = ConstRange::Point(limit.int_value()) - RangeOf(clamped, ranges);
    ConstRange off = atom.Is(ExprKind::kMax) ? Max(zero, over) : Min(zero, over);
    off = Union(off, zero);
    const auto inner = WithoutClamps(Decompose(clamped), ranges, off);
    if (!inner || !result.Add(*inner, coefficient)) return std::nullopt;
    correction = correction + Scaled(off, coefficient);
  }
  return result;
}

// What is known of a form's remainder: form % modulus == remainder, with modulus a divisor of
// `divisor` (1 if nothing is known).
struct Residue {
  int64_t modulus;
  int64_t remainder;
};

Residue ResidueOf(const LinearForm& form, int64_t divisor) {
  int64_t modulus = divisor;
  for (const Term& term : form.terms()) modulus = std::gcd(modulus, term.coefficient);
  return {modulus, FloorMod(form.constant(), modulus)};
}

// floor(form / divisor), terms that are multiples of the divisor divided exactly.
std::optional<LinearForm> Divide(const LinearForm& form, int64_t divisor, Context& context,
                                 Type type) {
  LinearForm exact = LinearForm::Constant(FloorDiv(form.constant(), divisor));
  LinearForm rest;
  for (const auto& [atom, coefficient] : form.terms()) {
    const bool is_multiple = coefficient % divisor == 0;
    if (!(is_multiple ? exact.AddTerm(atom, coefficient / divisor)
                      : rest.AddTerm(atom, coefficient))) {
      return std::nullopt;
    }
  }
  if (rest.IsConstant()) return exact;
  if (!rest.AddConstant(FloorMod(form.constant(), divisor))) return std::nullopt;
  const Expr quotient =
      context.Binary(ExprKind::kDiv, ToExpr(rest, context, type), context.Int(type, divisor));
  if (!exact.AddTerm(quotient, 1)) return std::nullopt;
  return exact;
}

class IntervalFinder {
 public:
  IntervalFinder(const VarRanges& ranges, const absl::flat_hash_set<Expr>& fixed)
      : ranges_(ranges), fixed_(fixed) {}

  std::optional<SymbolicInterval> Find(Expr e) {
    auto it = done_.find(e);
    if (it != done_.end()) return it->second;
    std::optional<SymbolicInterval> interval = FindNew(e);
    done_.emplace(e, interval);
    return interval;
  }

 private:
  std::optional<SymbolicInterval> FindNew(Expr e) {
    Context& context = e.context();
    switch (e.kind()) {
      case ExprKind::kIntImm:
        return SymbolicInterval{LinearForm::Constant(e.int_value()), 1};
      case ExprKind::kVar: {
        auto it = ranges_.find(e);
        if (it == ranges_.end() || fixed_.contains(e)) {
          return SymbolicInterval{LinearForm::Atom(e), 1};
        }
        return FromRange(it->second);
      }
      case ExprKind::kAdd:
      case ExprKind::kSub: {
        const std::optional<SymbolicInterval> a = Find(e.operand(0));
        const std::optional<SymbolicInterval> b = Find(e.operand(1));
        if (!a || !b) return std::nullopt;
        const bool is_add = e.Is(ExprKind::kAdd);
        std::optional<LinearForm> min = Sum(a->min, b->min, is_add ? 1 : -1);
        if (!is_add && min && !min->AddConstant(1 - b->size)) return std::nullopt;
        return Checked(std::move(min), static_cast<__int128>(a->size) + b->size - 1);
      }
      case ExprKind::kMul: {
        std::optional<SymbolicInterval> a = Find(e.operand(0));
        std::optional<SymbolicInterval> b = Find(e.operand(1));
        if (!a || !b) return std::nullopt;
        if (a->size == 1 && a->min.IsConstant()) std::swap(a, b);
        if (b->size == 1 && b->min.IsConstant()) {
          const int64_t factor = b->min.constant();
          LinearForm low = a->min;
          if ((factor < 0 && !low.AddConstant(a->size - 1)) || !low.Scale(factor)) {
            return std::nullopt;
          }
          const __int128 stretched = static_cast<__int128>(a->size - 1) * factor;
          return Checked(std::move(low), (stretched < 0 ? -stretched : stretched) + 1);
        }
        if (a->size == 1 && b->size == 1) {
          return Atom(ToExpr(a->min, context, e.type()) * ToExpr(b->min, context, e.type()));
        }
        return FromRange(RangeOf(e, ranges_));
      }
      case ExprKind::kDiv:
      case ExprKind::kMod:
        return FindDivision(e);
      case ExprKind::kMin:
      case ExprKind::kMax: {
        const std::optional<SymbolicInterval> a = Find(e.operand(0));
        const std::optional<SymbolicInterval> b = Find(e.operand(1));
        if (!a || !b) return std::nullopt;
        if (a->min == b->min) {
          return SymbolicInterval{a->min, std::max(a->size, b->size)};
        }
        // One side may always win.
        const ConstRange range_a = RangeOf(e.operand(0), ranges_);
        const ConstRange range_b = RangeOf(e.operand(1), ranges_);
        if (range_a.max <= range_b.min) return e.Is(ExprKind::kMin) ? *a : *b;
        if (range_b.max <= range_a.min) return e.Is(ExprKind::kMin) ? *b : *a;
        if (a->min.IsConstant() && b->min.IsConstant()) return FromRange(RangeOf(e, ranges_));
        // min(a + i, b + j) - min(a, b) is at most max(i, j).
        SymbolicInterval interval = Atom(context.Binary(e.kind(), ToExpr(a->min, context, e.type()),
                                                        ToExpr(b->min, context, e.type())));
        interval.size = std::max(a->size, b->size);
        return interval;
      }
      case ExprKind::kSelect: {
        // The condition may load or trap, so both sides are taken as possible.
        const std::optional<SymbolicInterval> a = Find(e.operand(1));
        const std::optional<SymbolicInterval> b = Find(e.operand(2));
        if (!a || !b) return std::nullopt;
        return Union(*a, *b, ranges_, context, e.type());
      }
      default:
        return FromRange(RangeOf(e, ranges_));
    }
  }

  std::optional<SymbolicInterval> FindDivision(Expr e) {
    Context& context = e.context();
    const int64_t divisor = PositiveDivisor(e);
    const std::optional<SymbolicInterval> a = Find(e.operand(0));
    if (divisor == 0 || !a) return std::nullopt;
    const bool is_div = e.Is(ExprKind::kDiv);
    if (!is_div) {
      // Multiples of the divisor count for nothing: (x * 4 + y) % 4 is y % 4, however far x goes.
      const LinearForm form = Decompose(e.operand(0));
      LinearForm rest = LinearForm::Constant(FloorMod(form.constant(), divisor));
      for (const auto& [atom, coefficient] : form.terms()) {
        if (coefficient % divisor != 0 && !rest.AddTerm(atom, coefficient)) return std::nullopt;
      }
      if (rest.terms().size() < form.terms().size()) {
        return Find(context.Binary(ExprKind::kMod, ToExpr(rest, context, e.type()),
                                   context.Int(e.type(), divisor)));
      }
    }
    const ConstRange range = RangeOf(e.operand(0), ranges_);
    if (range.min >= 0 && range.max < divisor) {
      return is_div ? SymbolicInterval{LinearForm(), 1} : *a;
    }
    const Residue residue = ResidueOf(a->min, divisor);
    if (is_div) {
      // The start lies at most divisor - modulus + remainder behind a multiple of the divisor.
      const __int128 behind = static_cast<__int128>(divisor) - residue.modulus + residue.remainder;
      return Checked(Divide(a->min, divisor, context, e.type()),
                     (behind + a->size - 1) / divisor + 1);
    }
    // Within one block of `modulus` values the remainder does not wrap.
    if (a->size > residue.modulus - residue.remainder) {
      return Checked(LinearForm(), divisor);
    }
    if (residue.modulus == divisor) {
      return SymbolicInterval{LinearForm::Constant(residue.remainder), a->size};
    }
    SymbolicInterval interval = Atom(context.Binary(
        ExprKind::kMod, ToExpr(a->min, context, e.type()), context.Int(e.type(), divisor)));
    interval.size = a->size;
    return interval;
  }

  static SymbolicInterval Atom(Expr e) { return SymbolicInterval{Decompose(e), 1}; }

  static std::optional<SymbolicInterval> FromRange(ConstRange range) {
    if (range.IsEmpty()) return SymbolicInterval{LinearForm::Constant(range.min), 1};
    const std::optional<int64_t> count = range.Count();
    if (!count) return std::nullopt;
    return Checked(LinearForm::Constant(range.min), *count);
  }

  static std::optional<SymbolicInterval> Checked(std::optional<LinearForm> min, __int128 size) {
    if (!min || size >= kMaxSize) return std::nullopt;
    return SymbolicInterval{*std::move(min), static_cast<int64_t>(size)};
  }

  const VarRanges& ranges_;
  const absl::flat_hash_set<Expr>& fixed_;
  absl::flat_hash_map<Expr, std::optional<SymbolicInterval>> done_;
};

}  // namespace

Expr ToExpr(const LinearForm& form, Context& context, Type type) {
  std::vector<Term> terms;
  for (const bool added : {true, false}) {
    for (const Term& term : form.terms()) {
      if ((term.coefficient > 0) == added) terms.push_back(term);
    }
  }
  const bool only_subtracted = !terms.empty() && terms[0].coefficient < 0;
  if (!only_subtracted || form.constant() >= 0) {
    return SumExpr(context, type, terms, form.constant());
  }
  // -3 - x: SumExpr begins with x * -1.
  Expr difference = context.Int(type, form.constant());
  for (const auto& [atom, coefficient] : terms) {
    difference = coefficient == -1 ? difference - atom : difference + atom * coefficient;
  }
  return difference;
}

LinearForm Decompose(Expr e) {
  const auto operand = [&](size_t i) { return Decompose(e.operand(i)); };
  switch (e.kind()) {
    case ExprKind::kIntImm:
      return LinearForm::Constant(e.int_value());
    case ExprKind::kAdd:
    case ExprKind::kSub:
      if (auto sum = Sum(operand(0), operand(1), e.Is(ExprKind::kAdd) ? 1 : -1)) {
        return *std::move(sum);
      }
      break;
    case ExprKind::kMul: {
      LinearForm a = operand(0), b = operand(1);
      if (a.IsConstant()) std::swap(a, b);
      if (b.IsConstant() && a.Scale(b.constant())) return a;
      break;
    }
    default:
      break;
  }
  return LinearForm::Atom(e);
}

ConstRange RangeOf(Expr e, const VarRanges& ranges) { return RangeOf(Decompose(e), ranges); }

ConstRange RangeOf(const LinearForm& form, const VarRanges& ranges) {
  ConstRange sum = ConstRange::Point(form.constant());
  for (const auto& [atom, coefficient] : form.terms()) {
    sum = sum + Scaled(RangeOfAtom(atom, ranges), coefficient);
  }
  return sum;
}

ConstRange DifferenceRange(const LinearForm& a, const LinearForm& b, const VarRanges& ranges) {
  const std::optional<LinearForm> difference = Sum(a, b, -1);
  if (!difference) return RangeOf(a, ranges) - RangeOf(b, ranges);
  const ConstRange range = SumOfPairs(*difference, ranges);
  ConstRange correction = ConstRange::Point(0);
  const auto unclamped = WithoutClamps(*difference, ranges, correction);
  if (!unclamped || *unclamped == *difference) return range;
  return Intersect(range, SumOfPairs(*unclamped, ranges) + correction);
}

std::optional<SymbolicInterval> IntervalOf(Expr e, const VarRanges& ranges,
                                           const absl::flat_hash_set<Expr>& fixed) {
  return IntervalFinder(ranges, fixed).Find(e);
}

std::optional<SymbolicInterval> Union(const SymbolicInterval& a, const SymbolicInterval& b,
                                      const VarRanges& ranges, Context& context, Type type) {
  const ConstRange d = DifferenceRange(b.min, a.min, ranges);
  // Distances and sizes below this have sums in int64_t.
  if (d.min <= -kMaxSize || d.max >= kMaxSize) return std::nullopt;
  if (d.min >= 0) return SymbolicInterval{a.min, std::max(a.size, d.max + b.size)};
  if (d.max <= 0) return SymbolicInterval{b.min, std::max(b.size, a.size - d.min)};
  const Expr min = ir::Min(ToExpr(a.min, context, type), ToExpr(b.min, context, type));
  return SymbolicInterval{Decompose(min),
                          std::max({a.size, b.size, d.max + b.size, a.size - d.min})};
}

}  // namespace polynao::arith
