#include "compiler/passes/pipeline.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

constexpr std::string_view kDoubleBuffer = "double_buffer";
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
  std::vector<Buffer> reads;
  std::vector<Buffer> writes;
};

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
      case StmtKind::kIf:
        return VisitChildren(s, inner_loop);
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
        if (inner_loop != 0) {
          return Fail(StrCat("'", s.buffer()->name, "' is allocated in a loop inside"));
        }
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
        ForEachConflict(units[i], units[j], [&](Buffer) { units[i].stage = Stage::kPrepare; });
      }
    }
  }

  const Target& target_;
  std::string& reason_;
  Body body_;
  absl::flat_hash_set<Buffer> own_;
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

std::optional<Plan> MakePlan(const Body& body, int most_copies, std::string& reason) {
  Plan plan;
  for (const Unit& unit : body.units) plan.has[Index(unit.stage)] = true;
  for (Stage stage : {Stage::kLoad, Stage::kCompute, Stage::kStore}) {
    if (!plan.has[Index(stage)]) continue;
    plan.offset[Index(stage)] = plan.last++;
  }
  --plan.last;
  if (plan.has[Index(Stage::kPrepare)]) plan.first = plan.offset[Index(Stage::kPrepare)] = -1;
  // A store makes room for the load into the same copy, unless there are three. What is prepared
  // goes to the copy that the computation before it has read.
  plan.order = {Stage::kStore, Stage::kLoad, Stage::kCompute, Stage::kPrepare};
  if (most_copies > kDefaultCopies) std::swap(plan.order[0], plan.order[1]);
  std::erase_if(plan.order, [&](Stage stage) { return !plan.has[Index(stage)]; });

  for (Buffer buffer : body.buffers) plan.copies[buffer] = 1;
  reason.clear();
  for (size_t j = 0; j < body.units.size(); ++j) {
    for (size_t i = 0; i < j; ++i) {
      const Unit& a = body.units[i];
      const Unit& b = body.units[j];
      if (a.stage == b.stage) continue;
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
  Emitter(Stmt loop, const Body& body, const Plan& plan)
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
    wait_ = c_.Evaluate(c_.Call(ir::Type::kI32, body.of_cluster ? "barrier.cluster" : "sync", {}));
  }

  Stmt Emit() {
    min_ = Bound(loop_.min(), ".min");
    const Expr extent = Bound(loop_.extent(), ".count");
    std::vector<Stmt> steps;
    if (extent.Is(ExprKind::kIntImm)) {
      Unrolled(extent.int_value(), steps);
    } else {
      Guarded(extent, steps);
    }
    Stmt result = c_.Seq(steps);
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
    lets_.emplace_back(c_.NewVar(StrCat(loop_.var().name(), suffix), e.type()), e);
    return lets_.back().first;
  }

  // The stage in iteration at + number, on the copies of iteration `number`.
  Stmt Piece(Stage stage, Expr at, int64_t number) {
    const int64_t copy = ((number % plan_.period) + plan_.period) % plan_.period;
    const Expr iteration = number == 0 ? at : at + number;
    return ir::CloneWithFreshBindings(
        ir::Substitute(stages_[Index(stage)], {{loop_.var(), iteration}}, copies_[copy]));
  }

  // Prologue, steady loop, epilogue of n iterations.
  void Unrolled(int64_t n, std::vector<Stmt>& out) {
    const auto step = [&](std::vector<Stmt>& to, Expr at, int64_t s) {
      if (s != plan_.first) to.push_back(wait_);  // nothing is pending before the first one
      for (Stage stage : plan_.order) {
        const int64_t i = s - plan_.offset[Index(stage)];
        if (0 <= i && i < n) to.push_back(Piece(stage, at, i));
      }
    };
    // Steps with all stages; a loop of one group would be no shorter than the group.
    const int64_t steady = n + plan_.first - plan_.last;
    const int64_t groups = steady < 2 * plan_.period ? 0 : steady / plan_.period;
    int64_t s = plan_.first;
    for (; s < plan_.last; ++s) step(out, min_, s);
    if (groups > 0) {
      const ir::Var group = GroupVar();
      std::vector<Stmt> body;
      for (int64_t k = 0; k < plan_.period; ++k) step(body, min_ + group * plan_.period, s + k);
      out.push_back(Groups(group, c_.Int(group.type(), groups), body));
      s += groups * plan_.period;
    }
    for (; s < n + plan_.last; ++s) step(out, min_, s);
  }

  // One loop over all steps of n iterations, where n is known at run time only.
  void Guarded(Expr n, std::vector<Stmt>& out) {
    const ir::Var group = GroupVar();
    const int64_t period = plan_.period;
    std::vector<Stmt> body;
    for (int64_t k = 0; k < period; ++k) {
      body.push_back(wait_);
      for (Stage stage : plan_.order) {
        const int64_t i = plan_.first + k - plan_.offset[Index(stage)];
        const Expr iteration = i == 0 ? group * period : group * period + i;
        Expr exists = iteration < n;
        if (i < 0)
          exists = ir::And(c_.Int(group.type(), (-i + period - 1) / period) <= group, exists);
        body.push_back(c_.If(exists, Piece(stage, min_ + group * period, i)));
      }
    }
    const Expr steps = n + (plan_.last - plan_.first);
    out.push_back(Groups(group, (steps + (period - 1)) / period, body));
  }

  ir::Var GroupVar() { return c_.NewVar(loop_.var().name(), loop_.var().type()); }
  Stmt Groups(ir::Var group, Expr count, absl::Span<const Stmt> body) {
    return c_.For(group, c_.Int(group.type(), 0), count, c_.Seq(body));
  }

  const Stmt loop_;
  const Plan& plan_;
  ir::Context& c_;
  std::array<Stmt, 4> stages_;
  std::vector<ir::BufferMap> copies_;
  std::vector<Buffer> buffers_;
  Stmt wait_;  // between two steps
  Expr min_;
  std::vector<std::pair<ir::Var, Expr>> lets_;
};

class Pipeliner {
 public:
  Pipeliner(const Target& target, std::vector<PipelineDecision>* decisions)
      : target_(target), decisions_(decisions) {}

  Stmt Walk(Stmt s) {
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
      plan = MakePlan(*body, copies, reason);
      if (plan && !Fits(*plan, reason)) plan = std::nullopt;
    }
    if (!plan) return std::nullopt;
    reason.clear();
    decision.form = Form(*body, *plan);
    return Emitter(loop, *body, *plan).Emit();
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
  std::map<std::string, int64_t> around_;  // bytes of allocations outside, by memory
};

}  // namespace

absl::StatusOr<bool> Pipeline(ir::Function& function, const Target& target,
                              std::vector<PipelineDecision>* decisions) {
  if (target.instructions == nullptr || target.machine == nullptr) {
    return InvalidInput("pipeline: target '", target.name, "' has no instruction queues");
  }
  const Stmt body = Pipeliner(target, decisions).Walk(function.body);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

}  // namespace polynao
