#include "compiler/passes/nest_builder.h"

#include <algorithm>
#include <utility>

#include "base/math.h"
#include "base/text.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/text.h"
#include "compiler/passes/channel_layout.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using ir::Var;

// A sum of indices; of mixed types it is i64.
Expr Sum(Expr a, Expr b) {
  if (a.IsInt(0)) return b;
  if (a.type() == b.type()) return a + b;
  ir::Context& c = a.context();
  return c.Cast(Type::kI64, a) + c.Cast(Type::kI64, b);
}

// The address of an instruction must be in its buffer even if the instruction moves nothing, so the
// loops that become copies get this condition around them where they may be empty.
Expr IsNotEmpty(Expr extent) { return ConstantLike(extent, 0) < extent; }

}  // namespace

std::vector<Expr> LaidOutIndices(const BufferPlan& buffer, absl::Span<const Expr> indices,
                                 Expr lane, Expr group) {
  Expr set, rest;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (d == buffer.channel_dimension) continue;
    Expr& index = d < buffer.leading ? set : rest;
    index = index ? Sum(index * buffer.extents[d], indices[d]) : indices[d];
  }
  if (set) {
    const int64_t groups = CeilDiv(buffer.extents[buffer.channel_dimension], buffer.layout->lanes);
    group = Sum(groups == 1 ? set : set * groups, group);
  }
  return {lane, rest ? Sum(group * buffer.pitch, rest) : group * buffer.pitch};
}

// Replaces the loop over channels in a nest's accesses, and the accesses of weights that are laid
// out.
class NestBuilder::AccessRewriter : public ir::Mutator {
 public:
  AccessRewriter(const NestBuilder& builder, const Task& task) : builder_(builder), task_(task) {}

  ir::VarMap vars;   // values for loop variables
  Expr new_channel;  // the index of the channel where the nest had no loop over it; or null
  Expr lane;         // the indices in laid out buffers; null: accesses of those stay
  Expr group;

  Expr Mutate(Expr e) override {
    if (e.Is(ExprKind::kVar)) {
      auto it = vars.find(e);
      return it == vars.end() ? e : it->second;
    }
    if (!e.Is(ExprKind::kLoad)) return Mutator::Mutate(e);
    const Buffer buffer(e.buffer());
    return builder_.c_.Load(Replacement(buffer), Indices(buffer, e.operands()));
  }
  using Mutator::Mutate;

  Stmt Store(Stmt s, Expr value) {
    return builder_.c_.Store(Replacement(s.buffer()), Indices(s.buffer(), s.indices()),
                             Mutate(value));
  }

 private:
  // Only laid out buffers are replaced here; the others are when the whole function is rewritten.
  Buffer Replacement(Buffer buffer) const {
    const BufferPlan* plan = builder_.plan_.Replaced(buffer);
    return lane && plan != nullptr && plan->layout ? plan->replacement : buffer;
  }

  std::vector<Expr> Indices(Buffer buffer, absl::Span<const Expr> old) {
    std::vector<Expr> indices;
    for (Expr index : old) indices.push_back(Mutate(index));
    const BufferPlan* plan = builder_.plan_.Replaced(buffer);
    if (plan == nullptr) return indices;
    if (plan->layout) return lane ? LaidOutIndices(*plan, indices, lane, group) : indices;
    const bool has_channels =
        task_.plan.lanes == 0 || buffer == task_.nest.stores.back().store.buffer();
    if (new_channel && has_channels && Has1Channel(buffer)) indices.back() = new_channel;
    return indices;
  }

  const NestBuilder& builder_;
  const Task& task_;
};

Stmt NestBuilder::Build(size_t n) {
  const Task task = {.nest = facts_.nests[n], .plan = plan_.nests[n]};
  return task.nest.IsComputing() ? BuildComputing(task) : BuildCopy(task);
}

Stmt NestBuilder::FillAll(Buffer buffer, Expr value) {
  const BufferPlan* plan = plan_.Replaced(buffer);
  const absl::Span<const Expr> extents = (plan != nullptr ? plan->replacement : buffer)->extents;
  std::vector<Expr> vars;
  for (Expr extent : extents) vars.push_back(c_.NewVar("f", extent.type()));
  Stmt body = c_.Store(buffer, vars, value);
  for (size_t d = extents.size(); d-- > 0;) {
    body = c_.For(vars[d], c_.Int(vars[d].type(), 0), extents[d], body);
  }
  return c_.Pragma("fill", {}, body);
}

Stmt NestBuilder::Around(absl::Span<const GuardedLoop> loops, Stmt body) {
  for (size_t k = loops.size(); k-- > 0;) {
    const Stmt loop = loops[k].loop;
    body = c_.For(loop.var(), loops[k].min, loops[k].extent, body, loop.for_kind(), loop.name());
  }
  return body;
}

Stmt NestBuilder::NewLoop(Var var, int64_t extent, Stmt body) {
  return c_.For(var, c_.Int(var.type(), 0), c_.Int(var.type(), extent), body);
}

// The conjunction of the guards that stay around `store`; null if none does.
Expr NestBuilder::RemainingGuards(const Task& task, const GuardedStore& store,
                                  AccessRewriter& rewriter) {
  Expr all;
  for (size_t g = 0; g < task.nest.guards.size(); ++g) {
    const Guard& guard = task.nest.guards[g];
    const bool concerns =
        guard.is_inside || std::find(store.conditions.begin(), store.conditions.end(),
                                     guard.condition) != store.conditions.end();
    if (!concerns || !task.Stays(g)) continue;
    const Expr condition = rewriter.Mutate(guard.condition);
    all = all ? ir::And(all, condition) : condition;
  }
  return all;
}

Stmt NestBuilder::Guarded(const Task& task, const GuardedStore& store, Expr value,
                          AccessRewriter& rewriter) {
  const Stmt rewritten = rewriter.Store(store.store, value);
  const Expr condition = RemainingGuards(task, store, rewriter);
  return condition ? c_.If(condition, rewritten) : rewritten;
}

// ---- nests that compute

// Whether every condition of the program stays around its store.
bool NestBuilder::KeepsConditions(const Task& task) const {
  for (const GuardedStore& store : task.nest.stores) {
    for (Expr condition : store.conditions) {
      bool stays = false;
      for (size_t g = 0; g < task.nest.guards.size(); ++g) {
        stays = stays || (task.nest.guards[g].condition == condition && task.Stays(g));
      }
      if (!stays) return false;
    }
  }
  return true;
}

Stmt NestBuilder::BuildComputing(const Task& task) {
  const GuardedNest& nest = task.nest;
  const NestPlan& plan = task.plan;
  const bool is_all_padding = nest.pragma.name() == pragma::kPad;
  if (plan.channels == 0 && !is_all_padding && KeepsConditions(task)) return nest.pragma;
  const Stmt first = nest.stores[0].store;
  const Type type = plan.channel              ? plan.channel.type()
                    : first.indices().empty() ? Type::kI32
                                              : first.indices().back().type();
  const Var c = c_.NewVar("c", type);
  const Var l = c_.NewVar("l", type);
  AccessRewriter rewriter(*this, task);
  if (plan.lanes != 0) {
    const Expr channel = c * plan.lanes + l;
    if (plan.channel) {
      rewriter.vars[plan.channel] = channel;
    } else {
      rewriter.new_channel = channel;
    }
    rewriter.lane = l;
    rewriter.group = Sum(plan.weights_base, c);
  } else if (plan.channels != 0 && !plan.channel) {
    rewriter.new_channel = c;
  }
  const absl::Span<const GuardedLoop> loops(plan.loops);
  std::vector<Stmt> parts;
  for (const GuardedStore& store : nest.stores) {
    const Stmt part = Guarded(task, store, store.store.value(), rewriter);
    const bool is_last = parts.size() + 1 == nest.stores.size();
    parts.push_back(is_last ? Around(loops.subspan(nest.shared_loops), part) : part);
  }
  Stmt body = c_.Seq(parts);
  const auto channels = [&](Stmt s) {
    if (plan.lanes != 0) return NewLoop(c, plan.groups, NewLoop(l, plan.lanes, s));
    return NewLoop(plan.channel ? plan.channel : c, plan.channels, s);
  };
  if (plan.channels != 0 && !plan.channel) body = channels(body);
  for (size_t k = nest.shared_loops; k-- > 0;) {
    const bool is_channel = plan.channels != 0 && loops[k].loop.var() == plan.channel;
    body = is_channel ? channels(body) : Around(loops.subspan(k, 1), body);
  }
  std::string what;
  const auto dropped = std::count(plan.guards.begin(), plan.guards.end(), GuardFate::kDropped);
  if (dropped != 0) what = StrCat("guards dropped: ", dropped);
  if (plan.channels != 0) {
    StrAppend(&what, what.empty() ? "" : ", ", plan.channels, " channels");
    if (plan.lanes != 0) StrAppend(&what, " in groups of ", plan.lanes);
  }
  const bool is_shorter = !loops.empty() && loops[0].extent != nest.loops[0].extent;
  if (is_shorter) StrAppend(&what, ", ", ir::Print(loops[0].extent), " times");
  if (what.empty()) what = is_all_padding ? "fill" : "loops narrowed";
  ReportDecision(decisions_, nest.pragma.body(), what);
  if (is_all_padding) return c_.Pragma("fill", {}, body);
  const Stmt result = c_.Rebuild(nest.pragma, nest.pragma.operands(), {body});
  return is_shorter ? c_.Pragma(pragma::kNoPartition, {}, result) : result;
}

// ---- copies and padding

bool NestBuilder::IsUnchangedCopy(const Task& task, const BufferPlan* target) const {
  if (target != nullptr && target->layout) return false;
  for (const GuardedLoop& loop : task.plan.loops) {
    if (loop.min != loop.loop.min() || loop.extent != loop.loop.extent()) return false;
  }
  for (size_t g = 0; g < task.nest.guards.size(); ++g) {
    if (!task.Stays(g)) return false;
  }
  return true;
}

// Sets `fill` to the fill of what is outside, if the nest needs one of its own. Returns why the
// nest stays.
std::optional<std::string> NestBuilder::FillPadding(const Task& task, Stmt& fill) {
  const GuardedNest& nest = task.nest;
  const Buffer buffer = nest.stores[0].store.buffer();
  if (facts_.before_loops.contains(buffer)) return std::nullopt;
  const auto window = facts_.windows.find(buffer);
  if (window != facts_.windows.end() && window->second.fill_value) {
    if (facts_.IsFilled(window->second, buffer)) return std::nullopt;
    return "the window is not padded alike everywhere";
  }
  const Expr some_outside = nest.bounds.some_outside;
  if (!nest.fill_value || some_outside.IsInt(0)) return std::nullopt;
  if (!guards_.IsOnlyStore(nest)) {
    return "not the only store to a buffer on chip, or not always of all of it";
  }
  fill = FillAll(buffer, nest.fill_value);
  if (!some_outside.IsInt(1)) fill = c_.If(some_outside, fill);
  return std::nullopt;
}

Stmt NestBuilder::BuildCopy(const Task& task) {
  const GuardedNest& nest = task.nest;
  const absl::Span<const GuardedLoop> loops(task.plan.loops);
  auto at = plan_.buffers.find(nest.stores[0].store.buffer());
  const BufferPlan* target = at == plan_.buffers.end() ? nullptr : &at->second;
  Stmt fill;
  if (nest.IsPad()) {
    if (const std::optional<std::string> why = FillPadding(task, fill)) {
      ReportDecision(decisions_, nest.pragma.body(), StrCat("kept: ", *why));
      return nest.pragma;
    }
  } else if (IsUnchangedCopy(task, target)) {
    return nest.pragma;
  }
  Stmt copy = c_.Seq(Copies(task, target));
  std::string bounds;
  for (const GuardedLoop& loop : loops) {
    if (loop.min.IsConst() && loop.extent.IsConst()) continue;
    StrAppend(&bounds, ", ", loop.loop.var().name(), " from ", ir::Print(loop.min), ", ",
              ir::Print(loop.extent), " times");
  }
  Expr outside;
  const auto require = [&](Expr condition) {
    outside = outside ? ir::And(outside, condition) : condition;
  };
  bool has_guards = false;
  for (size_t g = 0; g < nest.guards.size(); ++g) {
    has_guards = has_guards || task.Stays(g);
    if (task.plan.guards[g] == GuardFate::kOutside) require(nest.bounds.outside[g]);
  }
  for (size_t k = 0; k < loops.size(); ++k) {
    if (nest.bounds.may_be_empty[k]) require(IsNotEmpty(loops[k].extent));
  }
  if (outside) copy = c_.If(outside, copy);
  std::string what = nest.IsPad() ? "memcpy of the part inside" : "copy";
  const bool may_fill = fill && fill.Is(StmtKind::kIf);
  if (fill) {
    what = StrCat("fill", may_fill ? StrCat(" if ", ir::Print(fill.cond())) : "", " and ", what);
  }
  if (target != nullptr && target->layout) {
    StrAppend(&what, " to ", target->layout->lanes, " banks, pitch ", target->pitch);
  }
  ReportDecision(decisions_, nest.pragma.body(), StrCat(what, bounds));
  const Stmt result = fill ? c_.Seq({fill, copy}) : copy;
  // loop_partition would split the loops around along bounds and conditions that depend on them.
  const bool depends = !bounds.empty() || outside || may_fill;
  return depends && !has_guards ? c_.Pragma(pragma::kNoPartition, {}, result) : result;
}

// The copy; to a laid out buffer it is one nest for full groups of channels and one for the rest.
std::vector<Stmt> NestBuilder::Copies(const Task& task, const BufferPlan* target) {
  const GuardedNest& nest = task.nest;
  const absl::Span<const GuardedLoop> loops(task.plan.loops);
  const GuardedStore& store = nest.stores[0];
  const Expr value = nest.IsPad() ? nest.inside_value : store.store.value();
  AccessRewriter rewriter(*this, task);
  const auto mark = [&](Stmt body) {
    return nest.IsPad() ? c_.Pragma("memcpy", {}, body)
                        : c_.Rebuild(nest.pragma, nest.pragma.operands(), {body});
  };
  const auto copy_around = [&](absl::Span<const GuardedLoop> inner) {
    return Around(inner, Guarded(task, store, value, rewriter));
  };
  size_t at = loops.size();  // the loop over channels
  std::optional<ChannelIndex> channel;
  if (target != nullptr && target->layout) {
    channel = FindChannel(nest, store.store.indices()[target->channel_dimension], analyzer_);
    for (size_t k = 0; channel && channel->var && k < loops.size(); ++k) {
      if (loops[k].loop.var() == channel->var) at = k;
    }
  }
  const int64_t lanes = at < loops.size() ? target->layout->lanes : 1;
  // Bounds that depend on other loops of the nest are no conditions around it.
  bool depends = false;
  for (const GuardedLoop& loop : loops) {
    depends = depends || (at < loops.size() && ir::UsesVar(loops[at].extent, loop.loop.var()));
  }
  if (at == loops.size() || depends || !loops[at].min.IsInt(0) ||
      !nest.loops[at].extent.Is(ExprKind::kIntImm) ||
      !analyzer_.CanProve(ir::Eq(channel->base % lanes, ConstantLike(channel->base, 0)))) {
    return {mark(copy_around(loops))};
  }
  const Var var = channel->var;
  const Expr group = analyzer_.Simplify(channel->base / lanes);
  if (nest.loops[at].extent.int_value() <= lanes) {
    rewriter.lane = var;
    rewriter.group = group;
    return {mark(copy_around(loops))};
  }
  const Expr zero = c_.Int(var.type(), 0);
  const Expr count = analyzer_.Simplify(ir::Max(loops[at].extent, zero));
  const Expr full = analyzer_.Simplify(count / lanes);
  const Expr left = analyzer_.Simplify(count % lanes);
  std::vector<Stmt> copies;
  if (!full.IsInt(0)) {
    const Var c = c_.NewVar("c", var.type());
    const Var l = c_.NewVar("l", var.type());
    rewriter.vars[var] = c * lanes + l;
    rewriter.lane = l;
    rewriter.group = Sum(group, c);
    Stmt body = copy_around(loops.subspan(at + 1));
    body = c_.For(c, zero, full, c_.For(l, zero, c_.Int(var.type(), lanes), body));
    body = mark(Around(loops.subspan(0, at), body));
    copies.push_back(full.IsConst() ? body : c_.If(IsNotEmpty(full), body));
  }
  if (!left.IsInt(0)) {
    const Var l = c_.NewVar("l", var.type());
    rewriter.vars[var] = full * lanes + l;
    rewriter.lane = l;
    rewriter.group = Sum(group, full);
    Stmt body = copy_around(loops.subspan(at + 1));
    body = c_.For(l, zero, left, body);
    body = mark(Around(loops.subspan(0, at), body));
    if (!left.IsConst()) body = c_.If(IsNotEmpty(left), body);
    copies.push_back(copies.empty() ? body : ir::CloneWithFreshBindings(body));
  }
  return copies;
}

}  // namespace polynao
