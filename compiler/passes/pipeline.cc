#include "compiler/passes/pipeline.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/pass.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

constexpr std::string_view kDoubleBuffer = "double_buffer";
constexpr std::string_view kSlidingWindow = "sliding_window";
constexpr int kDefaultCopies = 2;
constexpr int kMostCopies = 3;

enum class Stage : uint8_t { kPrepare, kLoad, kCompute, kStore };
constexpr std::array<Stage, 4> kStages = {Stage::kPrepare, Stage::kLoad, Stage::kCompute,
                                          Stage::kStore};
constexpr std::array<std::string_view, 4> kStageNames = {"prepare", "load", "compute", "store"};
constexpr size_t Index(Stage stage) { return static_cast<size_t>(stage); }

std::string FirstLine(Stmt s) {
  const std::string text = ir::Print(s);
  return text.substr(0, text.find('\n'));
}

bool IsThreadLoop(Stmt s) { return s.Is(StmtKind::kFor) && s.for_kind() == ir::ForKind::kThread; }

bool ReadsMemory(Expr e) {
  bool reads = false;
  ir::ForEachExpr(e, [&](Expr x) { reads = reads || x.Is(ExprKind::kLoad); });
  return reads;
}

// Whether evaluating `e` may stop the program: a division by what may be zero.
bool MayStop(Expr e) {
  bool stops = false;
  ir::ForEachExpr(e, [&](Expr x) {
    const bool divides = (x.Is(ExprKind::kDiv) || x.Is(ExprKind::kMod)) && ir::IsInt(x.type());
    stops = stops || (divides && (!x.operand(1).IsConst() || x.operand(1).IsInt(0)));
  });
  return stops;
}

// What the stages are made of: a queued instruction, or in a body of a cluster a loop over its
// cores, which then stands for the compute queue.
struct Unit {
  std::string name;
  bool is_nest = false;
  isa::Queue queue = isa::Queue::kCompute;
  Stage stage = Stage::kCompute;
  int inner_loop = 0;  // number of the outermost loop of the body around it; 0: none
  std::vector<std::pair<Stmt, bool>> branches;  // ifs around it, and whether it is in then
  std::vector<Buffer> reads;
  std::vector<Buffer> writes;
};

// Whether only one of the two runs in an iteration.
bool AreAlternatives(const Unit& a, const Unit& b) {
  for (const auto& [branch, is_then] : a.branches) {
    const auto other = std::find(b.branches.begin(), b.branches.end(), std::pair(branch, !is_then));
    if (other != b.branches.end()) return true;
  }
  return false;
}

// A loop body taken apart.
struct Body {
  Stmt stmt;
  std::vector<Buffer> buffers;  // allocated in it, outermost first
  std::vector<Unit> units;      // in program order
  int copies = kDefaultCopies;  // at most
  bool of_cluster = false;
};

// Calls visit(buffer) for what both touch and one writes.
template <typename Visit>
void ForEachConflict(const Unit& a, const Unit& b, const Visit& visit) {
  const auto contains = [](const std::vector<Buffer>& buffers, Buffer x) {
    return std::find(buffers.begin(), buffers.end(), x) != buffers.end();
  };
  for (Buffer x : a.writes) {
    if (contains(b.reads, x) || contains(b.writes, x)) visit(x);
  }
  for (Buffer x : a.reads) {
    if (contains(b.writes, x)) visit(x);
  }
}

// Takes a body apart, or finds out why that is not possible.
class BodyReader {
 public:
  BodyReader(const Target& target, std::string& reason) : target_(target), reason_(reason) {}

  std::optional<Body> Read(Stmt s) {
    body_.stmt = s;
    if (!Visit(s, 0)) return std::nullopt;
    for (const Unit& unit : body_.units) {
      if (body_.of_cluster && unit.queue == isa::Queue::kCompute && !unit.is_nest) {
        reason_ = StrCat(unit.name, " is no work for a memory core");
        return std::nullopt;
      }
    }
    MarkPrepare();
    return std::move(body_);
  }

 private:
  bool Fail(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  bool Visit(Stmt s, int inner_loop) {
    for (Expr e : s.operands()) {
      if (ReadsMemory(e) && !IsThreadLoop(s)) {
        return Fail(StrCat("it reads memory: ", FirstLine(s)));
      }
    }
    switch (s.kind()) {
      case StmtKind::kSeq:
      case StmtKind::kLet:
        return VisitChildren(s, inner_loop);
      case StmtKind::kIf: {
        branches_.emplace_back(s, true);
        const bool then_case = Visit(s.then_case(), inner_loop);
        branches_.back().second = false;
        const bool both = then_case && Visit(s.else_case(), inner_loop);
        branches_.pop_back();
        return both;
      }
      case StmtKind::kPragma:
        if (s.name() == kDoubleBuffer && !s.operands().empty()) {
          const Expr copies = s.operands()[0];
          if (!copies.IsInt(2) && !copies.IsInt(3)) {
            return Fail(StrCat("expected 2 or 3 copies, found ", ir::Print(copies)));
          }
          body_.copies = std::max(body_.copies, static_cast<int>(copies.int_value()));
        }
        return VisitChildren(s, inner_loop);
      case StmtKind::kAllocate:
        if (!IsOnChip(s.buffer()->scope) || !IsConstantSize(s.buffer())) {
          return Fail(StrCat("'", s.buffer()->name, "' is not on chip or not of constant size"));
        }
        body_.buffers.push_back(s.buffer());
        own_.insert(s.buffer());
        return VisitChildren(s, inner_loop);
      case StmtKind::kFor:
        if (IsThreadLoop(s)) return VisitNest(s, inner_loop);
        return VisitChildren(s, inner_loop != 0 ? inner_loop : ++loops_);
      case StmtKind::kEvaluate:
        return VisitCall(s, inner_loop);
      case StmtKind::kStore:
        return Fail(StrCat("no queued instruction: ", FirstLine(s)));
    }
    POLYNAO_UNREACHABLE(static_cast<int>(s.kind()));
  }

  bool VisitChildren(Stmt s, int inner_loop) {
    for (Stmt child : s.children()) {
      if (!Visit(child, inner_loop)) return false;
    }
    return true;
  }

  static bool IsConstantSize(Buffer buffer) {
    return std::all_of(buffer->extents.begin(), buffer->extents.end(),
                       [](Expr extent) { return extent.Is(ExprKind::kIntImm); });
  }

  const isa::Instruction* Find(Stmt call) const {
    return target_.instructions->Find(call.value().name());
  }

  static void AddOperands(const isa::Instruction& instruction, Stmt call, Unit& unit) {
    for (const isa::Operand& operand : instruction.operands) {
      if (operand.kind != isa::OperandKind::kAddress) continue;
      const Buffer buffer(call.value().operand(operand.param).buffer());
      if (operand.is_read) unit.reads.push_back(buffer);
      if (operand.is_written) unit.writes.push_back(buffer);
    }
  }

  bool VisitCall(Stmt call, int inner_loop) {
    const isa::Instruction* instruction = Find(call);
    if (instruction == nullptr || instruction->waits || instruction->queue == isa::Queue::kNone) {
      return Fail(StrCat("no queued instruction: ", FirstLine(call)));
    }
    Unit unit;
    unit.name = std::string(call.value().name());
    unit.queue = instruction->queue;
    unit.inner_loop = inner_loop;
    unit.branches = branches_;
    AddOperands(*instruction, call, unit);
    if (unit.queue != isa::Queue::kCompute) {
      const auto is_outside = [&](Buffer buffer) {
        return (buffer->scope == "gmem" || buffer->scope == "smem") && !own_.contains(buffer);
      };
      const bool loads = std::any_of(unit.reads.begin(), unit.reads.end(), is_outside);
      const bool stores = std::any_of(unit.writes.begin(), unit.writes.end(), is_outside);
      if (loads == stores) {
        return Fail(StrCat("neither load nor store of the body's buffers: ", FirstLine(call)));
      }
      unit.stage = loads ? Stage::kLoad : Stage::kStore;
    }
    body_.units.push_back(std::move(unit));
    return true;
  }

  // A loop over cores: what it touches outside its own allocations.
  bool VisitNest(Stmt nest, int inner_loop) {
    if (nest.name() != "tid") return Fail(StrCat("no queued instruction: ", FirstLine(nest)));
    body_.of_cluster = true;
    Unit unit;
    unit.name = "the loop over tid";
    unit.is_nest = true;
    unit.inner_loop = inner_loop;
    unit.branches = branches_;
    absl::flat_hash_set<Buffer> inside;
    ir::ForEachStmt(nest, [&](Stmt s) {
      if (s.Is(StmtKind::kAllocate)) inside.insert(s.buffer());
      if (s.Is(StmtKind::kStore)) unit.writes.push_back(s.buffer());
      if (!s.Is(StmtKind::kEvaluate)) return true;
      if (const isa::Instruction* instruction = Find(s)) AddOperands(*instruction, s, unit);
      return true;
    });
    ir::ForEachExprIn(nest, [&](Expr e) {
      if (e.Is(ExprKind::kLoad)) unit.reads.push_back(Buffer(e.buffer()));
    });
    const auto is_inside = [&](Buffer buffer) { return inside.contains(buffer); };
    std::erase_if(unit.reads, is_inside);
    std::erase_if(unit.writes, is_inside);
    body_.units.push_back(std::move(unit));
    return true;
  }

  // Computation that has to precede a load.
  void MarkPrepare() {
    std::vector<Unit>& units = body_.units;
    for (size_t i = units.size(); i-- > 0;) {
      if (units[i].stage != Stage::kCompute || body_.of_cluster) continue;
      for (size_t j = i + 1; j < units.size(); ++j) {
        if (units[j].stage != Stage::kLoad && units[j].stage != Stage::kPrepare) continue;
        if (AreAlternatives(units[i], units[j])) continue;
        ForEachConflict(units[i], units[j], [&](Buffer) { units[i].stage = Stage::kPrepare; });
      }
    }
  }

  const Target& target_;
  std::string& reason_;
  Body body_;
  absl::flat_hash_set<Buffer> own_;
  std::vector<std::pair<Stmt, bool>> branches_;
  int loops_ = 0;
};

// Which stage runs when, and on how many copies.
struct Plan {
  std::array<bool, 4> has = {};
  std::array<int64_t, 4> offset = {};  // iteration i runs in step i + offset
  std::vector<Stage> order;            // within a step
  int64_t first = 0;                   // the smallest offset, and the largest
  int64_t last = 0;
  absl::flat_hash_map<Buffer, int64_t> copies;
  int64_t period = 1;  // steps until the copies come round: the copies of all that has several

  int64_t Rank(Stage stage) const {
    return std::find(order.begin(), order.end(), stage) - order.begin();
  }
};

// Buffers of which no iteration stores what it or one before it uses: the number of iterations until
// it is used, 0 for in the same one.
using Windows = absl::flat_hash_map<Buffer, int64_t>;

std::optional<Plan> MakePlan(const Body& body, const Windows& windows, int most_copies,
                             std::string& reason) {
  Plan plan;
  // Whether nothing that is loaded is for the same iteration.
  bool loads_ahead = true;
  for (const Unit& unit : body.units) {
    plan.has[Index(unit.stage)] = true;
    if (unit.stage != Stage::kLoad) continue;
    for (Buffer buffer : unit.writes) {
      const auto window = windows.find(buffer);
      loads_ahead = loads_ahead && window != windows.end() && window->second > 0;
    }
  }
  for (Stage stage : {Stage::kLoad, Stage::kCompute, Stage::kStore}) {
    if (!plan.has[Index(stage)]) continue;
    plan.offset[Index(stage)] = plan.last;
    if (stage != Stage::kLoad || !loads_ahead) ++plan.last;
  }
  --plan.last;
  if (plan.has[Index(Stage::kPrepare)]) plan.first = plan.offset[Index(Stage::kPrepare)] = -1;
  // A store makes room for the load into the same copy, unless there are three. What is prepared
  // goes to the copy that the computation before it has read. Computation is issued first: it needs
  // the fewest addresses, and runs while the scalar unit finds those of the copies. Memory cores
  // do that beside the cores anyway.
  plan.order = {Stage::kCompute, Stage::kPrepare, Stage::kStore, Stage::kLoad};
  if (most_copies > kDefaultCopies) std::swap(plan.order[2], plan.order[3]);
  if (body.of_cluster) std::rotate(plan.order.begin(), plan.order.begin() + 2, plan.order.end());
  std::erase_if(plan.order, [&](Stage stage) { return !plan.has[Index(stage)]; });

  for (Buffer buffer : body.buffers) plan.copies[buffer] = 1;
  reason.clear();
  for (size_t j = 0; j < body.units.size(); ++j) {
    for (size_t i = 0; i < j; ++i) {
      const Unit& a = body.units[i];
      const Unit& b = body.units[j];
      if (a.stage == b.stage || AreAlternatives(a, b)) continue;
      if (a.inner_loop != 0 && a.inner_loop == b.inner_loop) {
        reason = StrCat(a.name, " and ", b.name, " of two stages stand in one loop inside");
      }
      const int64_t distance = plan.offset[Index(b.stage)] - plan.offset[Index(a.stage)];
      // Iteration i + copies of the earlier stage uses what iteration i of the later one has used:
      // in a later step, or in the same one behind it in one queue.
      const bool in_turn = a.queue == b.queue && plan.Rank(b.stage) < plan.Rank(a.stage);
      const int64_t needed = in_turn ? distance : distance + 1;
      ForEachConflict(a, b, [&](Buffer buffer) {
        auto own = plan.copies.find(buffer);
        if (windows.contains(buffer) && distance >= 0) return;
        if (own == plan.copies.end()) {
          reason = a.stage == Stage::kLoad && b.stage == Stage::kStore
                       ? StrCat("'", buffer->name, "' is loaded and stored")
                       : StrCat("'", buffer->name, "' is not of the body, and both ", a.name,
                                " and ", b.name, " touch it");
        } else if (distance < 0) {
          reason =
              StrCat(b.name, " (", kStageNames[Index(b.stage)], ") stands behind ", a.name, " (",
                     kStageNames[Index(a.stage)], "), and both touch '", buffer->name, "'");
        } else if (needed > most_copies) {
          reason = StrCat("'", buffer->name, "' needs ", needed, " copies");
        } else {
          own->second = std::max(own->second, needed);
        }
      });
      if (!reason.empty()) return std::nullopt;
    }
  }
  for (const auto& [buffer, copies] : plan.copies) plan.period = std::max(plan.period, copies);
  for (auto& [buffer, copies] : plan.copies) {
    if (copies > 1) copies = plan.period;
  }
  return plan;
}

// The statements of one stage with what stands around them.
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
        s.Is(StmtKind::kAllocate) || (s.Is(StmtKind::kPragma) && s.name() == kDoubleBuffer);
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

// Writes the pipelined loop.
class Emitter {
 public:
  // `busy`: the queues that may hold work in this function.
  Emitter(Stmt loop, const Body& body, const Plan& plan, const std::set<isa::Queue>& busy)
      : loop_(loop), plan_(plan), c_(loop.context()) {
    for (Stage stage : plan.order) {
      stages_[Index(stage)] = StageFilter(body, stage).Filter(body.stmt);
    }
    copies_.resize(plan.period);
    for (Buffer buffer : body.buffers) {
      const int64_t copies = plan.copies.at(buffer);
      for (int64_t i = 0; i < copies; ++i) {
        const Buffer copy = copies == 1 ? buffer
                                        : c_.NewBuffer(StrCat(buffer->name, ".", i), buffer->type,
                                                       buffer->extents, buffer->scope);
        if (copies > 1) copies_[i][buffer] = copy;
        buffers_.push_back(copy);
      }
    }
    // A wait for a queue that the body does not use would only hold up what else goes on.
    std::set<isa::Queue> used;
    for (const Unit& unit : body.units) used.insert(unit.queue);
    if (body.of_cluster || used == busy) {
      waits_.push_back(Wait(body.of_cluster ? "barrier.cluster" : "sync"));
    } else {
      for (isa::Queue queue : used) waits_.push_back(Wait(StrCat("sync.", isa::QueueName(queue))));
    }
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

  Stmt Wait(std::string_view name) const { return c_.Evaluate(c_.Call(ir::Type::kI32, name, {})); }

  static Expr Plus(Expr e, int64_t number) { return number == 0 ? e : e + number; }

  // Adds the parts of step `s` behind iteration `at`, a multiple of the period after the first:
  // those of iterations at + i with 0 <= i and, by a condition or known, exists(i).
  template <typename Exists>
  void AddStep(Expr at, int64_t s, const Exists& exists, std::vector<Stmt>& out) const {
    // The oldest iteration of the step ends last: without it there is no step.
    int64_t oldest = s - plan_.first;
    for (Stage stage : plan_.order) {
      const int64_t i = s - plan_.offset[Index(stage)];
      if (i >= 0) oldest = std::min(oldest, i);
    }
    std::vector<Stmt> step;
    // Nothing is pending before the first one.
    if (s != plan_.first) step.insert(step.end(), waits_.begin(), waits_.end());
    for (Stage stage : plan_.order) {
      const int64_t i = s - plan_.offset[Index(stage)];
      if (i < 0) continue;
      const Expr condition = exists(i);
      if (condition.IsInt(0)) continue;
      const Stmt part = ir::CloneWithFreshBindings(ir::Substitute(
          stages_[Index(stage)], {{loop_.var(), Plus(at, i)}}, copies_[i % plan_.period]));
      step.push_back(condition.IsInt(1) || i == oldest ? part : c_.If(condition, part));
    }
    const Expr condition = exists(oldest);
    if (condition.IsInt(1)) {
      out.insert(out.end(), step.begin(), step.end());
    } else {
      out.push_back(c_.If(condition, c_.Seq(step)));
    }
  }

  // The loop over groups of steady steps, those with all stages.
  Stmt Steady(Expr min, Expr groups) const {
    const ir::Var group = NewVar("");
    std::vector<Stmt> body;
    for (int64_t k = 0; k < plan_.period; ++k) {
      AddStep(
          min + group * plan_.period, plan_.last + k, [&](int64_t) { return c_.Bool(true); }, body);
    }
    return c_.For(group, c_.Int(group.type(), 0), groups, c_.Seq(body));
  }

  Stmt Steps(Expr min, int64_t n) const {
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

  // The same with a number of iterations that is known at run time only: the steps outside the
  // steady loop stand under conditions.
  Stmt Steps(Expr min, Expr n) const {
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
    out.push_back(c_.LetStmt(
        groups, ir::Max((n - ramp) / plan_.period, c_.Int(n.type(), 0)),
        c_.Seq({Steady(min, groups), c_.LetStmt(done, groups * plan_.period, c_.Seq(rest))})));
    return c_.If(c_.Int(n.type(), 0) < n, c_.Seq(out));
  }

  const Stmt loop_;
  const Plan& plan_;
  ir::Context& c_;
  std::array<Stmt, 4> stages_;
  std::vector<ir::BufferMap> copies_;
  std::vector<Buffer> buffers_;
  std::vector<Stmt> waits_;  // between two steps
  std::vector<std::pair<ir::Var, Expr>> lets_;
};

class Pipeliner {
 public:
  Pipeliner(const ir::Function& function, const Target& target,
            std::vector<PipelineDecision>* decisions)
      : target_(target), decisions_(decisions) {
    ir::ForEachStmt(function.body, [&](Stmt s) {
      if (!s.Is(StmtKind::kEvaluate)) return true;
      const isa::Instruction* instruction = target.instructions->Find(s.value().name());
      if (instruction != nullptr && instruction->queue != isa::Queue::kNone) {
        busy_.insert(instruction->queue);
      }
      return true;
    });
  }

  Stmt Walk(Stmt s) {
    if (s.Is(StmtKind::kPragma) && s.name() == kSlidingWindow && s.body().Is(StmtKind::kAllocate)) {
      windows_[s.body().buffer()] = s.operands()[0].int_value();
    }
    // Allocations around a loop take their share of the memory.
    const bool allocates = s.Is(StmtKind::kAllocate) && IsOnChip(s.buffer()->scope);
    if (allocates) around_[s.buffer()->scope] += AlignedBytes(s.buffer());
    std::vector<Stmt> children;
    for (Stmt child : s.children()) children.push_back(Walk(child));
    if (allocates) around_[s.buffer()->scope] -= AlignedBytes(s.buffer());
    s = s.context().Rebuild(s, s.operands(), children);
    if (!s.Is(StmtKind::kFor) || !HasDoubleBuffer(s.body())) return s;
    PipelineDecision decision;
    const std::optional<Stmt> pipelined = Pipelined(s, decision);
    if (decisions_ != nullptr) {
      decision.loop = FirstLine(s);
      decision.pipelined = pipelined.has_value();
      decisions_->push_back(std::move(decision));
    }
    return pipelined.value_or(s);
  }

 private:
  // Whether an allocation of the body, not of a loop inside, asks for copies.
  static bool HasDoubleBuffer(Stmt body) {
    bool found = false;
    ir::ForEachStmt(body, [&](Stmt s) {
      found = found || (s.Is(StmtKind::kPragma) && s.name() == kDoubleBuffer);
      return !found && !s.Is(StmtKind::kFor);
    });
    return found;
  }

  static int64_t AlignedBytes(Buffer buffer) {
    int64_t bytes = ir::ByteSize(buffer->type);
    for (Expr extent : buffer->extents) {
      if (extent.Is(ExprKind::kIntImm)) bytes *= extent.int_value();
    }
    return (bytes + kOnChipAlignment - 1) / kOnChipAlignment * kOnChipAlignment;
  }

  bool Fits(const Plan& plan, std::string& reason) const {
    std::map<std::string, int64_t> needed = around_;
    for (const auto& [buffer, copies] : plan.copies) {
      needed[buffer->scope] += copies * AlignedBytes(buffer);
    }
    for (const auto& [scope, bytes] : needed) {
      if (bytes <= target_.MemoryBytes(scope)) continue;
      reason = StrCat(plan.period == kMostCopies ? "three" : "two", " copies take ", bytes,
                      " bytes of ", scope, ", which has ", target_.MemoryBytes(scope));
      return false;
    }
    return true;
  }

  std::optional<Stmt> Pipelined(Stmt loop, PipelineDecision& decision) const {
    std::string& reason = decision.reason;
    const bool is_constant = loop.extent().Is(ExprKind::kIntImm);
    if (loop.for_kind() != ir::ForKind::kSerial || (is_constant && loop.extent().int_value() < 2)) {
      reason = StrCat("it has ", ir::Print(loop.extent()), " iterations");
      return std::nullopt;
    }
    const std::optional<Body> body = BodyReader(target_, reason).Read(loop.body());
    if (!body) return std::nullopt;
    if (body->of_cluster && !is_constant) {
      reason = StrCat("it has ", ir::Print(loop.extent()), " iterations, and loops over cores");
      return std::nullopt;
    }
    if (std::all_of(body->units.begin(), body->units.end(),
                    [&](const Unit& unit) { return unit.queue == body->units[0].queue; })) {
      reason = "all that it runs is in one queue";
      return std::nullopt;
    }
    // Where three copies do not fit, two may.
    std::optional<Plan> plan;
    for (int copies = body->copies; copies >= kDefaultCopies && !plan; --copies) {
      plan = MakePlan(*body, windows_, copies, reason);
      if (plan && !Fits(*plan, reason)) plan = std::nullopt;
    }
    if (!plan) return std::nullopt;
    reason.clear();
    decision.form = Form(*body, *plan);
    return Emitter(loop, *body, *plan, busy_).Emit();
  }

  static std::string Form(const Body& body, const Plan& plan) {
    std::string form = "stages";
    for (Stage stage : kStages) {
      if (plan.has[Index(stage)]) StrAppend(&form, " ", kStageNames[Index(stage)], ",");
    }
    form.back() = ';';
    StrAppend(&form, " copies");
    for (Buffer buffer : body.buffers) {
      StrAppend(&form, " ", buffer->name, " ", plan.copies.at(buffer), ",");
    }
    form.pop_back();
    return form;
  }

  const Target& target_;
  std::vector<PipelineDecision>* const decisions_;
  Windows windows_;
  std::set<isa::Queue> busy_;              // queues that the function uses
  std::map<std::string, int64_t> around_;  // bytes of allocations outside, by memory
};

}  // namespace

absl::StatusOr<bool> Pipeline(ir::Function& function, const Target& target,
                              std::vector<PipelineDecision>* decisions) {
  if (target.instructions == nullptr || target.machine == nullptr) {
    return InvalidInput("pipeline: target '", target.name, "' has no instruction queues");
  }
  const Stmt body = Pipeliner(function, target, decisions).Walk(function.body);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

namespace {

absl::StatusOr<bool> RunPipeline(ir::Function& function, const PassEnvironment& environment,
                                 const OptionValues&) {
  std::vector<PipelineDecision> decisions;
  ASSIGN_OR_RETURN(bool changed, Pipeline(function, environment.target,
                                          environment.stats ? &decisions : nullptr));
  for (const PipelineDecision& decision : decisions) {
    environment.stats->push_back(StrCat(decision.loop, "  -->  ",
                                        decision.pipelined
                                            ? StrCat("pipelined: ", decision.form)
                                            : StrCat("not pipelined: ", decision.reason)));
  }
  return changed;
}

}  // namespace

PassInfo PipelinePass() {
  return {.name = "pipeline",
          .doc = "overlaps loads, computation and stores of loops with double buffers",
          .run = RunPipeline};
}

}  // namespace polynao
