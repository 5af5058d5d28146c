// Facts, the properties of expressions that no fact changes, and the public questions. Intervals are in
// analyzer_ranges.cc, sums in analyzer_forms.cc, the simplification of expressions in simplify_expr.cc.
#include "compiler/arith/analyzer.h"

#include <algorithm>

#include "compiler/arith/analyzer_parts.h"
#include "compiler/arith/logic.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/visit.h"

namespace polynao::arith {

using ir::Expr;
using ir::ExprKind;
using ir::Type;

namespace {

// Facts beyond this many are dropped (older ones stay).
constexpr size_t kMaxFacts = 64;
constexpr size_t kMaxNonZero = 16;

}  // namespace

Mode OperandMode(Expr e, size_t i, Mode mode) {
  switch (e.kind()) {
    case ExprKind::kLoad:
    case ExprKind::kAddress:
      return Mode::kIndex;
    case ExprKind::kSelect:
      return i == 0 ? Mode::kIndex : mode;
    case ExprKind::kCall:
      return e.callee() == nullptr && ir::IsPureIntrinsic(e.name()) ? mode : Mode::kIndex;
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
    if (from_min.Add(*MathForm(min, Mode::kIndex), -1)) {
      LinearForm to_end = *MathForm(extent, Mode::kIndex);
      const bool ok = to_end.Add(from_min, -1) && to_end.AddConstant(-1);
      AddFact(std::move(from_min), Mode::kIndex);
      if (ok) AddFact(std::move(to_end), Mode::kIndex);
    }
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
    LinearForm rest = fact.sum;
    if (!rest.AddTerm(term.atom, -term.coefficient)) continue;
    const ConstRange rest_range = IntervalOf(rest, fact.mode);
    // -2^63 has no negative.
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
  if (e.operands().empty() && !e.Is(ExprKind::kCall)) return e.Is(ExprKind::kLoad);
  if (auto it = reads_memory_.find(e); it != reads_memory_.end()) return it->second;
  bool reads = e.Is(ExprKind::kLoad) || (e.Is(ExprKind::kCall) && !ir::IsPureCall(e));
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
