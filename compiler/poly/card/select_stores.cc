#include "compiler/poly/card/select_stores.h"

#include <limits>
#include <optional>
#include <vector>

#include "compiler/arith/logic.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

bool LoadsFrom(Expr e, ir::Buffer buffer) {
  bool loads = false;
  ir::ForEachExpr(e, [&](Expr part) {
    loads = loads || (part.Is(ExprKind::kLoad) && ir::Buffer(part.buffer()) == buffer);
  });
  return loads;
}

// The stores of a branch, if it is nothing else.
std::optional<std::vector<Stmt>> StoresOf(Stmt branch) {
  if (branch.IsEmpty()) return std::vector<Stmt>();
  if (branch.Is(StmtKind::kStore)) return std::vector<Stmt>{branch};
  if (!branch.Is(StmtKind::kSeq)) return std::nullopt;
  std::vector<Stmt> stores;
  for (Stmt child : branch.children()) {
    if (!child.Is(StmtKind::kStore)) return std::nullopt;
    stores.push_back(child);
  }
  return stores;
}

// What the store stores if `condition` holds, and else what is there.
Stmt Selected(Stmt store, Expr condition) {
  ir::Context& c = store.context();
  const Expr own = c.Load(store.buffer(), store.indices()), value = store.value();
  const auto stored = [&](Expr e) { return c.Store(store.buffer(), store.indices(), e); };
  const ExprKind kind = value.kind();
  const bool is_update = kind == ExprKind::kAdd || kind == ExprKind::kMin || kind == ExprKind::kMax;
  for (int i = 0; is_update && i < 2; ++i) {
    const Expr other = value.operand(1 - i);
    if (value.operand(i) != own || LoadsFrom(other, store.buffer())) continue;
    const Expr taken = c.Select(condition, other, NeutralOf(kind, value.type(), c));
    return stored(i == 0 ? c.Binary(kind, own, taken) : c.Binary(kind, taken, own));
  }
  return stored(c.Select(condition, value, own));
}

class Selector : public ir::Mutator {
 public:
  using ir::Mutator::Mutate;
  Stmt Mutate(Stmt s) override {
    s = MutateChildren(s);
    if (!s.Is(StmtKind::kIf) || !HasLoads(s.cond())) return s;
    ir::Context& c = s.context();
    const auto then = StoresOf(s.then_case()), others = StoresOf(s.else_case());
    if (!then || !others) return s;
    // Conditions on loops say which elements exist.
    Expr data, loops;
    for (const Expr e : arith::Conjuncts(s.cond())) {
      Expr& part = HasLoads(e) ? data : loops;
      part = part ? ir::And(part, e) : e;
    }
    if (loops && !others->empty()) return s;
    // What is stored may not change the condition.
    for (const auto* stores : {&*then, &*others}) {
      for (Stmt store : *stores) {
        if (LoadsFrom(data, store.buffer())) return s;
      }
    }
    std::vector<Stmt> result;
    const bool is_pair = then->size() == 1 && others->size() == 1 &&
                         then->front().buffer() == others->front().buffer() &&
                         c.Load(then->front().buffer(), then->front().indices()) ==
                             c.Load(others->front().buffer(), others->front().indices());
    if (is_pair) {
      const Stmt store = then->front();
      return c.Store(store.buffer(), store.indices(),
                     c.Select(data, store.value(), others->front().value()));
    }
    for (Stmt store : *then) result.push_back(Selected(store, data));
    for (Stmt store : *others) result.push_back(Selected(store, ir::Not(data)));
    const Stmt stores = result.size() == 1 ? result[0] : c.Seq(result);
    return loops ? c.If(loops, stores) : stores;
  }
};

}  // namespace

Stmt WithSelectedStores(Stmt s) { return Selector().Mutate(s); }

Expr NeutralOf(ExprKind operation, ir::Type type, ir::Context& c) {
  if (operation == ExprKind::kAdd) return c.Const(type, 0);
  const bool is_min = operation == ExprKind::kMin;
  if (!ir::IsFloat(type)) {
    return c.Int(type, is_min ? ir::GreatestInt(type) : ir::LeastInt(type));
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return c.Float(type, is_min ? kInfinity : -kInfinity);
}

}  // namespace polynao::poly
