#include "compiler/passes/guarded_nest.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "base/text.h"
#include "compiler/arith/const_range.h"
#include "compiler/arith/logic.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/guard_bounds.h"

namespace polynao {
namespace {

using arith::Analyzer;
using arith::ConstRange;
using arith::LinearForm;
using ir::Buffer;
using ir::Context;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using ir::Var;

class Parser {
 public:
  Parser(Stmt pragma, const NestContext& context, std::string& why)
      : context_(context), analyzer_(context.analyzer), c_(context.analyzer.context()), why_(why) {
    nest_.pragma = pragma;
    nest_.family = context.family;
  }

  std::optional<GuardedNest> Parse() {
    if (!FindStores(nest_.pragma.body(), {})) return std::nullopt;
    const GuardedStore& last = nest_.stores.back();
    if (nest_.stores.size() == 1) nest_.shared_loops = last.loops.size();
    for (Stmt loop : last.loops) nest_.loops.push_back({loop, loop.min(), loop.extent()});
    if (!HasIndependentBounds()) return std::nullopt;
    if (nest_.IsPad() && !FindPadding()) return std::nullopt;
    JoinLoops();
    FindGuards();
    if (!NarrowLoops()) {
      why_ = "it has no iteration";
      return std::nullopt;
    }
    BindLoops(nest_, analyzer_);
    SettleGuards();
    FindNeeds();
    if (!nest_.IsComputing()) nest_.bounds = FindCopyBounds(nest_, analyzer_);
    if (nest_.IsComputing() && nest_.family->reduces) {
      nest_.bounds = FindFewerIterations(nest_, analyzer_);
    }
    return std::move(nest_);
  }

 private:
  // Descends to the stores. False, with the reason in why_, if the nest has another form.
  bool FindStores(Stmt s, GuardedStore path) {
    while (true) {
      if (s.Is(StmtKind::kFor)) {
        if (s.for_kind() == ir::ForKind::kThread) {
          why_ = StrCat("the thread loop '", s.var().name(), "' stands inside");
          return false;
        }
        path.loops.push_back(s);
        s = s.body();
      } else if (s.Is(StmtKind::kIf) && s.else_case().IsEmpty()) {
        arith::AppendConjuncts(s.cond(), path.conditions);
        s = s.then_case();
      } else {
        break;
      }
    }
    if (s.Is(StmtKind::kStore)) {
      path.store = s;
      nest_.stores.push_back(std::move(path));
      return true;
    }
    if (s.Is(StmtKind::kSeq) && s.children().size() == 2 && nest_.stores.empty() &&
        nest_.family != nullptr && nest_.family->reduces) {
      nest_.shared_loops = path.loops.size();
      if (!FindStores(s.children()[0], path) || !FindStores(s.children()[1], path)) {
        return false;
      }
      const GuardedStore& init = nest_.stores[0];
      if (nest_.stores.size() == 2 && init.loops.size() == nest_.shared_loops &&
          init.store.buffer() == nest_.stores[1].store.buffer() &&
          init.store.indices() == nest_.stores[1].store.indices()) {
        return true;
      }
    }
    why_ = "not a perfect nest over one store";
    return false;
  }

  // No loop's bounds may depend on another loop.
  bool HasIndependentBounds() {
    for (const GuardedLoop& a : nest_.loops) {
      for (const GuardedLoop& b : nest_.loops) {
        if (ir::UsesVar(a.min, b.loop.var()) || ir::UsesVar(a.extent, b.loop.var())) {
          why_ = StrCat("the bounds of '", a.loop.var().name(), "' depend on '",
                        b.loop.var().name(), "'");
          return false;
        }
      }
    }
    return true;
  }

  // select(inside, load, constant), in either order, nested; or a load or a constant alone.
  bool FindPadding() {
    Expr value = nest_.stores[0].store.value();
    while (value.Is(ExprKind::kSelect)) {
      const bool fills_else = value.operand(2).IsConst();
      const Expr fill = value.operand(fills_else ? 2 : 1);
      if (!fill.IsConst() || (nest_.fill_value && nest_.fill_value != fill)) break;
      nest_.fill_value = fill;
      const Expr condition = value.operand(0);
      for (Expr part : arith::Conjuncts(fills_else ? condition : arith::Negation(condition))) {
        nest_.guards.push_back({.condition = part, .forms = {}, .vars = {}, .is_inside = true});
      }
      value = value.operand(fills_else ? 1 : 2);
    }
    if (value.IsConst() && !nest_.fill_value) {
      // Nothing is inside.
      nest_.family = context_.fill_family;
      if (nest_.family != nullptr) return true;
    }
    nest_.inside_value = value;
    if (!value.Is(ExprKind::kLoad)) {
      why_ = "the value is no load, nor a select of a load or a constant";
      return false;
    }
    return true;
  }

  // Of padding whose inside is a diagonal of two loops over the same range, one loop is left:
  //   for (i) for (j) D[i, j] = select(i == j, F[i], 0)  -->  inside: for (i) D[i, i] = F[i]
  void JoinLoops() {
    for (size_t g = nest_.guards.size(); g-- > 0;) {
      const std::optional<std::pair<size_t, size_t>> equal = EqualLoops(nest_.guards[g]);
      if (!equal) continue;
      const Var stays = nest_.loops[equal->first].loop.var();
      const Var goes = nest_.loops[equal->second].loop.var();
      const ir::VarMap by = {{goes, stays}};
      nest_.guards.erase(nest_.guards.begin() + static_cast<ptrdiff_t>(g));
      for (Guard& guard : nest_.guards) guard.condition = ir::Substitute(guard.condition, by);
      GuardedStore& guarded = nest_.stores[0];
      std::vector<Expr> indices;
      for (Expr index : guarded.store.indices()) indices.push_back(ir::Substitute(index, by));
      nest_.inside_value = ir::Substitute(nest_.inside_value, by);
      guarded.store = c_.Store(guarded.store.buffer(), indices, nest_.inside_value);
      for (Expr& condition : guarded.conditions) condition = ir::Substitute(condition, by);
      const auto at = static_cast<ptrdiff_t>(equal->second);
      guarded.loops.erase(guarded.loops.begin() + at);
      nest_.loops.erase(nest_.loops.begin() + at);
      --nest_.shared_loops;
      nest_.is_diagonal = true;
    }
  }

  // The loops, the outer one first, that the guard asks to be equal, if they have the same range of several values.
  std::optional<std::pair<size_t, size_t>> EqualLoops(const Guard& guard) {
    if (!guard.is_inside || !guard.condition.Is(ExprKind::kEq)) return std::nullopt;
    const std::vector<LinearForm> forms = FormsOf(guard.condition);
    if (forms.empty() || forms[0].terms().size() != 2 || forms[0].constant() != 0) {
      return std::nullopt;
    }
    std::vector<size_t> loops;
    for (size_t k = 0; k < nest_.loops.size(); ++k) {
      const int64_t coefficient = forms[0].CoefficientOf(nest_.loops[k].loop.var());
      if (coefficient == 1 || coefficient == -1) loops.push_back(k);
    }
    if (loops.size() != 2) return std::nullopt;
    const GuardedLoop& a = nest_.loops[loops[0]];
    const GuardedLoop& b = nest_.loops[loops[1]];
    const bool is_diagonal =
        forms[0].CoefficientOf(a.loop.var()) + forms[0].CoefficientOf(b.loop.var()) == 0 &&
        a.min == b.min && a.extent == b.extent && a.extent.Is(ExprKind::kIntImm) &&
        a.extent.int_value() > 1;
    return is_diagonal ? std::optional(std::pair(loops[0], loops[1])) : std::nullopt;
  }

  void FindGuards() {
    for (const GuardedStore& guarded : nest_.stores) {
      for (Expr condition : guarded.conditions) {
        const auto known = std::find_if(
            nest_.guards.begin(), nest_.guards.end(),
            [&](const Guard& guard) { return guard.condition == condition && !guard.is_inside; });
        if (known != nest_.guards.end()) continue;
        Guard guard = {.condition = condition, .forms = {}, .vars = {}};
        for (const GuardedStore& other : nest_.stores) {
          guard.on_all = guard.on_all && std::find(other.conditions.begin(), other.conditions.end(),
                                                   condition) != other.conditions.end();
        }
        nest_.guards.push_back(std::move(guard));
      }
    }
  }

  // Forms that are all >= 0 if and only if the condition holds; none if it is not affine.
  std::vector<LinearForm> FormsOf(Expr condition) {
    if (!IsAffineComparison(condition)) return {};
    LinearForm difference = analyzer_.Form(condition.operand(1));
    if (!difference.Add(analyzer_.Form(condition.operand(0)), -1)) return {};
    if (condition.Is(ExprKind::kEq)) {
      LinearForm opposite = difference;
      if (!opposite.Scale(-1)) return {};
      return {difference, opposite};
    }
    if (condition.Is(ExprKind::kLt) && !difference.AddConstant(-1)) return {};
    return {difference};
  }

  static bool IsAffineComparison(Expr condition) {
    if (!condition.Is(ExprKind::kLt) && !condition.Is(ExprKind::kLe) &&
        !condition.Is(ExprKind::kEq)) {
      return false;
    }
    const Type type = condition.operand(0).type();
    return (type == Type::kI32 || type == Type::kI64) && !arith::CanTrap(condition);
  }

  // Turns guards that bound one loop by constants into its bounds. False if a loop becomes empty.
  bool NarrowLoops() {
    std::erase_if(nest_.guards, [&](const Guard& guard) {
      if (!guard.on_all || guard.is_inside) return false;
      const std::vector<LinearForm> forms = FormsOf(guard.condition);
      if (forms.empty()) return false;
      GuardedLoop* loop = nullptr;
      for (const LinearForm& form : forms) {
        if (form.terms().size() != 1) return false;
        for (GuardedLoop& l : nest_.loops) {
          if (form.IsConstant() || form.terms()[0].atom != l.loop.var()) continue;
          loop = &l;
        }
      }
      if (loop == nullptr || !loop->min.Is(ExprKind::kIntImm) ||
          !loop->extent.Is(ExprKind::kIntImm)) {
        return false;
      }
      int64_t first = loop->min.int_value();
      int64_t last = first + loop->extent.int_value() - 1;
      for (const LinearForm& form : forms) {
        const int64_t k = form.terms()[0].coefficient;
        if (k > 0) {
          first = std::max(first, -arith::FloorDiv(form.constant(), k));
        } else {
          last = std::min(last, arith::FloorDiv(form.constant(), -k));
        }
      }
      const Type type = loop->loop.var().type();
      loop->min = c_.Int(type, first);
      loop->extent = c_.Int(type, std::max<int64_t>(last - first + 1, 0));
      return true;
    });
    return std::none_of(nest_.loops.begin(), nest_.loops.end(),
                        [](const GuardedLoop& loop) { return loop.extent.IsInt(0); });
  }

  // Drops guards that always hold, and notes the forms and loops of the others. Needs the loops
  // bound.
  void SettleGuards() {
    std::erase_if(nest_.guards,
                  [&](const Guard& guard) { return analyzer_.CanProve(guard.condition); });
    for (Guard& guard : nest_.guards) {
      guard.forms = FormsOf(guard.condition);
      for (const GuardedLoop& loop : nest_.loops) {
        const bool in_form =
            guard.forms.empty()
                ? ir::UsesVar(guard.condition, loop.loop.var())
                : std::any_of(guard.forms.begin(), guard.forms.end(), [&](const LinearForm& form) {
                    return UsesVar(form, loop.loop.var());
                  });
        if (in_form) guard.vars.push_back(loop.loop.var());
      }
    }
  }

  // Notes which indices leave their buffers if no guard holds.
  void FindNeeds() {
    if (const Stmt store = nest_.stores[0].store; !store.indices().empty()) {
      const ConstRange range = analyzer_.Range(store.indices().back());
      nest_.used = range.IsBounded() ? range.max + 1 : arith::kInfinity;
    }
    const auto access = [&](Buffer buffer, absl::Span<const Expr> indices) {
      const bool is_allocated = context_.is_allocated(buffer);
      for (size_t d = 0; d < indices.size(); ++d) {
        const Expr extent = buffer->extents[d];
        const ConstRange range = analyzer_.Range(indices[d]);
        if (range.min >= 0 && extent.Is(ExprKind::kIntImm) && range.max < extent.int_value()) {
          continue;
        }
        const Type type = indices[d].type();
        const Expr bound = extent.Is(ExprKind::kIntImm) ? c_.Int(type, extent.int_value()) : extent;
        if (bound.type() == type && analyzer_.CanProve(indices[d] < bound) &&
            analyzer_.CanProve(c_.Int(type, 0) <= indices[d])) {
          continue;
        }
        if (range.min >= 0 && range.IsBounded() && is_allocated && extent.Is(ExprKind::kIntImm)) {
          nest_.needs.push_back({buffer, d, range.max + 1});
        } else {
          nest_.stays_inside = false;
        }
      }
    };
    for (const GuardedStore& guarded : nest_.stores) {
      access(guarded.store.buffer(), guarded.store.indices());
      ir::ForEachExpr(guarded.store.value(), [&](Expr e) {
        if (e.Is(ExprKind::kLoad)) access(Buffer(e.buffer()), e.operands());
        // An element that nobody stored may be 0, and the division by it would trap.
        if (!e.Is(ExprKind::kLoad) && arith::IsTrap(e)) nest_.stays_inside = false;
      });
    }
  }

  const NestContext& context_;
  Analyzer& analyzer_;
  Context& c_;
  std::string& why_;
  GuardedNest nest_;
};

}  // namespace

std::optional<GuardedNest> ParseGuardedNest(Stmt pragma, const NestContext& context,
                                            std::string& why) {
  return Parser(pragma, context, why).Parse();
}

void BindLoops(const GuardedNest& nest, Analyzer& analyzer) {
  for (const GuardedLoop& loop : nest.loops) {
    analyzer.BindLoop(loop.loop.var(), loop.min, loop.extent);
  }
}

const GuardedLoop* LoopOf(const GuardedNest& nest, Var var) {
  for (const GuardedLoop& loop : nest.loops) {
    if (loop.loop.var() == var) return &loop;
  }
  return nullptr;
}

std::optional<ChannelIndex> FindChannel(const GuardedNest& nest, Expr index, Analyzer& analyzer) {
  const LinearForm form = analyzer.Form(index);
  ChannelIndex channel;
  LinearForm rest = form;
  for (const GuardedLoop& loop : nest.loops) {
    const Var var = loop.loop.var();
    if (!UsesVar(form, var)) continue;
    if (channel.var || form.CoefficientOf(var) != 1) return std::nullopt;
    channel.var = var;
    if (!rest.AddTerm(var, -1) || UsesVar(rest, var)) return std::nullopt;
  }
  for (const LinearForm::Term& term : rest.terms()) {
    if (term.atom.type() != index.type()) return std::nullopt;
  }
  channel.base = SumExpr(analyzer.context(), index.type(), rest.terms(), rest.constant());
  return channel;
}

bool UsesVar(const LinearForm& form, Var var) {
  return std::any_of(form.terms().begin(), form.terms().end(),
                     [&](const LinearForm::Term& term) { return ir::UsesVar(term.atom, var); });
}

}  // namespace polynao
