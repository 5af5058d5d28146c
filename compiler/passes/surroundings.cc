#include "compiler/passes/surroundings.h"

#include <algorithm>
#include <utility>

#include "compiler/arith/logic.h"
#include "compiler/passes/facts.h"

namespace polynao {

using arith::BoundedVar;
using arith::ConstRange;
using arith::Interval;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::Var;

Surroundings::Surroundings(const ir::Function& function)
    : context_(*function.context), analyzer_(context_), lets_(analyzer_) {
  for (Expr fact : ParameterFacts(function)) Assume(fact);
}

Surroundings::Scope::Scope(Surroundings& around)
    : around_(around),
      analyzer_(around.analyzer_),
      lets_(around.lets_),
      facts_(around.facts_.size()),
      loops_(around.loops_.size()) {}

Surroundings::Scope::~Scope() {
  around_.facts_.resize(facts_);
  around_.loops_.resize(loops_);
}

void Surroundings::Assume(Expr condition, bool truth) {
  analyzer_.Assume(condition, truth);
  AddFacts(condition, truth, facts_);
}

bool Surroundings::BindLet(Stmt let) { return lets_.Bind(let); }

void Surroundings::EnterLoop(Stmt loop, std::optional<Interval> range) {
  BoundedVar bound = {loop.var(), Expand(loop.min()), Expand(loop.extent())};
  if (range) {
    bound.min = context_.Int(loop.var().type(), range->first);
    bound.extent = context_.Int(loop.var().type(), range->last - range->first + 1);
  }
  analyzer_.BindLoop(bound.var, bound.min, bound.extent);
  loops_.push_back(bound);
}

void Surroundings::EnterBeside(Stmt loop) {
  const BoundedVar bound = {loop.var(), Expand(loop.min()), Expand(loop.extent())};
  const ConstRange extent = analyzer_.Range(bound.extent);
  analyzer_.BindRange(
      loop.var(),
      Intersect(ConstRange::OfType(loop.var().type()),
                analyzer_.Range(bound.min) + ConstRange{0, (extent - ConstRange::Point(1)).max}));
  loops_.push_back(bound);
}

BoundedVar Surroundings::NarrowLoop(Var var, Interval range) {
  const BoundedVar narrow = {var, context_.Int(var.type(), range.first),
                             context_.Int(var.type(), range.last - range.first + 1)};
  analyzer_.BindLoop(narrow.var, narrow.min, narrow.extent);
  const auto loop = std::find_if(loops_.begin(), loops_.end(),
                                 [&](const BoundedVar& bound) { return bound.var == var; });
  return std::exchange(*loop, narrow);
}

void Surroundings::RestoreLoop(const BoundedVar& loop) {
  for (BoundedVar& bound : loops_) {
    if (bound.var == loop.var) bound = loop;
  }
}

void Surroundings::AddFacts(Expr condition, bool truth, std::vector<Expr>& facts) {
  if (condition.Is(ExprKind::kNot)) return AddFacts(condition.operand(0), !truth, facts);
  if (condition.Is(truth ? ExprKind::kAnd : ExprKind::kOr)) {
    AddFacts(condition.operand(0), truth, facts);
    AddFacts(condition.operand(1), truth, facts);
    return;
  }
  if (condition.IsConst() || analyzer_.CanTrap(condition)) return;
  facts.push_back(truth ? condition : arith::Negation(condition));
}

std::optional<Interval> Surroundings::ConstantRange(Stmt loop) {
  const Expr min = analyzer_.Simplify(Expand(loop.min()));
  const Expr extent = analyzer_.Simplify(Expand(loop.extent()));
  if (!min.IsConst() || !extent.IsConst() || extent.int_value() <= 0) return std::nullopt;
  int64_t last;
  if (__builtin_add_overflow(min.int_value(), extent.int_value() - 1, &last) ||
      !ir::FitsInt(loop.var().type(), last)) {
    return std::nullopt;  // the program stops there
  }
  return Interval{min.int_value(), last};
}

bool Surroundings::HasConstantBounds(Var var) const {
  for (const BoundedVar& bound : loops_) {
    if (bound.var == var) return bound.min.IsConst() && bound.extent.IsConst();
  }
  return true;  // a parameter
}

}  // namespace polynao
