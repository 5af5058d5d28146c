// Expressions as canonical sums, and sums as expressions.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/analyzer_parts.h"
#include "compiler/arith/const_range.h"
#include "compiler/arith/linear_form.h"

namespace polynao::arith {

using ir::Expr;
using ir::ExprKind;
using ir::Type;

namespace {

// Sums longer than this become atoms, so that long chains stay linear.
constexpr size_t kMaxTerms = 64;
// Products of sums are multiplied out up to this many terms.
constexpr size_t kMaxProductTerms = 8;

}  // namespace

// ---- canonical sums -----------------------------------------------------------------------------

// What `original` is as a form if it is no sum that can be taken apart: `simplified` is equal to
// it.
LinearForm Analyzer::OpaqueForm(Expr simplified, Expr original, Mode mode) {
  if (simplified.Is(ExprKind::kIntImm)) return LinearForm::Constant(simplified.int_value());
  if (simplified == original || !IsIntSum(simplified)) return LinearForm::Atom(simplified);
  return *MathForm(simplified, mode);
}

Analyzer::FormPtr Analyzer::MathForm(Expr e, Mode mode) {
  const Key key = {e.node(), mode};
  if (auto it = memo().forms.find(key); it != memo().forms.end()) return it->second;
  // True of every expression; stands in should the computation come back to `e`.
  FormPtr form = std::make_shared<const LinearForm>(LinearForm::Atom(e));
  if (OutOfSteps() || recursion_ > kMaxRecursion) return form;
  memo().forms[key] = form;
  ++recursion_;
  form = std::make_shared<const LinearForm>(ComputeMathForm(e, mode));
  --recursion_;
  if (form->terms().size() > kMaxTerms) {
    form = std::make_shared<const LinearForm>(LinearForm::Atom(SimplifyOpaque(e, mode)));
  }
  memo().forms[key] = form;
  return form;
}

LinearForm Analyzer::ComputeMathForm(Expr e, Mode mode) {
  if (e.Is(ExprKind::kIntImm)) return LinearForm::Constant(e.int_value());
  if (!IsIntSum(e)) return OpaqueForm(SimplifyIn(e, mode), e, mode);
  const Expr a = e.operand(0), b = e.operand(1);
  if (!NoWrap(e, mode)) {
    const Expr simplified = SimplifyIn(e, mode);
    return simplified.Is(ExprKind::kIntImm) ? LinearForm::Constant(simplified.int_value())
                                            : LinearForm::Atom(simplified);
  }
  switch (e.kind()) {
    case ExprKind::kAdd:
    case ExprKind::kSub: {
      LinearForm sum = *MathForm(a, mode);
      if (sum.Add(*MathForm(b, mode), e.Is(ExprKind::kAdd) ? 1 : -1)) {
        return JoinQuotients(std::move(sum), mode);
      }
      break;
    }
    case ExprKind::kMul: {
      const FormPtr x = MathForm(a, mode), y = MathForm(b, mode);
      if (x->IsConstant() || y->IsConstant()) {
        LinearForm product = x->IsConstant() ? *y : *x;
        if (product.Scale(x->IsConstant() ? x->constant() : y->constant())) return product;
      } else if (auto product = ProductForm(*x, *y, e.type(), mode)) {
        return *std::move(product);
      }
      break;
    }
    case ExprKind::kDiv:
      if (IsPositiveConstant(b)) {
        auto quotient =
            DivForm(*MathForm(a, mode), Value::kOfProgram, b.int_value(), e.type(), mode);
        if (quotient) return *std::move(quotient);
      }
      break;
    case ExprKind::kMod:
      if (IsPositiveConstant(b)) {
        // x - c * (x / c), so that sums over quotients and remainders of one index cancel.
        LinearForm sum = *MathForm(a, mode);
        auto quotient = DivForm(sum, Value::kOfProgram, b.int_value(), e.type(), mode);
        if (quotient && sum.Add(*quotient, -b.int_value())) return sum;
      }
      break;
    default:
      break;
  }
  return OpaqueForm(SimplifyOpaque(e, mode), e, mode);
}

// (a1 + a2 + ...) * (b1 + b2 + ...) multiplied out, if the products are values that fit: that of
// each pair is at most the whole product if nothing is negative.
std::optional<LinearForm> Analyzer::ProductForm(const LinearForm& a, const LinearForm& b, Type type,
                                                Mode mode) {
  const size_t a_size = a.terms().size() + (a.constant() != 0);
  const size_t b_size = b.terms().size() + (b.constant() != 0);
  if (a_size * b_size > kMaxProductTerms) return std::nullopt;
  const bool fits =
      (a_size == 1 && b_size == 1) || (AllNonNegative(a, mode) && AllNonNegative(b, mode));
  LinearForm product;
  if (!product.Add(a, b.constant())) return std::nullopt;
  for (const LinearForm::Term& y : b.terms()) {
    if (a.constant() != 0) {
      int64_t coefficient;
      if (__builtin_mul_overflow(a.constant(), y.coefficient, &coefficient)) return std::nullopt;
      if (!product.AddTerm(y.atom, coefficient)) return std::nullopt;
    }
    for (const LinearForm::Term& x : a.terms()) {
      // Factors in printing order make equal products one expression.
      std::vector<Expr> factors;
      for (Expr atom : {x.atom, y.atom}) {
        while (atom.Is(ExprKind::kMul)) {
          factors.push_back(atom.operand(1));
          atom = atom.operand(0);
        }
        factors.push_back(atom);
      }
      std::sort(factors.begin(), factors.end(), [&](Expr f, Expr g) {
        return std::pair(Rank(g), g.id()) < std::pair(Rank(f), f.id());
      });
      Expr atom = factors[0];
      ConstRange range = RangeOf(atom, mode);
      bool in_type = true;  // also what is computed on the way
      for (size_t i = 1; i < factors.size(); ++i) {
        atom = atom * factors[i];
        range = range * RangeOf(factors[i], mode);
        in_type = in_type && Fits(range, type);
      }
      // Another order of three factors: where one is 0, the product of the others may not fit.
      const bool nonzero =
          factors.size() == 2 || std::none_of(factors.begin(), factors.end(), [&](Expr factor) {
            return RangeOf(factor, mode).Contains(0);
          });
      if (!in_type && !(fits && nonzero)) return std::nullopt;
      int64_t coefficient;
      if (__builtin_mul_overflow(x.coefficient, y.coefficient, &coefficient)) return std::nullopt;
      if (!product.AddTerm(atom, coefficient)) return std::nullopt;
    }
  }
  return product;
}

bool Analyzer::AllNonNegative(const LinearForm& form, Mode mode) {
  if (form.constant() < 0) return false;
  return std::all_of(form.terms().begin(), form.terms().end(), [&](const auto& term) {
    return (RangeOf(term.atom, mode) * ConstRange::Point(term.coefficient)).min >= 0;
  });
}

// numerator / divisor for divisor > 0, or nothing if the parts can not be computed without
// wrapping.
//
// Multiples of the divisor leave the division: (4 x + y) / 4 = x + y / 4, and what remains is
// dropped if it stays inside [0, divisor).
std::optional<LinearForm> Analyzer::DivForm(const LinearForm& numerator, Value value,
                                            int64_t divisor, Type type, Mode mode) {
  LinearForm quotient = LinearForm::Constant(FloorDiv(numerator.constant(), divisor));
  LinearForm rest = LinearForm::Constant(FloorMod(numerator.constant(), divisor));
  for (const LinearForm::Term& term : numerator.terms()) {
    // Rounded to zero: -x stays -x rather than (divisor - 1) x.
    const int64_t whole = term.coefficient / divisor;
    if (!quotient.AddTerm(term.atom, whole)) return std::nullopt;
    if (!rest.AddTerm(term.atom, term.coefficient - whole * divisor)) return std::nullopt;
  }
  const ConstRange range = Bound(rest, mode, 1);
  if (range.IsBounded() && FloorDiv(range.min, divisor) == FloorDiv(range.max, divisor)) {
    if (!quotient.AddConstant(FloorDiv(range.min, divisor))) return std::nullopt;
    return quotient;
  }
  // (g x + r) / (g d) = x / d for 0 <= r < g, the largest such g first; r may be a sum.
  std::vector<int64_t> factors;
  for (const LinearForm::Term& term : rest.terms()) {
    factors.push_back(std::gcd(term.coefficient, divisor));
  }
  std::sort(factors.rbegin(), factors.rend());
  for (int64_t factor : factors) {
    if (factor == 1) break;
    LinearForm whole = LinearForm::Constant(FloorDiv(rest.constant(), factor));
    LinearForm small = LinearForm::Constant(FloorMod(rest.constant(), factor));
    for (const LinearForm::Term& term : rest.terms()) {
      const bool divides = term.coefficient % factor == 0;
      if (!(divides ? whole.AddTerm(term.atom, term.coefficient / factor)
                    : small.AddTerm(term.atom, term.coefficient))) {
        return std::nullopt;
      }
    }
    const ConstRange small_range = Bound(small, mode, 0);
    if (small_range.min < 0 || small_range.max >= factor) continue;
    rest = std::move(whole);
    divisor /= factor;
    break;
  }
  // (x / a + k) / d = (x + a k) / (a d)
  if (rest.terms().size() == 1 && rest.terms()[0].coefficient == 1 &&
      IsConstantDiv(rest.terms()[0].atom)) {
    const Expr inner = rest.terms()[0].atom;
    const int64_t inner_divisor = inner.operand(1).int_value();
    LinearForm flat = *MathForm(inner.operand(0), mode);
    int64_t shift, product;
    if (!__builtin_mul_overflow(inner_divisor, rest.constant(), &shift) &&
        !__builtin_mul_overflow(inner_divisor, divisor, &product) && ir::FitsInt(type, product) &&
        flat.AddConstant(shift)) {
      // The program computes x, but not x + a k.
      auto nested =
          DivForm(flat, shift == 0 ? Value::kOfProgram : Value::kAny, product, type, mode);
      if (nested && nested->Add(quotient)) return nested;
    }
  }
  // Parts of a sum of non-negative terms that fits do fit.
  const bool fits =
      value == Value::kOfProgram &&
      (rest == numerator || (AllNonNegative(numerator, mode) && AllNonNegative(rest, mode)));
  const auto rest_expr =
      Print(rest, {.type = type, .mode = mode, .fits = fits, .wraps = false, .computed = {}});
  if (!rest_expr) return std::nullopt;
  if (!quotient.AddTerm(*rest_expr / divisor, 1)) return std::nullopt;
  return quotient;
}

// The form with all of x / d, (x + 1) / d, ..., (x + d - 1) / d, where each has the same coefficient,
// replaced by x (Hermite's identity).
LinearForm Analyzer::JoinQuotients(LinearForm form, Mode mode) {
  constexpr int64_t kMaxDivisor = 8;
  struct Quotient {
    int64_t divisor, coefficient;
    Expr atom;
    FormPtr numerator;
  };
  std::vector<Quotient> quotients;
  for (const LinearForm::Term& term : form.terms()) {
    if (!IsConstantDiv(term.atom)) continue;
    const int64_t divisor = term.atom.operand(1).int_value();
    if (divisor < 2 || divisor > kMaxDivisor) continue;
    quotients.push_back(
        {divisor, term.coefficient, term.atom, MathForm(term.atom.operand(0), mode)});
  }
  constexpr size_t kMaxQuotients = 16;
  if (quotients.size() > kMaxQuotients) return form;
  for (const Quotient& first : quotients) {
    LinearForm joined = form;
    bool ok = joined.Add(*first.numerator, first.coefficient);
    for (int64_t k = 0; k < first.divisor && ok; ++k) {
      const auto it = std::find_if(quotients.begin(), quotients.end(), [&](const Quotient& q) {
        LinearForm difference = *q.numerator;
        return q.divisor == first.divisor && q.coefficient == first.coefficient &&
               difference.Add(*first.numerator, -1) && difference == LinearForm::Constant(k);
      });
      ok = it != quotients.end() && joined.AddTerm(it->atom, -first.coefficient);
    }
    if (ok) return joined;
  }
  return form;
}

// `e` as a sum modulo 2^bits of its type: takes + - * apart even where they wrap.
LinearForm Analyzer::RingForm(Expr e, Mode mode, int depth) {
  constexpr int kMaxDepth = 64;
  const bool is_ring_operation =
      e.Is(ExprKind::kAdd) || e.Is(ExprKind::kSub) || e.Is(ExprKind::kMul);
  if (!is_ring_operation || !IsIntSum(e)) return *MathForm(e, mode);
  if (NoWrap(e, mode)) return *MathForm(e, mode);
  if (depth < kMaxDepth && !OutOfSteps()) {
    LinearForm sum = RingForm(e.operand(0), mode, depth + 1);
    LinearForm other = RingForm(e.operand(1), mode, depth + 1);
    bool ok = sum.terms().size() + other.terms().size() <= kMaxTerms;
    if (!e.Is(ExprKind::kMul)) {
      ok = ok && sum.Add(other, e.Is(ExprKind::kAdd) ? 1 : -1);
    } else if (sum.IsConstant() || other.IsConstant()) {
      if (sum.IsConstant()) std::swap(sum, other);
      ok = ok && sum.Scale(other.constant());
    } else {
      ok = false;
    }
    if (ok) return sum.WrappedTo(e.type());
  }
  const Expr simplified = SimplifyOpaque(e, mode);
  return simplified.Is(ExprKind::kIntImm) ? LinearForm::Constant(simplified.int_value())
                                          : LinearForm::Atom(simplified);
}

// The form with remainders put back where quotients and their numerators meet:
// x - 4 (x / 4) becomes x % 4. Equal to `form`; better to bound and to read.
LinearForm Analyzer::Recombine(const LinearForm& form, Mode mode) {
  std::vector<Expr> quotients;
  for (const LinearForm::Term& term : form.terms()) {
    if (IsConstantDiv(term.atom)) quotients.push_back(term.atom);
  }
  if (quotients.empty()) return form;
  auto divisor_of = [](Expr e) { return e.operand(1).int_value(); };
  // Larger divisors first: their numerators may be quotients by smaller ones.
  std::sort(quotients.begin(), quotients.end(), [&](Expr a, Expr b) {
    return std::pair(-divisor_of(a), a.id()) < std::pair(-divisor_of(b), b.id());
  });
  LinearForm result = form;
  for (Expr quotient : quotients) {
    const int64_t coefficient = result.CoefficientOf(quotient);
    const int64_t divisor = divisor_of(quotient);
    if (coefficient == 0) continue;
    // quotient = inner / step for another quotient `inner`: then
    // count * inner - count * step * quotient = count * (inner % step).
    bool done = false;
    for (Expr inner : quotients) {
      const int64_t inner_divisor = divisor_of(inner);
      if (inner_divisor >= divisor || divisor % inner_divisor != 0) continue;
      const int64_t step = divisor / inner_divisor;
      if (coefficient % step != 0 || result.CoefficientOf(inner) == 0) continue;
      if (OutOfSteps()) return result;
      auto same = DivForm(*MathForm(quotient.operand(0), mode), Value::kOfProgram, inner_divisor,
                          quotient.type(), mode);
      if (!same || !same->IsAtom(inner)) continue;
      const int64_t count = -(coefficient / step);
      LinearForm next = result;
      if (!next.AddTerm(inner, -count) || !next.AddTerm(quotient, -coefficient) ||
          !next.AddTerm(inner % step, count)) {
        continue;
      }
      result = std::move(next);
      done = true;
      break;
    }
    if (done || coefficient % divisor != 0) continue;
    const int64_t count = -(coefficient / divisor);
    LinearForm next = result;
    if (!next.Add(*MathForm(quotient.operand(0), mode), -count) ||
        !next.AddTerm(quotient, -coefficient) ||
        !next.AddTerm(quotient.operand(0) % divisor, count)) {
      continue;
    }
    if (next.terms().size() <= result.terms().size()) result = std::move(next);
  }
  return result;
}

// ---- sums as expressions ------------------------------------------------------------------------

// Whether no partial sum leaves the type where the program's own sums did not.
bool Analyzer::CanPrint(absl::Span<const LinearForm::Term> terms, int64_t constant,
                        const PrintContext& how) {
  if (!ir::FitsInt(how.type, constant)) return false;
  LinearForm whole = LinearForm::Constant(constant);
  for (const LinearForm::Term& term : terms) {
    if (!ir::FitsInt(how.type, term.coefficient)) return false;
    if (!whole.AddTerm(term.atom, term.coefficient)) return false;
  }
  if (how.wraps) return true;
  auto in_type = [&](const LinearForm& form) { return Fits(IntervalOf(form, how.mode), how.type); };
  const bool whole_fits = how.fits || in_type(whole);
  if (!IsExact(how.type, how.mode)) {
    // Partial sums may wrap if the whole one comes out right.
    return whole_fits;
  }
  if (!whole_fits) return false;
  if (AllNonNegative(whole, how.mode)) return true;  // no partial sum exceeds the whole one
  auto computed = [&](const LinearForm& form) {
    return form == whole || in_type(form) ||
           std::find(how.computed.begin(), how.computed.end(), form) != how.computed.end();
  };
  // Follows SumExpr.
  const bool constant_first = !terms.empty() && terms[0].coefficient < 0 && constant >= 0;
  LinearForm partial = LinearForm::Constant(constant_first ? constant : 0);
  for (size_t i = 0; i < terms.size(); ++i) {
    const bool subtracted = terms[i].coefficient < 0 && (i > 0 || constant_first);
    const int64_t factor = subtracted ? -terms[i].coefficient : terms[i].coefficient;
    if (factor != 1 && !computed(LinearForm::Atom(terms[i].atom, factor))) return false;
    if (!partial.AddTerm(terms[i].atom, terms[i].coefficient)) return false;
    if ((i > 0 || constant_first) && !computed(partial)) return false;
  }
  return true;
}

std::optional<Expr> Analyzer::Print(const LinearForm& form, const PrintContext& how) {
  Expr best;
  LinearForm candidates[] = {form, Recombine(form, how.mode)};
  for (const LinearForm& candidate : candidates) {
    const LinearForm shown = how.wraps ? candidate.WrappedTo(how.type) : candidate;
    const std::vector<LinearForm::Term> terms =
        InPrintingOrder(shown, [&](Expr e) { return Rank(e); });
    if (!CanPrint(terms, shown.constant(), how)) continue;
    const Expr sum = SumExpr(context_, how.type, terms, shown.constant());
    if (!best || Cost(sum) < Cost(best)) best = sum;
    if (candidates[0] == candidates[1]) break;
  }
  if (!best) return std::nullopt;
  return best;
}

// The forms of all sums below `e` that are computed on the way to it.
void Analyzer::CollectSums(Expr e, Mode mode, std::vector<LinearForm>& sums) {
  constexpr size_t kMaxSums = 32;
  if (!IsIntSum(e) || sums.size() >= kMaxSums) return;
  sums.push_back(*MathForm(e, mode));
  CollectSums(e.operand(0), mode, sums);
  CollectSums(e.operand(1), mode, sums);
}

}  // namespace polynao::arith
