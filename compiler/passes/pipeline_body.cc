#include "compiler/passes/pipeline_body.h"

#include "absl/container/flat_hash_set.h"
#include "base/check.h"
#include "base/text.h"
#include "compiler/arith/logic.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/core_memory.h"
#include "compiler/target/control.h"
#include "compiler/target/core_roles.h"
#include "isa/levels.h"

namespace polynao::pipelining {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

namespace {

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
    ComputeLoadsOfCores();
    MarkPrepare();
    return std::move(body_);
  }

 private:
  bool Fail(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  bool Visit(Stmt s, int inner_loop) {
    // An instruction reads memory by its addresses; its numbers must not come from there.
    const bool is_call = s.Is(StmtKind::kEvaluate);
    for (Expr e : is_call ? s.value().operands() : s.operands()) {
      if (arith::ReadsMemory(e) && !IsThreadLoop(s)) {
        return Fail(StrCat("it reads memory: ", ir::PrintFirstLine(s)));
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
        if (s.name() == pragma::kDoubleBuffer && !s.operands().empty()) {
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
        return Fail(StrCat("no queued instruction: ", ir::PrintFirstLine(s)));
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

  void AddOperands(Stmt call, Unit& unit) const {
    for (const BufferOperand& operand : BufferOperands(call, target_)) {
      if (operand.is_read) unit.reads.push_back(operand.buffer);
      if (operand.is_written) unit.writes.push_back(operand.buffer);
    }
  }

  // Margins of what is copied.
  bool IsFill(Stmt call, const isa::Instruction& instruction) const {
    const std::vector<BufferOperand> operands = BufferOperands(call, target_);
    return !instruction.waits && instruction.queue == isa::Queue::kCompute &&
           std::none_of(operands.begin(), operands.end(),
                        [](const BufferOperand& operand) { return operand.is_read; });
  }

  bool VisitCall(Stmt call, int inner_loop) {
    const isa::Instruction* instruction = Find(call);
    if (instruction == nullptr || instruction->waits || instruction->queue == isa::Queue::kNone) {
      return Fail(StrCat("no queued instruction: ", ir::PrintFirstLine(call)));
    }
    Unit unit;
    unit.name = std::string(call.value().name());
    unit.queue = instruction->queue;
    unit.inner_loop = inner_loop;
    unit.branches = branches_;
    AddOperands(call, unit);
    if (unit.queue != isa::Queue::kCompute) {
      const auto is_outside = [&](Buffer buffer) {
        const std::optional<isa::Space> space = isa::ParseSpace(buffer->scope);
        return space && isa::LevelOf(*space) != isa::Level::kCore && !own_.contains(buffer);
      };
      const bool loads = std::any_of(unit.reads.begin(), unit.reads.end(), is_outside);
      const bool stores = std::any_of(unit.writes.begin(), unit.writes.end(), is_outside);
      if (loads == stores) {
        return Fail(
            StrCat("neither load nor store of the body's buffers: ", ir::PrintFirstLine(call)));
      }
      unit.stage = loads ? Stage::kLoad : Stage::kStore;
    }
    body_.units.push_back(std::move(unit));
    return true;
  }

  // A loop over cores, with the buffers from outside that it accesses.
  bool VisitNest(Stmt nest, int inner_loop) {
    if (nest.name() != isa::kCoreAxis)
      return Fail(StrCat("no queued instruction: ", ir::PrintFirstLine(nest)));
    body_.of_cluster = true;
    Unit unit;
    unit.name = "the loop over tid";
    unit.is_nest = true;
    unit.inner_loop = inner_loop;
    unit.branches = branches_;
    absl::flat_hash_set<Buffer> inside;
    bool only_moves = true;
    std::optional<isa::Queue> queue;
    ir::ForEachStmt(nest, [&](Stmt s) {
      if (s.Is(StmtKind::kAllocate)) inside.insert(s.buffer());
      if (s.Is(StmtKind::kStore)) unit.writes.push_back(s.buffer());
      if (s.Is(StmtKind::kAllocate) || s.Is(StmtKind::kStore)) only_moves = false;
      if (!s.Is(StmtKind::kEvaluate)) return true;
      const isa::Instruction* instruction = Find(s);
      AddOperands(s, unit);
      if (instruction != nullptr && IsFill(s, *instruction)) return true;
      only_moves =
          only_moves && instruction != nullptr && !instruction->waits &&
          (instruction->queue == isa::Queue::kMove || instruction->queue == isa::Queue::kIo) &&
          queue.value_or(instruction->queue) == instruction->queue;
      if (only_moves) queue = instruction->queue;
      return true;
    });
    ir::ForEachExprIn(nest, [&](Expr e) {
      if (e.Is(ExprKind::kLoad)) unit.reads.push_back(Buffer(e.buffer()));
    });
    const auto is_inside = [&](Buffer buffer) { return inside.contains(buffer); };
    std::erase_if(unit.reads, is_inside);
    std::erase_if(unit.writes, is_inside);
    const auto is_own = [&](Buffer buffer) { return own_.contains(buffer); };
    // From SMEM, or from GMEM, which nobody in the body writes.
    const bool reads_own = std::all_of(unit.reads.begin(), unit.reads.end(), is_own);
    const bool reads_none = std::none_of(unit.reads.begin(), unit.reads.end(), is_own);
    if (only_moves && queue && !unit.writes.empty() &&
        (queue == isa::Queue::kMove ? reads_own : reads_none) &&
        std::all_of(unit.writes.begin(), unit.writes.end(), is_own)) {
      unit.stage = Stage::kFetch;
      unit.queue = *queue;
    }
    // What all cores have computed leaves by all cores.
    const auto is_shared = [&](Buffer buffer) {
      return is_own(buffer) && buffer->scope == isa::kSmem;
    };
    if (only_moves && queue == isa::Queue::kIo && !unit.reads.empty() &&
        std::all_of(unit.reads.begin(), unit.reads.end(), is_shared) &&
        std::none_of(unit.writes.begin(), unit.writes.end(), is_own)) {
      unit.stage = Stage::kStore;
      unit.queue = *queue;
    }
    body_.units.push_back(std::move(unit));
    return true;
  }

  // What cores load from GMEM comes ahead where the memory core loads, too; elsewhere their own code is pipelined.
  void ComputeLoadsOfCores() {
    std::vector<Unit>& units = body_.units;
    const bool has_load = std::any_of(units.begin(), units.end(),
                                      [](const Unit& unit) { return unit.stage == Stage::kLoad; });
    for (Unit& unit : units) {
      if (has_load || unit.stage != Stage::kFetch || unit.queue != isa::Queue::kIo) continue;
      unit.stage = Stage::kCompute;
      unit.queue = isa::Queue::kCompute;
    }
  }

  // Computation that has to run before a load of the same iteration is a stage of its own.
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

}  // namespace

bool AreAlternatives(const Unit& a, const Unit& b) {
  for (const auto& [branch, is_then] : a.branches) {
    const auto other = std::find(b.branches.begin(), b.branches.end(), std::pair(branch, !is_then));
    if (other != b.branches.end()) return true;
  }
  return false;
}

std::optional<Body> ReadBody(Stmt body, const Target& target, std::string& reason) {
  return BodyReader(target, reason).Read(body);
}

bool ComputeWhatIsFetched(Body& body) {
  bool found = false;
  for (Unit& unit : body.units) {
    if (unit.stage != Stage::kFetch) continue;
    unit.stage = Stage::kCompute;
    unit.queue = isa::Queue::kCompute;
    found = true;
  }
  return found;
}

}  // namespace polynao::pipelining
