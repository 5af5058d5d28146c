#include "compiler/te/affine.h"

#include <algorithm>
#include <numeric>

namespace polynao::te {
namespace {

using ir::Context;
using ir::Expr;
using ir::ExprKind;
using ir::Type;

int64_t Saturate(__int128 value) {
  if (value >= Range::kInfinite) return Range::kInfinite;
  if (value <= -Range::kInfinite) return -Range::kInfinite;
  return static_cast<int64_t>(value);
}

int64_t FloorDiv(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

int64_t FloorMod(int64_t a, int64_t b) { return a - FloorDiv(a, b) * b; }

Range Add(Range a, Range b) {
  // An end that is not known stays so, whatever is added to it.
  auto end = [](int64_t x, int64_t y, int64_t infinite) {
    return x == infinite || y == infinite ? infinite : Saturate(static_cast<__int128>(x) + y);
  };
  return {end(a.min, b.min, -Range::kInfinite), end(a.max, b.max, Range::kInfinite)};
}

Range Scale(Range a, int64_t factor) {
  if (factor == 0) return {0, 0};
  const int64_t x = Saturate(static_cast<__int128>(a.min) * factor);
  const int64_t y = Saturate(static_cast<__int128>(a.max) * factor);
  return {std::min(x, y), std::max(x, y)};
}

Range Hull(Range a, Range b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }
Range Intersect(Range a, Range b) { return {std::max(a.min, b.min), std::min(a.max, b.max)}; }

// An end that is not known stays not known.
int64_t DivEnd(int64_t end, int64_t divisor) {
  return std::abs(end) == Range::kInfinite ? end : FloorDiv(end, divisor);
}

// The positive constant that `e` is divided by (or taken modulo), or 0.
int64_t PositiveDivisor(Expr e) {
  const Expr divisor = e.operand(1);
  return divisor.Is(ExprKind::kIntImm) && divisor.int_value() > 0 ? divisor.int_value() : 0;
}

Range RangeOfAtom(Expr e, const VarRanges& ranges) {
  switch (e.kind()) {
    case ExprKind::kVar: {
      auto it = ranges.find(e);
      return it == ranges.end() ? Range() : it->second;
    }
    case ExprKind::kDiv: {
      const int64_t divisor = PositiveDivisor(e);
      if (divisor == 0) return Range();
      const Range range = RangeOf(e.operand(0), ranges);
      return {DivEnd(range.min, divisor), DivEnd(range.max, divisor)};
    }
    case ExprKind::kMod: {
      const int64_t divisor = PositiveDivisor(e);
      if (divisor == 0) return Range();
      const Range range = RangeOf(e.operand(0), ranges);
      return range.min >= 0 && range.max < divisor ? range : Range{0, divisor - 1};
    }
    case ExprKind::kMin:
    case ExprKind::kMax: {
      const Range a = RangeOf(e.operand(0), ranges);
      const Range b = RangeOf(e.operand(1), ranges);
      if (e.Is(ExprKind::kMin)) return {std::min(a.min, b.min), std::min(a.max, b.max)};
      return {std::max(a.min, b.min), std::max(a.max, b.max)};
    }
    case ExprKind::kMul: {
      const Range a = RangeOf(e.operand(0), ranges);
      const Range b = RangeOf(e.operand(1), ranges);
      if (!a.IsBounded() || !b.IsBounded()) return Range();
      return Hull(Scale(a, b.min), Scale(a, b.max));
    }
    case ExprKind::kSelect:
      return Hull(RangeOf(e.operand(1), ranges), RangeOf(e.operand(2), ranges));
    case ExprKind::kCast: {
      if (!ir::IsInt(e.operand(0).type())) return Range();
      const Range range = RangeOf(e.operand(0), ranges);
      const bool fits =
          range.IsBounded() && ir::FitsInt(e.type(), range.min) && ir::FitsInt(e.type(), range.max);
      return fits ? range : Range();
    }
    default:
      return Range();
  }
}

// The difference of two atoms.
Range AtomDifference(Expr a, Expr b, const VarRanges& ranges) {
  Range range = Add(RangeOfAtom(a, ranges), Scale(RangeOfAtom(b, ranges), -1));
  if (a.kind() != b.kind()) return range;
  if (a.Is(ExprKind::kMin) || a.Is(ExprKind::kMax)) {
    // max(a1, a2) <= max(b1 + d1, b2 + d2) <= max(b1, b2) + max(d1, d2), and so on.
    const Range difference =
        Hull(DifferenceRange(Decompose(a.operand(0)), Decompose(b.operand(0)), ranges),
             DifferenceRange(Decompose(a.operand(1)), Decompose(b.operand(1)), ranges));
    range = Intersect(range, difference);
  } else if (a.Is(ExprKind::kDiv) && PositiveDivisor(a) > 0 && a.operand(1) == b.operand(1)) {
    const int64_t divisor = PositiveDivisor(a);
    const Range d = DifferenceRange(Decompose(a.operand(0)), Decompose(b.operand(0)), ranges);
    range = Intersect(range, {DivEnd(d.min, divisor),
                              d.max == Range::kInfinite ? d.max : -FloorDiv(-d.max, divisor)});
  }
  return range;
}

// The values of `form`. Pairs of like atoms with opposite coefficients are compared with each
// other.
Range SumOfPairs(const Linear& form, const VarRanges& ranges) {
  Range sum{form.constant, form.constant};
  std::vector<std::pair<Expr, int64_t>> terms = form.terms;
  while (!terms.empty()) {
    const auto [atom, coefficient] = terms.back();
    terms.pop_back();
    const auto partner = std::find_if(
        terms.begin(), terms.end(), [&, atom = atom, opposite = -coefficient](const auto& term) {
          return term.second == opposite && term.first.kind() == atom.kind() &&
                 !atom.Is(ExprKind::kVar);
        });
    if (partner == terms.end()) {
      sum = Add(sum, Scale(RangeOfAtom(atom, ranges), coefficient));
    } else {
      sum = Add(sum, Scale(AtomDifference(atom, partner->first, ranges), coefficient));
      terms.erase(partner);
    }
  }
  return sum;
}

// `form` with clamps replaced by what they clamp, and how much that may be off: max(x, 0) is x plus
// 0 ... 3 if x >= -3. Adds to `correction`.
Linear WithoutClamps(const Linear& form, const VarRanges& ranges, Range& correction) {
  Linear result{form.constant, {}};
  for (const auto& [atom, coefficient] : form.terms) {
    const bool is_clamp = (atom.Is(ExprKind::kMin) || atom.Is(ExprKind::kMax)) &&
                          (atom.operand(0).IsConst() || atom.operand(1).IsConst());
    if (!is_clamp) {
      result = result + Linear{0, {{atom, coefficient}}};
      continue;
    }
    const Expr clamped = atom.operand(atom.operand(0).IsConst() ? 1 : 0);
    const int64_t limit = atom.operand(atom.operand(0).IsConst() ? 0 : 1).int_value();
    const Range range = RangeOf(clamped, ranges);
    const Range off =
        atom.Is(ExprKind::kMax)
            ? Range{0, std::max<int64_t>(0, Saturate(static_cast<__int128>(limit) - range.min))}
            : Range{std::min<int64_t>(0, Saturate(static_cast<__int128>(limit) - range.max)), 0};
    Range inner = off;
    result = result + WithoutClamps(Decompose(clamped), ranges, inner) * coefficient;
    correction = Add(correction, Scale(inner, coefficient));
  }
  return result;
}

// What is known of a form's remainder: form % modulus == remainder, with modulus a divisor of
// `divisor` (1 if nothing is known).
struct Residue {
  int64_t modulus;
  int64_t remainder;
};

Residue ResidueOf(const Linear& form, int64_t divisor) {
  int64_t modulus = divisor;
  for (const auto& [atom, coefficient] : form.terms) modulus = std::gcd(modulus, coefficient);
  return {modulus, FloorMod(form.constant, modulus)};
}

// floor(form / divisor), terms that are multiples of the divisor divided exactly.
Linear Divide(const Linear& form, int64_t divisor, Context& context, Type type) {
  Linear exact;
  Linear rest;
  for (const auto& [atom, coefficient] : form.terms) {
    if (coefficient % divisor == 0) {
      exact.terms.emplace_back(atom, coefficient / divisor);
    } else {
      rest.terms.emplace_back(atom, coefficient);
    }
  }
  exact.constant = FloorDiv(form.constant, divisor);
  if (rest.terms.empty()) return exact;
  rest.constant = FloorMod(form.constant, divisor);
  const Expr quotient =
      context.Binary(ExprKind::kDiv, rest.ToExpr(context, type), context.Int(type, divisor));
  return exact + Linear{0, {{quotient, 1}}};
}

class IntervalFinder {
 public:
  IntervalFinder(const VarRanges& ranges, const absl::flat_hash_set<Expr>& fixed)
      : ranges_(ranges), fixed_(fixed) {}

  std::optional<Interval> Find(Expr e) {
    auto it = done_.find(e);
    if (it != done_.end()) return it->second;
    std::optional<Interval> interval = FindNew(e);
    done_.emplace(e, interval);
    return interval;
  }

 private:
  std::optional<Interval> FindNew(Expr e) {
    Context& context = e.context();
    switch (e.kind()) {
      case ExprKind::kIntImm:
        return Interval{Linear{e.int_value(), {}}, 1};
      case ExprKind::kVar: {
        auto it = ranges_.find(e);
        if (it == ranges_.end() || fixed_.contains(e)) return Interval{Linear{0, {{e, 1}}}, 1};
        return Interval{Linear{it->second.min, {}},
                        std::max<int64_t>(1, it->second.max - it->second.min + 1)};
      }
      case ExprKind::kAdd:
      case ExprKind::kSub: {
        const std::optional<Interval> a = Find(e.operand(0));
        const std::optional<Interval> b = Find(e.operand(1));
        if (!a || !b) return std::nullopt;
        if (e.Is(ExprKind::kAdd)) return Checked(a->min + b->min, a->size + b->size - 1);
        return Checked(a->min - b->min - Linear{b->size - 1, {}}, a->size + b->size - 1);
      }
      case ExprKind::kMul: {
        std::optional<Interval> a = Find(e.operand(0));
        std::optional<Interval> b = Find(e.operand(1));
        if (!a || !b) return std::nullopt;
        if (a->size == 1 && a->min.IsConst()) std::swap(a, b);
        if (b->size == 1 && b->min.IsConst()) {
          const int64_t factor = b->min.constant;
          const Linear low = factor >= 0 ? a->min : a->min + Linear{a->size - 1, {}};
          return Checked(low * factor, static_cast<__int128>(a->size - 1) * std::abs(factor) + 1);
        }
        if (a->size == 1 && b->size == 1) {
          return Atom(a->min.ToExpr(context, e.type()) * b->min.ToExpr(context, e.type()));
        }
        return FromRange(e);
      }
      case ExprKind::kDiv:
      case ExprKind::kMod:
        return FindDivision(e);
      case ExprKind::kMin:
      case ExprKind::kMax: {
        const std::optional<Interval> a = Find(e.operand(0));
        const std::optional<Interval> b = Find(e.operand(1));
        if (!a || !b) return std::nullopt;
        if (a->min == b->min) {
          return Interval{a->min, std::max(a->size, b->size)};
        }
        // One side may always win.
        const Range range_a = RangeOf(e.operand(0), ranges_);
        const Range range_b = RangeOf(e.operand(1), ranges_);
        if (range_a.max <= range_b.min) return e.Is(ExprKind::kMin) ? *a : *b;
        if (range_b.max <= range_a.min) return e.Is(ExprKind::kMin) ? *b : *a;
        if (a->min.IsConst() && b->min.IsConst()) return FromRange(e);
        // min(a + i, b + j) - min(a, b) is at most max(i, j).
        Interval interval = Atom(context.Binary(e.kind(), a->min.ToExpr(context, e.type()),
                                                b->min.ToExpr(context, e.type())));
        interval.size = std::max(a->size, b->size);
        return interval;
      }
      case ExprKind::kSelect: {
        // The condition may load or trap, so both sides are taken as possible.
        const std::optional<Interval> a = Find(e.operand(1));
        const std::optional<Interval> b = Find(e.operand(2));
        if (!a || !b) return std::nullopt;
        return Union(*a, *b, ranges_, context, e.type());
      }
      default:
        return FromRange(e);
    }
  }

  std::optional<Interval> FindDivision(Expr e) {
    Context& context = e.context();
    const int64_t divisor = PositiveDivisor(e);
    const std::optional<Interval> a = Find(e.operand(0));
    if (divisor == 0 || !a) return std::nullopt;
    const bool is_div = e.Is(ExprKind::kDiv);
    const Range range = RangeOf(e.operand(0), ranges_);
    if (range.min >= 0 && range.max < divisor) {
      return is_div ? Interval{Linear{0, {}}, 1} : *a;
    }
    const Residue residue = ResidueOf(a->min, divisor);
    if (is_div) {
      // The start lies at most divisor - modulus + remainder behind a multiple of the divisor.
      const int64_t behind = divisor - residue.modulus + residue.remainder;
      return Interval{Divide(a->min, divisor, context, e.type()),
                      (behind + a->size - 1) / divisor + 1};
    }
    // Within one block of `modulus` values the remainder does not wrap.
    if (residue.remainder + a->size > residue.modulus) {
      return Interval{Linear{0, {}}, divisor};
    }
    if (residue.modulus == divisor) return Interval{Linear{residue.remainder, {}}, a->size};
    Interval interval = Atom(context.Binary(ExprKind::kMod, a->min.ToExpr(context, e.type()),
                                            context.Int(e.type(), divisor)));
    interval.size = a->size;
    return interval;
  }

  static Interval Atom(Expr e) { return Interval{Decompose(e), 1}; }

  std::optional<Interval> FromRange(Expr e) {
    const Range range = RangeOf(e, ranges_);
    if (!range.IsBounded()) return std::nullopt;
    return Interval{Linear{range.min, {}}, std::max<int64_t>(1, range.max - range.min + 1)};
  }

  static std::optional<Interval> Checked(Linear min, __int128 size) {
    if (size >= Range::kInfinite) return std::nullopt;
    return Interval{std::move(min), static_cast<int64_t>(size)};
  }

  const VarRanges& ranges_;
  const absl::flat_hash_set<Expr>& fixed_;
  absl::flat_hash_map<Expr, std::optional<Interval>> done_;
};

}  // namespace

Expr Linear::ToExpr(Context& context, Type type) const {
  auto term = [&](Expr atom, int64_t coefficient) {
    return coefficient == 1 ? atom : atom * context.Int(type, coefficient);
  };
  Expr sum;
  for (const auto& [atom, coefficient] : terms) {
    if (coefficient > 0) sum = sum ? sum + term(atom, coefficient) : term(atom, coefficient);
  }
  const bool starts_with_constant = !sum;
  if (starts_with_constant) sum = context.Int(type, constant);
  for (const auto& [atom, coefficient] : terms) {
    if (coefficient < 0) sum = sum - term(atom, -coefficient);
  }
  if (starts_with_constant || constant == 0) return sum;
  if (constant > 0) return sum + context.Int(type, constant);
  return sum - context.Int(type, -constant);
}

Linear operator+(const Linear& a, const Linear& b) {
  Linear sum;
  sum.constant = a.constant + b.constant;
  auto x = a.terms.begin();
  auto y = b.terms.begin();
  while (x != a.terms.end() || y != b.terms.end()) {
    if (y == b.terms.end() || (x != a.terms.end() && x->first.id() < y->first.id())) {
      sum.terms.push_back(*x++);
    } else if (x == a.terms.end() || y->first.id() < x->first.id()) {
      sum.terms.push_back(*y++);
    } else {
      const int64_t coefficient = x->second + y->second;
      if (coefficient != 0) sum.terms.emplace_back(x->first, coefficient);
      ++x;
      ++y;
    }
  }
  return sum;
}

Linear operator*(const Linear& a, int64_t factor) {
  if (factor == 0) return Linear();
  Linear product = a;
  product.constant *= factor;
  for (auto& [atom, coefficient] : product.terms) coefficient *= factor;
  return product;
}

Linear operator-(const Linear& a, const Linear& b) { return a + b * -1; }

Linear Decompose(Expr e) {
  switch (e.kind()) {
    case ExprKind::kIntImm:
      return Linear{e.int_value(), {}};
    case ExprKind::kAdd:
      return Decompose(e.operand(0)) + Decompose(e.operand(1));
    case ExprKind::kSub:
      return Decompose(e.operand(0)) - Decompose(e.operand(1));
    case ExprKind::kMul: {
      const Linear a = Decompose(e.operand(0));
      const Linear b = Decompose(e.operand(1));
      if (b.IsConst()) return a * b.constant;
      if (a.IsConst()) return b * a.constant;
      return Linear{0, {{e, 1}}};
    }
    default:
      return Linear{0, {{e, 1}}};
  }
}

Range RangeOf(Expr e, const VarRanges& ranges) { return RangeOf(Decompose(e), ranges); }

Range RangeOf(const Linear& form, const VarRanges& ranges) {
  Range sum{form.constant, form.constant};
  for (const auto& [atom, coefficient] : form.terms) {
    sum = Add(sum, Scale(RangeOfAtom(atom, ranges), coefficient));
  }
  return sum;
}

Range DifferenceRange(const Linear& a, const Linear& b, const VarRanges& ranges) {
  const Linear difference = a - b;
  Range range = SumOfPairs(difference, ranges);
  Range correction{0, 0};
  const Linear unclamped = WithoutClamps(difference, ranges, correction);
  if (unclamped == difference) return range;
  return Intersect(range, Add(SumOfPairs(unclamped, ranges), correction));
}

std::optional<Interval> IntervalOf(Expr e, const VarRanges& ranges,
                                   const absl::flat_hash_set<Expr>& fixed) {
  return IntervalFinder(ranges, fixed).Find(e);
}

std::optional<Interval> Union(const Interval& a, const Interval& b, const VarRanges& ranges,
                              Context& context, Type type) {
  const Range d = DifferenceRange(b.min, a.min, ranges);
  if (!d.IsBounded()) return std::nullopt;
  if (d.min >= 0) return Interval{a.min, std::max(a.size, d.max + b.size)};
  if (d.max <= 0) return Interval{b.min, std::max(b.size, a.size - d.min)};
  const Expr min = ir::Min(a.min.ToExpr(context, type), b.min.ToExpr(context, type));
  return Interval{Decompose(min), std::max({a.size, b.size, d.max + b.size, a.size - d.min})};
}

}  // namespace polynao::te
