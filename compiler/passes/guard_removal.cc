#include "compiler/passes/guard_removal.h"

#include <algorithm>

#include "base/math.h"
#include "base/text.h"
#include "compiler/arith/logic.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao {

using arith::Analyzer;
using arith::LinearForm;
using ir::Expr;
using ir::Stmt;
using ir::Var;

void GuardRemoval::Run(PreprocessPlan& plan, std::vector<PreprocessDecision>* decisions) {
  for (size_t n = 0; n < facts_.nests.size(); ++n) {
    const GuardedNest& nest = facts_.nests[n];
    if (!nest.IsComputing() || nest.guards.empty()) continue;
    const std::string why = TryGuards(nest, plan.nests[n], plan);
    if (!why.empty()) ReportDecision(decisions, nest.pragma.body(), StrCat("kept: ", why));
  }
}

// Drops the guards that may go. Returns why one stays.
std::string GuardRemoval::TryGuards(const GuardedNest& nest, NestPlan& nest_plan,
                                    PreprocessPlan& plan) {
  const ir::Buffer target = nest.stores.back().store.buffer();
  const OnChipBuffer* buffer = facts_.Find(target);
  if (buffer == nullptr) {
    return StrCat("guarded, and '", target->name, "' is not allocated on chip");
  }
  if (buffer->other_writers) {
    return StrCat("guarded, and not only marked nests store to '", target->name, "'");
  }
  if (!nest.stays_inside) return "guarded, and indices or divisors need that";
  for (const Guard& guard : nest.guards) {
    if (arith::CanTrap(guard.condition)) {
      return StrCat("the guard ", ir::Print(guard.condition), " may need the others");
    }
  }
  if (std::string why = CheckNeeds(nest, nest_plan, plan); !why.empty()) return why;
  if (elements_[target].writer_guards.empty()) {
    for (size_t n : buffer->writers) {
      std::vector<ElementGuard> guards = ElementGuards(facts_.nests[n]);
      elements_[target].writer_guards.push_back(std::move(guards));
    }
  }
  Analyzer::Scope scope(analyzer_);
  BindLoops(nest, analyzer_);
  std::string why;
  for (size_t g = 0; g < nest.guards.size(); ++g) {
    const std::optional<std::vector<ElementGuard>> forms = OnElements(nest, nest.guards[g]);
    bool may_go = forms.has_value();
    for (const std::vector<ElementGuard>& others : elements_[target].writer_guards) {
      for (size_t f = 0; may_go && f < forms->size(); ++f) {
        may_go = std::find(others.begin(), others.end(), (*forms)[f]) != others.end();
      }
    }
    if (may_go) {
      nest_plan.guards[g] = GuardFate::kDropped;
      // The elements behind this guard would cost much: the nest reduces.
      if (!nest.bounds.fewer.empty() && nest.bounds.fewer[g]) {
        const Expr fewer = nest.bounds.fewer[g];
        Expr& extent = nest_plan.loops[0].extent;
        extent = extent == nest.loops[0].extent ? fewer : ir::Min(extent, fewer);
      }
    } else if (why.empty()) {
      why = StrCat("the guard ", ir::Print(nest.guards[g].condition),
                   forms ? " is not that of all nests that store there"
                         : " is not one on the stored elements alone");
    }
  }
  for (const ExtentNeed& need : nest.needs) {
    BufferPlan& needed = *plan.Find(need.buffer);
    if (needed.layout) continue;
    int64_t& extent = needed.extents[need.dimension];
    extent = std::max(extent, need.extent);
  }
  return why;
}

// Why a buffer cannot be enlarged for the elements beyond the guards; empty if all can.
std::string GuardRemoval::CheckNeeds(const GuardedNest& nest, const NestPlan& nest_plan,
                                     PreprocessPlan& plan) const {
  for (const ExtentNeed& need : nest.needs) {
    const BufferPlan& needed = *plan.Find(need.buffer);
    if (needed.layout && need.dimension == needed.channel_dimension && nest_plan.lanes != 0) {
      const int64_t lanes = needed.layout->lanes;
      if (need.extent <= RoundUp(needed.extents[need.dimension], lanes)) continue;
    }
    if (needed.layout || needed.extents.empty() || facts_.Find(need.buffer)->has_address) {
      return StrCat("guarded, and '", need.buffer->name, "' can not be enlarged");
    }
  }
  return "";
}

bool GuardRemoval::IsOnlyStore(const GuardedNest& nest) {
  const Stmt store = nest.stores[0].store;
  const OnChipBuffer* target = facts_.Find(store.buffer());
  if (target == nullptr || target->other_writers || target->writers.size() != 1) return false;
  Analyzer::Scope scope(analyzer_);
  BindLoops(nest, analyzer_);
  for (Expr index : store.indices()) {
    const std::optional<ChannelIndex> channel = FindChannel(nest, index, analyzer_);
    if (!channel || facts_.Changes(channel->base, *target)) return false;
  }
  for (const Guard& guard : nest.guards) {
    if (!guard.is_inside && !OnElements(nest, guard)) return false;
  }
  return true;
}

// The conditions on the elements that the nest stores to.
std::vector<ElementGuard> GuardRemoval::ElementGuards(const GuardedNest& nest) {
  Analyzer::Scope scope(analyzer_);
  BindLoops(nest, analyzer_);
  std::vector<ElementGuard> all;
  for (const Guard& guard : nest.guards) {
    if (guard.is_inside) continue;
    if (auto forms = OnElements(nest, guard)) all.insert(all.end(), forms->begin(), forms->end());
  }
  return all;
}

// The guard as conditions on the elements that the nest stores to; none if it depends on anything
// else.
std::optional<std::vector<ElementGuard>> GuardRemoval::OnElements(const GuardedNest& nest,
                                                                  const Guard& guard) {
  const Stmt store = nest.stores.back().store;
  if (guard.forms.empty() || !guard.on_all) return std::nullopt;
  std::vector<Var>& dimensions = elements_[store.buffer()].dimensions;
  while (dimensions.size() < store.indices().size()) {
    dimensions.push_back(
        analyzer_.context().NewVar("index", store.indices()[dimensions.size()].type()));
  }
  std::vector<ElementGuard> result = guard.forms;
  for (Var var : guard.vars) {
    std::optional<size_t> dimension;
    ChannelIndex index;
    for (size_t d = 0; d < store.indices().size(); ++d) {
      if (!ir::UsesVar(store.indices()[d], var)) continue;
      const std::optional<ChannelIndex> here = FindChannel(nest, store.indices()[d], analyzer_);
      if (!here || here->var != var || dimension) return std::nullopt;
      dimension = d;
      index = *here;
    }
    if (!dimension) return std::nullopt;
    // var = index - base
    LinearForm value = LinearForm::Atom(dimensions[*dimension]);
    if (!value.Add(analyzer_.Form(index.base), -1)) return std::nullopt;
    for (ElementGuard& form : result) {
      const int64_t k = form.CoefficientOf(var);
      if (!form.AddTerm(var, -k) || UsesVar(form, var) || !form.Add(value, k)) {
        return std::nullopt;
      }
    }
  }
  const OnChipBuffer& buffer = *facts_.Find(store.buffer());
  for (const ElementGuard& form : result) {
    for (const LinearForm::Term& term : form.terms()) {
      if (facts_.Changes(term.atom, buffer)) return std::nullopt;
    }
  }
  return result;
}

}  // namespace polynao
