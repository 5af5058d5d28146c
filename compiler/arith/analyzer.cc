// Facts, intervals and canonical sums. The simplification of expressions is in simplify_expr.cc.
#include "compiler/arith/analyzer.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "compiler/arith/logic.h"
#include "compiler/ir/visit.h"

namespace polynao::arith {

using ir::Expr;
using ir::ExprKind;
using ir::Type;

namespace {

// Sums longer than this become atoms, so that long chains stay linear.
constexpr size_t kMaxTerms = 64;
// Products of sums are multiplied out up to this many terms.
constexpr size_t kMaxProductTerms = 8;
// Facts beyond this many are dropped (older ones stay).
constexpr size_t kMaxFacts = 64;
constexpr size_t kMaxNonZero = 16;

bool IsArithmetic(ExprKind kind) { return kind >= ExprKind::kAdd && kind <= ExprKind::kMod; }

bool IsIntSum(Expr e) { return IsArithmetic(e.kind()) && ir::IsIndexable(e.type()); }

bool IsPositiveConstant(Expr e) { return e.Is(ExprKind::kIntImm) && e.int_value() > 0; }

// `x / c` with c > 0.
bool IsConstantDiv(Expr e) { return e.Is(ExprKind::kDiv) && IsPositiveConstant(e.operand(1)); }

ConstRange Apply(ExprKind kind, ConstRange a, ConstRange b) {
  switch (kind) {
    case ExprKind::kAdd:
      return a + b;
    case ExprKind::kSub:
      return a - b;
    case ExprKind::kMul:
      return a * b;
    case ExprKind::kDiv:
      return FloorDiv(a, b);
    case ExprKind::kMod:
      return FloorMod(a, b);
    case ExprKind::kMin:
      return Min(a, b);
    case ExprKind::kMax:
      return Max(a, b);
    default:
      POLYNAO_UNREACHABLE(ir::ExprKindName(kind));
  }
}

// Whether values in `range`, the saturated result of an operation, are values of `type`. For i64 an
// infinite end may be a value that did not fit.
bool Fits(ConstRange range, Type type) {
  if (type == Type::kU64) return range.IsEmpty();
  if (type == Type::kI64) return range.IsEmpty() || range.IsBounded();
  return ConstRange::OfType(type).Contains(range);
}

// Whether operations on `type` are mathematical in `mode`.
bool IsExact(Type type, Mode mode) {
  return mode == Mode::kIndex && (type == Type::kI32 || type == Type::kI64);
}

}  // namespace

Mode OperandMode(Expr e, size_t i, Mode mode) {
  switch (e.kind()) {
    case ExprKind::kLoad:
    case ExprKind::kAddress:
      return Mode::kIndex;
    case ExprKind::kSelect:
      return i == 0 ? Mode::kIndex : mode;
    case ExprKind::kCall:
      return ir::IsPureIntrinsic(e.name()) ? mode : Mode::kIndex;
    default:
      return mode;
  }
}

void Analyzer::Memo::Clear() {
  simplified.clear();
  forms.clear();
  ranges.clear();
  traps.clear();
}

Analyzer::Analyzer(ir::Context& context, const AnalyzerOptions& options)
    : context_(context), options_(options) {
  memos_.push_back(std::make_unique<Memo>());
}

Analyzer::~Analyzer() = default;

// ---- facts --------------------------------------------------------------------------------------

Analyzer::Scope::Scope(Analyzer& analyzer)
    : analyzer_(analyzer),
      facts_(analyzer.facts_.size()),
      nonzero_(analyzer.nonzero_.size()),
      ranges_(analyzer.replaced_ranges_.size()),
      known_(analyzer.known_order_.size()),
      lets_(analyzer.let_order_.size()) {
  analyzer_.memos_.push_back(std::make_unique<Memo>());
}

Analyzer::Scope::~Scope() {
  analyzer_.memos_.pop_back();
  while (analyzer_.facts_.size() > facts_) analyzer_.facts_.pop_back();
  analyzer_.nonzero_.resize(nonzero_);
  while (analyzer_.replaced_ranges_.size() > ranges_) {
    auto& [atom, range] = analyzer_.replaced_ranges_.back();
    if (range) {
      analyzer_.ranges_[atom] = *range;
    } else {
      analyzer_.ranges_.erase(atom);
    }
    analyzer_.replaced_ranges_.pop_back();
  }
  while (analyzer_.known_order_.size() > known_) {
    analyzer_.known_.erase(analyzer_.known_order_.back());
    analyzer_.known_order_.pop_back();
  }
  while (analyzer_.let_order_.size() > lets_) {
    analyzer_.lets_.erase(analyzer_.let_order_.back());
    analyzer_.let_order_.pop_back();
  }
}

void Analyzer::SetRange(Expr atom, ConstRange range) {
  auto [it, inserted] = ranges_.emplace(atom, range);
  replaced_ranges_.emplace_back(atom, inserted ? std::nullopt : std::optional(it->second));
  it->second = range;
}

void Analyzer::BindRange(ir::Var var, ConstRange range) {
  // An empty range means that this place is never reached; anything may be said about it then.
  if (!range.IsEmpty()) SetRange(var, range);
  memo().Clear();
}

void Analyzer::BindLoop(ir::Var var, Expr min, Expr extent) {
  ++questions_;
  const ConstRange min_range = RangeOf(min, Mode::kIndex);
  const ConstRange extent_range = RangeOf(extent, Mode::kIndex);
  ConstRange range = ConstRange::OfType(var.type());
  range.min = std::max(range.min, min_range.min);
  range.max = std::min(range.max, (min_range + extent_range - ConstRange::Point(1)).max);
  BindRange(var, range);
  if (!ReadsMemory(min) && !ReadsMemory(extent)) {
    LinearForm from_min = LinearForm::Atom(var);
    if (from_min.Add(*MathForm(min, Mode::kIndex), -1)) AddFact(from_min, Mode::kIndex);
    LinearForm to_end = *MathForm(extent, Mode::kIndex);
    if (to_end.Add(from_min, -1) && to_end.AddConstant(-1))
      AddFact(std::move(to_end), Mode::kIndex);
  }
  memo().Clear();
  --questions_;
}

void Analyzer::BindLet(ir::Var var, Expr value, Mode mode) {
  if (!ir::IsInt(var.type())) return;
  ++questions_;
  const ConstRange range = RangeOf(value, mode);
  if (!ReadsMemory(value)) {
    const LinearForm form = *MathForm(value, mode);
    if (lets_.emplace(var, form).second) let_order_.push_back(var);
  }
  BindRange(var, range);
  --questions_;
}

void Analyzer::Assume(Expr condition, bool truth) {
  while (condition.Is(ExprKind::kNot)) {
    condition = condition.operand(0);
    truth = !truth;
  }
  if (condition.Is(truth ? ExprKind::kAnd : ExprKind::kOr)) {
    Assume(condition.operand(0), truth);
    Assume(condition.operand(1), truth);
    return;
  }
  if (!ReadsMemory(condition)) AssumeInScope(condition, truth, Mode::kIndex);
}

// As Assume, for a scope in which no store can happen.
void Analyzer::AssumeInScope(Expr condition, bool truth, Mode mode) {
  while (condition.Is(ExprKind::kNot)) {
    condition = condition.operand(0);
    truth = !truth;
  }
  if (condition.Is(truth ? ExprKind::kAnd : ExprKind::kOr)) {
    AssumeInScope(condition.operand(0), truth, mode);
    AssumeInScope(condition.operand(1), truth, mode);
    return;
  }
  ++questions_;
  auto remember_one = [&](Expr e, bool holds) {
    if (known_.emplace(e, holds).second) known_order_.push_back(e);
  };
  auto remember = [&](Expr e) {
    if (e.IsConst()) return;
    remember_one(e, truth);
    if (!e.Is(ExprKind::kEq) && !e.Is(ExprKind::kNe)) return;
    const ExprKind opposite = e.Is(ExprKind::kEq) ? ExprKind::kNe : ExprKind::kEq;
    remember_one(context_.Binary(opposite, e.operand(0), e.operand(1)), !truth);
  };
  const Expr simplified = SimplifyIn(condition, mode);
  if (IsComparison(condition.kind()) && ir::IsIndexable(condition.operand(0).type())) {
    LinearForm less = *MathForm(condition.operand(1), mode);  // b - a
    bool ok = less.Add(*MathForm(condition.operand(0), mode), -1);
    LinearForm greater = less;
    ok = ok && greater.Scale(-1);
    if (ok) {
      const bool equal = condition.Is(truth ? ExprKind::kEq : ExprKind::kNe);
      if (equal) {
        AddFact(less, mode);
        AddFact(greater, mode);
      } else if (condition.Is(ExprKind::kLt) || condition.Is(ExprKind::kLe)) {
        LinearForm& fact = truth ? less : greater;
        const bool strict = condition.Is(ExprKind::kLt) == truth;
        if (!strict || fact.AddConstant(-1)) AddFact(fact, mode);
      } else {
        if (!less.IsConstant() && nonzero_.size() < kMaxNonZero) nonzero_.push_back(less);
        if (less.terms().size() == 1 && std::abs(less.terms()[0].coefficient) == 1) {
          // atom != value narrows the atom's range where the value is one of its ends.
          const Expr atom = less.terms()[0].atom;
          const int64_t value =
              less.terms()[0].coefficient == 1 ? greater.constant() : less.constant();
          ConstRange range = RangeOf(atom, mode);
          if (range.min == value && range.min != kMinusInfinity) ++range.min;
          if (range.max == value && range.max != kInfinity) --range.max;
          if (!range.IsEmpty()) SetRange(atom, range);
        }
      }
    }
  }
  remember(condition);
  remember(simplified);
  memo().Clear();
  --questions_;
}

void Analyzer::AddFact(LinearForm non_negative, Mode mode) {
  if (non_negative.IsConstant()) return;
  Fact fact = {std::move(non_negative), mode};
  Tighten(fact);
  if (fact.sum.terms().size() > 1 && facts_.size() < kMaxFacts) {
    facts_.push_back(std::move(fact));
  }
  // A tighter range may tighten others through the facts that join them: i < n, then n < 10.
  for (int round = 0; round < 2; ++round) {
    const size_t before = replaced_ranges_.size();
    for (size_t i = 0; i < facts_.size(); ++i) Tighten(facts_[i]);
    if (replaced_ranges_.size() == before) break;
  }
}

// Narrows the range of each atom of `fact`.
void Analyzer::Tighten(const Fact& fact) {
  for (const LinearForm::Term& term : fact.sum.terms()) {
    // The ends of int64_t, which stand for infinity, have no negative.
    if (term.coefficient == kMinusInfinity) continue;
    LinearForm rest = fact.sum;
    if (!rest.AddTerm(term.atom, -term.coefficient)) continue;
    const ConstRange rest_range = IntervalOf(rest, fact.mode);
    if (rest_range.max == kInfinity || rest_range.max == kMinusInfinity) continue;
    const ConstRange old = RangeOf(term.atom, fact.mode);
    ConstRange range = old;
    if (term.coefficient > 0) {  // atom >= -rest / coefficient, rounded up
      range.min = std::max(range.min, -FloorDiv(rest_range.max, term.coefficient));
    } else {  // atom <= rest / -coefficient, rounded down
      range.max = std::min(range.max, FloorDiv(rest_range.max, -term.coefficient));
    }
    if (range != old && !range.IsEmpty()) {
      SetRange(term.atom, range);
      memo().Clear();
    }
  }
}

// ---- intervals ----------------------------------------------------------------------------------

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
    if (ok && expanded != form) narrow(IntervalOf(expanded, Mode::kData));
  }
  if (fact_depth > 0 && !facts_.empty()) {
    const int64_t min = LowerBound(form, mode, fact_depth);
    LinearForm negated = form;
    int64_t max = kInfinity;
    if (negated.Scale(-1)) {
      const int64_t bound = LowerBound(negated, mode, fact_depth);
      if (bound != kMinusInfinity) max = -bound;
    }
    narrow({min, max});
  }
  return range;
}

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

// ---- properties no fact changes -----------------------------------------------------------------

// Rough work: divisions count more than other operations, constants and variables not at all.
int Analyzer::Cost(Expr e) {
  if (e.operands().empty()) return 0;
  if (auto it = costs_.find(e); it != costs_.end()) return it->second;
  constexpr int kDivCost = 3;
  constexpr int kMaxCost = 1 << 24;
  int cost = e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod) ? kDivCost : 1;
  for (Expr operand : e.operands()) cost = std::min(kMaxCost, cost + Cost(operand));
  costs_.emplace(e, cost);
  return cost;
}

// Outer loops' variables are older, so sums read from the outermost variable to the innermost.
uint64_t Analyzer::Rank(Expr e) {
  if (e.Is(ExprKind::kVar)) return e.id() + uint64_t{1};
  if (e.operands().empty()) return 0;
  if (auto it = ranks_.find(e); it != ranks_.end()) return it->second;
  uint64_t rank = 0;
  for (Expr operand : e.operands()) rank = std::max(rank, Rank(operand));
  ranks_.emplace(e, rank);
  return rank;
}

bool Analyzer::ReadsMemory(Expr e) {
  if (e.operands().empty()) return e.Is(ExprKind::kLoad) || e.Is(ExprKind::kCall);
  if (auto it = reads_memory_.find(e); it != reads_memory_.end()) return it->second;
  bool reads = e.Is(ExprKind::kLoad) || (e.Is(ExprKind::kCall) && !ir::IsPureIntrinsic(e.name()));
  for (Expr operand : e.operands()) reads = reads || ReadsMemory(operand);
  reads_memory_.emplace(e, reads);
  return reads;
}

int Analyzer::Depth(Expr e) {
  if (auto it = depths_.find(e); it != depths_.end()) return it->second;
  ir::ForEachExpr(e, [&](Expr x) {
    if (depths_.contains(x)) return;
    int depth = 0;
    for (Expr operand : x.operands()) depth = std::max(depth, depths_.at(operand));
    depths_.emplace(x, depth + 1);
  });
  return depths_.at(e);
}

bool Analyzer::CanTrap(Expr e) {
  if (e.operands().empty()) return IsTrap(e);
  if (auto it = memo().traps.find(e.node()); it != memo().traps.end()) return it->second;
  bool traps = IsTrap(e);
  if (traps && (e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod))) {
    traps = RangeOf(e.operand(1), Mode::kData).Contains(0);
  }
  for (Expr operand : e.operands()) traps = traps || CanTrap(operand);
  memo().traps[e.node()] = traps;
  return traps;
}

bool Analyzer::CanOverflow(Expr e) {
  bool overflows = false;
  ir::ForEachExpr(e, [&](Expr x) {
    if (overflows || !IsIntSum(x) || !IsExact(x.type(), Mode::kIndex)) return;
    overflows = !x.Is(ExprKind::kMod) && !Fits(Apply(x.kind(), RangeOf(x.operand(0), Mode::kIndex),
                                                     RangeOf(x.operand(1), Mode::kIndex)),
                                               x.type());
  });
  return overflows;
}

// ---- public questions ---------------------------------------------------------------------------

ConstRange Analyzer::Range(Expr e, Mode mode) {
  if (questions_ == 0) steps_ = 0;
  ++questions_;
  const ConstRange range = RangeOf(e, mode);
  --questions_;
  return range;
}

ConstRange Analyzer::Range(const LinearForm& form) {
  if (questions_ == 0) steps_ = 0;
  ++questions_;
  const ConstRange range = Bound(form, Mode::kIndex, 1);
  --questions_;
  return range;
}

bool Analyzer::CanProve(Expr condition, Mode mode) {
  const Expr simplified = Simplify(condition, mode);
  return simplified.IsInt(1);
}

LinearForm Analyzer::Form(Expr e, Mode mode) {
  if (questions_ == 0) steps_ = 0;
  ++questions_;
  LinearForm form = *MathForm(e, mode);
  --questions_;
  return form;
}

std::optional<int64_t> Analyzer::ConstantDifference(Expr a, Expr b, Mode mode) {
  LinearForm difference = Form(a, mode);
  if (!difference.Add(Form(b, mode), -1)) return std::nullopt;
  const ConstRange range = Range(difference);
  if (!range.IsPoint() || !range.IsBounded()) return std::nullopt;
  return range.min;
}

}  // namespace polynao::arith
