// Intervals of expressions and sums: from the ranges of their parts, and from facts.
#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/analyzer_parts.h"
#include "compiler/arith/const_range.h"
#include "compiler/arith/linear_form.h"

namespace polynao::arith {

using ir::Expr;
using ir::ExprKind;
using ir::Type;

bool Analyzer::NoWrap(Expr e, Mode mode) {
  if (e.Is(ExprKind::kMod)) return true;
  // The least integer divided by -1 wraps in an index, too.
  if (IsExact(e.type(), mode) && !e.Is(ExprKind::kDiv)) return true;
  return Fits(Apply(e.kind(), RangeOf(e.operand(0), mode), RangeOf(e.operand(1), mode)), e.type());
}

// From the operands' ranges alone.
ConstRange Analyzer::StructuralRange(Expr e, Mode mode) {
  const ConstRange all = ConstRange::OfType(e.type());
  switch (e.kind()) {
    case ExprKind::kIntImm:
      return ConstRange::Point(e.int_value());
    case ExprKind::kAdd:
    case ExprKind::kSub:
    case ExprKind::kMul:
    case ExprKind::kDiv:
    case ExprKind::kMod:
    case ExprKind::kMin:
    case ExprKind::kMax: {
      if (!ir::IsIndexable(e.type())) return all;
      const ConstRange range =
          Apply(e.kind(), RangeOf(e.operand(0), mode), RangeOf(e.operand(1), mode));
      if (range.IsEmpty()) return all;  // always divides by zero
      if (IsExact(e.type(), mode) && !e.Is(ExprKind::kDiv)) return Intersect(range, all);
      const bool may_wrap = IsArithmetic(e.kind()) && !e.Is(ExprKind::kMod);
      return may_wrap && !Fits(range, e.type()) ? all : range;
    }
    case ExprKind::kCast: {
      const Expr from = e.operand(0);
      if (!ir::IsInt(from.type())) return all;
      const ConstRange range = RangeOf(from, mode);
      return all.Contains(range) ? range : all;
    }
    case ExprKind::kSelect:
      return Union(RangeOf(e.operand(1), mode), RangeOf(e.operand(2), mode));
    case ExprKind::kLet:
      return RangeOf(e.operand(1), mode);
    case ExprKind::kBitAnd: {
      // Not more than an operand that is not negative: it has no other bits.
      if (!ir::IsIndexable(e.type())) return all;
      ConstRange range = all;
      for (Expr operand : e.operands()) {
        const ConstRange mask = RangeOf(operand, mode);
        if (mask.min >= 0) range = Intersect(range, {0, mask.max});
      }
      return range;
    }
    case ExprKind::kShiftRight: {
      // Towards 0 or -1, by however many places.
      if (!ir::IsIndexable(e.type())) return all;
      const ConstRange range = RangeOf(e.operand(0), mode);
      return {std::min<int64_t>(range.min, range.max < 0 ? -1 : 0),
              std::max<int64_t>(range.max, range.min < 0 ? -1 : 0)};
    }
    case ExprKind::kBitOr:
    case ExprKind::kBitXor:
    case ExprKind::kShiftLeft:
    case ExprKind::kFloatImm:
    case ExprKind::kVar:
    case ExprKind::kEq:
    case ExprKind::kNe:
    case ExprKind::kLt:
    case ExprKind::kLe:
    case ExprKind::kAnd:
    case ExprKind::kOr:
    case ExprKind::kNot:
    case ExprKind::kLoad:
    case ExprKind::kAddress:
    case ExprKind::kCall:
      return all;
  }
  POLYNAO_UNREACHABLE(static_cast<int>(e.kind()));
}

ConstRange Analyzer::RangeOf(Expr e, Mode mode) {
  if (e.Is(ExprKind::kIntImm)) return ConstRange::Point(e.int_value());
  const Key key = {e.node(), mode};
  if (auto it = memo().ranges.find(key); it != memo().ranges.end()) return it->second;
  if (OutOfSteps() || recursion_ > kMaxRecursion) return ConstRange::OfType(e.type());
  ++recursion_;
  ConstRange range = StructuralRange(e, mode);
  --recursion_;
  if (auto it = ranges_.find(e); it != ranges_.end()) {
    const ConstRange known = Intersect(range, it->second);
    if (!known.IsEmpty()) range = known;
  }
  // What follows may ask for this range again.
  memo().ranges[key] = range;
  if (IsIntSum(e) && !range.IsPoint()) {
    const FormPtr form = MathForm(e, mode);
    if (!form->IsAtom(e)) {
      const ConstRange bound = Intersect(range, Bound(*form, mode, 0));
      if (!bound.IsEmpty()) memo().ranges[key] = range = bound;
    }
  }
  return range;
}

// Term by term.
ConstRange Analyzer::IntervalOf(const LinearForm& form, Mode mode) {
  ConstRange range = ConstRange::Point(form.constant());
  for (const LinearForm::Term& term : form.terms()) {
    range = range + RangeOf(term.atom, mode) * ConstRange::Point(term.coefficient);
  }
  return range;
}

// The best lower end, taking at most `fact_depth` multiples of facts off the form.
int64_t Analyzer::LowerBound(const LinearForm& form, Mode mode, int fact_depth) {
  int64_t best = IntervalOf(form, mode).min;
  if (fact_depth == 0) return best;
  for (size_t i = 0; i < facts_.size(); ++i) {
    for (const LinearForm::Term& term : facts_[i].sum.terms()) {
      const int64_t coefficient = form.CoefficientOf(term.atom);
      if (coefficient == 0 || coefficient % term.coefficient != 0) continue;
      const int64_t factor = coefficient / term.coefficient;
      if (factor <= 0 || OutOfSteps()) continue;
      LinearForm rest = form;  // form = factor * fact + rest >= rest
      if (!rest.Add(facts_[i].sum, -factor)) continue;
      // What a fact about data adds to the sum may have wrapped.
      const Mode rest_mode = facts_[i].mode == Mode::kData ? Mode::kData : mode;
      best = std::max(best, LowerBound(rest, rest_mode, fact_depth - 1));
    }
  }
  return best;
}

// Whether facts say that `form` is not 0: it is plus or minus a sum that is not.
bool Analyzer::IsNonZero(const LinearForm& form, Mode mode) {
  for (size_t i = 0; i < nonzero_.size(); ++i) {
    for (int64_t sign : {-1, 1}) {
      LinearForm rest = form;
      if (!rest.Add(nonzero_[i], sign) || OutOfSteps()) continue;
      if (rest == LinearForm() || Bound(rest, mode, 1) == ConstRange::Point(0)) return true;
    }
  }
  return false;
}

ConstRange Analyzer::Bound(const LinearForm& form, Mode mode, int fact_depth) {
  ConstRange range = IntervalOf(form, mode);
  if (form.IsConstant() || range.IsPoint()) return range;
  auto narrow = [&](ConstRange by) {
    const ConstRange both = Intersect(range, by);
    if (!both.IsEmpty()) range = both;
  };
  const bool has_division = std::any_of(form.terms().begin(), form.terms().end(),
                                        [](const auto& t) { return IsConstantDiv(t.atom); });
  if (has_division) narrow(IntervalOf(Recombine(form, mode), mode));
  const auto narrow_by_facts = [&](const LinearForm& sum, Mode sum_mode) {
    if (fact_depth == 0 || facts_.empty()) return;
    const int64_t min = LowerBound(sum, sum_mode, fact_depth);
    LinearForm negated = sum;
    int64_t max = kInfinity;
    if (negated.Scale(-1)) {
      const int64_t bound = LowerBound(negated, sum_mode, fact_depth);
      if (bound != kMinusInfinity) max = -bound;
    }
    narrow({min, max});
  };
  if (!lets_.empty()) {
    // Lets in the order of binding may use earlier ones, hence from the last on.
    LinearForm expanded = form;
    bool ok = true;
    for (size_t i = let_order_.size(); i-- > 0 && ok;) {
      const Expr var = let_order_[i];
      const int64_t coefficient = expanded.CoefficientOf(var);
      if (coefficient == 0) continue;
      ok = expanded.AddTerm(var, -coefficient) && expanded.Add(lets_.at(var), coefficient);
    }
    // Atoms of a let's value may be data, whose ranges hold in an index too.
    if (ok && expanded != form) {
      narrow(IntervalOf(expanded, Mode::kData));
      narrow_by_facts(expanded, Mode::kData);
    }
  }
  narrow_by_facts(form, mode);
  return range;
}

}  // namespace polynao::arith
