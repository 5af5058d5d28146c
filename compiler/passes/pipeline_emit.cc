#include "compiler/passes/pipeline_emit.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/visit.h"
#include "compiler/target/core_roles.h"

namespace polynao::pipelining {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

namespace {

// Whether evaluating `e` may stop the program: a division by what may be zero.
bool MayStop(Expr e) {
  bool stops = false;
  ir::ForEachExpr(e, [&](Expr x) {
    const bool divides = (x.Is(ExprKind::kDiv) || x.Is(ExprKind::kMod)) && ir::IsInt(x.type());
    stops = stops || (divides && (!x.operand(1).IsConst() || x.operand(1).IsInt(0)));
  });
  return stops;
}

// The statements of one stage, with the ifs, lets and inner loops around them.
class StageFilter {
 public:
  StageFilter(const Body& body, Stage stage) : body_(body), stage_(stage) {}

  // Visits units in the order in which BodyReader found them.
  Stmt Filter(Stmt s) {
    ir::Context& c = s.context();
    if (s.Is(StmtKind::kEvaluate) || IsThreadLoop(s)) {
      return body_.units[next_++].stage == stage_ ? s : c.Nop();
    }
    std::vector<Stmt> children;
    bool is_empty = true;
    for (Stmt child : s.children()) {
      children.push_back(Filter(child));
      is_empty = is_empty && children.back().IsEmpty();
    }
    const bool is_hoisted =
        s.Is(StmtKind::kAllocate) || (s.Is(StmtKind::kPragma) && s.name() == pragma::kDoubleBuffer);
    if (s.Is(StmtKind::kLet) && !MayStop(s.value()) && !ir::UsesVar(children[0], s.var())) {
      return children[0];
    }
    if (is_hoisted) return children[0];
    if (is_empty && !s.Is(StmtKind::kLet)) return c.Nop();
    if (s.Is(StmtKind::kIf) && children[0].IsEmpty()) return c.If(ir::Not(s.cond()), children[1]);
    return c.Rebuild(s, s.operands(), children);
  }

 private:
  const Body& body_;
  const Stage stage_;
  size_t next_ = 0;
};

class Emitter {
 public:
  Emitter(Stmt loop, const Body& body, const PipelinePlan& plan, const std::set<isa::Queue>& busy,
          const ControlInstructions& control)
      : loop_(loop), body_(body), plan_(plan), c_(loop.context()), control_(control) {
    for (Stage stage : plan.order) {
      stages_[Index(stage)] = StageFilter(body, stage).Filter(body.stmt);
    }
    Stmt& compute = stages_[Index(Stage::kCompute)];
    for (Buffer buffer : body.buffers) {
      if (plan.inside.contains(buffer)) compute = c_.Allocate(buffer, compute);
    }
    copies_.resize(plan.period);
    for (Buffer buffer : body.buffers) {
      if (plan.inside.contains(buffer)) continue;
      const int64_t copies = plan.copies.at(buffer);
      for (int64_t i = 0; i < copies; ++i) {
        const Buffer copy = copies == 1 ? buffer
                                        : c_.NewBuffer(StrCat(buffer->name, ".", i), buffer->type,
                                                       buffer->extents, buffer->scope);
        if (copies > 1) copies_[i][buffer] = copy;
        buffers_.push_back(copy);
      }
    }
    for (const Unit& unit : body.units) used_.insert(unit.queue);
    // A wait for a queue that the body does not use would hold up other work in it.
    waits_for_all_ = used_ == busy;
  }

  Stmt Emit() {
    const Expr min = Bound(loop_.min(), ".min");
    const Expr n = Bound(loop_.extent(), ".count");
    Stmt result = n.Is(ExprKind::kIntImm) ? Steps(min, n.int_value()) : Steps(min, n);
    for (size_t i = buffers_.size(); i-- > 0;) result = c_.Allocate(buffers_[i], result);
    for (size_t i = lets_.size(); i-- > 0;) {
      result = c_.LetStmt(lets_[i].first, lets_[i].second, result);
    }
    return result;
  }

 private:
  // A bound of the loop, evaluated once.
  Expr Bound(Expr e, std::string_view suffix) {
    if (e.IsConst() || e.Is(ExprKind::kVar)) return e;
    lets_.emplace_back(NewVar(suffix), e);
    return lets_.back().first;
  }

  ir::Var NewVar(std::string_view suffix) const {
    return c_.NewVar(StrCat(loop_.var().name(), suffix), loop_.var().type());
  }

  // ---- waits between steps

  // An instruction that has been issued and not yet waited for.
  struct Issued {
    const Unit* unit;
    int64_t iteration;  // modulo the period
  };

  // Whether the two access the same copy of a buffer and one writes it.
  bool Conflict(const Issued& a, const Issued& b) const {
    bool found = false;
    ForEachConflict(*a.unit, *b.unit, [&](Buffer buffer) {
      const auto copies = plan_.copies.find(buffer);
      found = found || copies == plan_.copies.end() || copies->second == 1 ||
              a.iteration == b.iteration;
    });
    return found;
  }

  void AddWait(const isa::Instruction& wait, std::vector<Stmt>& out) {
    out.push_back(CallOf(c_, wait));
    std::erase_if(issued_, [&](const Issued& issued) {
      return std::find(wait.drains.begin(), wait.drains.end(), issued.unit->queue) !=
             wait.drains.end();
    });
  }

  // Waits before the instructions `next`: for the queues with an instruction that conflicts with one of
  // another queue, or for all if `all`. What else they depend on is for sync to find.
  void AddWaits(const std::vector<Issued>& next, bool all, std::vector<Stmt>& out) {
    if (body_.of_cluster) {
      AddWait(*control_.cluster_barrier, out);
      return;
    }
    std::set<isa::Queue> needed;
    std::set<isa::Queue> pending;
    for (const Issued& before : issued_) {
      pending.insert(before.unit->queue);
      for (const Issued& behind : next) {
        if (behind.unit->queue != before.unit->queue && Conflict(before, behind)) {
          needed.insert(before.unit->queue);
        }
      }
    }
    if (all) needed = used_;
    // One wait for all costs no more than one for a single queue, unless others still work.
    if (waits_for_all_ && !needed.empty() && (needed.size() > 1 || needed == pending)) {
      AddWait(*control_.wait_for_all, out);
      return;
    }
    for (isa::Queue queue : needed) AddWait(*control_.wait_for[static_cast<size_t>(queue)], out);
  }

  // ---- steps

  static Expr Plus(Expr e, int64_t number) { return number == 0 ? e : e + number; }

  // Adds step `s`, counted from iteration `at`, which is a multiple of the period after the first one.
  // The step has the stages of all iterations at + i that exist: exists(i) is a condition, or constant.
  // `is_steady`: the step repeats, so that what is issued before it is not known.
  template <typename Exists>
  void AddStep(Expr at, int64_t s, const Exists& exists, std::vector<Stmt>& out,
               bool is_steady = false) {
    // The oldest iteration of the step ends last: without it there is no step.
    int64_t oldest = s - plan_.first;
    std::vector<Stmt> parts;
    std::vector<Issued> issued;
    for (Stage stage : plan_.order) {
      const int64_t i = s - plan_.offset[Index(stage)];
      if (i >= 0) oldest = std::min(oldest, i);
    }
    for (Stage stage : plan_.order) {
      const int64_t i = s - plan_.offset[Index(stage)];
      if (i < 0) continue;
      const Expr condition = exists(i);
      if (condition.IsInt(0)) continue;
      const Stmt part = ir::CloneWithFreshBindings(ir::Substitute(
          stages_[Index(stage)], {{loop_.var(), Plus(at, i)}}, copies_[i % plan_.period]));
      parts.push_back(condition.IsInt(1) || i == oldest ? part : c_.If(condition, part));
      for (const Unit& unit : body_.units) {
        if (unit.stage == stage) issued.push_back({&unit, i % plan_.period});
      }
    }
    std::vector<Stmt> step;
    // Nothing is pending before the first one.
    if (s != plan_.first) AddWaits(issued, is_steady, step);
    step.insert(step.end(), parts.begin(), parts.end());
    issued_.insert(issued_.end(), issued.begin(), issued.end());
    const Expr condition = exists(oldest);
    if (condition.IsInt(1)) {
      out.insert(out.end(), step.begin(), step.end());
    } else {
      out.push_back(c_.If(condition, c_.Seq(step)));
    }
  }

  // The loop over groups of steady steps, those with all stages.
  Stmt Steady(Expr min, Expr groups) {
    const std::vector<Issued> before = issued_;
    const ir::Var group = NewVar("");
    std::vector<Stmt> body;
    for (int64_t k = 0; k < plan_.period; ++k) {
      AddStep(
          min + group * plan_.period, plan_.last + k, [&](int64_t) { return c_.Bool(true); }, body,
          true);
    }
    issued_.insert(issued_.end(), before.begin(), before.end());  // there may be no group
    return c_.For(group, c_.Int(group.type(), 0), groups, c_.Seq(body));
  }

  Stmt Steps(Expr min, int64_t n) {
    const auto exists = [&](int64_t i) { return c_.Bool(i < n); };
    std::vector<Stmt> out;
    int64_t s = plan_.first;
    for (; s < plan_.last; ++s) AddStep(min, s, exists, out);
    // A loop of one group would be no shorter than the group.
    const int64_t steady = n - (plan_.last - plan_.first);
    if (steady >= 2 * plan_.period) {
      const int64_t groups = steady / plan_.period;
      out.push_back(Steady(min, c_.Int(min.type(), groups)));
      s += groups * plan_.period;
    }
    for (; s < n + plan_.last; ++s) AddStep(min, s, exists, out);
    return c_.Seq(out);
  }

  // The same for a number of iterations that is known only at run time: the steps outside the steady
  // loop stand under conditions.
  Stmt Steps(Expr min, Expr n) {
    const int64_t ramp = plan_.last - plan_.first;
    std::vector<Stmt> out;
    for (int64_t s = plan_.first; s < plan_.last; ++s) {
      AddStep(
          min, s, [&](int64_t i) { return i == 0 ? c_.Bool(true) : c_.Int(n.type(), i) < n; }, out);
    }
    const ir::Var groups = NewVar(".groups");
    const ir::Var done = NewVar(".done");
    std::vector<Stmt> rest;
    for (int64_t k = 0; k < ramp + plan_.period - 1; ++k) {
      AddStep(min + done, plan_.last + k, [&](int64_t i) { return Plus(done, i) < n; }, rest);
    }
    const Expr zero = c_.Int(n.type(), 0);
    // Unsigned numbers are clamped before the difference, since they have no value below 0.
    const Expr steady = ir::IsUnsigned(n.type())
                            ? (ir::Max(n, c_.Int(n.type(), ramp)) - ramp) / plan_.period
                            : ir::Max((n - ramp) / plan_.period, zero);
    out.push_back(c_.LetStmt(
        groups, steady,
        c_.Seq({Steady(min, groups), c_.LetStmt(done, groups * plan_.period, c_.Seq(rest))})));
    return c_.If(zero < n, c_.Seq(out));
  }

  const Stmt loop_;
  const Body& body_;
  const PipelinePlan& plan_;
  ir::Context& c_;
  const ControlInstructions& control_;
  std::array<Stmt, kStageCount> stages_;
  std::vector<ir::BufferMap> copies_;
  std::vector<Buffer> buffers_;
  std::set<isa::Queue> used_;   // by the body
  bool waits_for_all_ = false;  // the function uses no other queue
  std::vector<Issued> issued_;  // since the last wait for the queue
  std::vector<std::pair<ir::Var, Expr>> lets_;
};

}  // namespace

Stmt Emit(Stmt loop, const Body& body, const PipelinePlan& plan, const std::set<isa::Queue>& busy,
          const ControlInstructions& control) {
  return Emitter(loop, body, plan, busy, control).Emit();
}

}  // namespace polynao::pipelining
