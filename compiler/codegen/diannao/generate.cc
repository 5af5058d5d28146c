#include "compiler/codegen/diannao/generate.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "compiler/codegen/diannao/scalar_code.h"
#include "compiler/ir/parts_layout.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/target/control.h"
#include "compiler/target/core_roles.h"
#include "isa/levels.h"

namespace polynao::diannao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using ir::Var;

class Generator : private ScalarCode {
 public:
  Generator(const ir::Function& function, const Target& target)
      : ScalarCode(function, *target.instructions),
        target_(target),
        roles_(function.body, target) {}

  absl::StatusOr<Code> Run(isa::Program& program) {
    program.name = function_.name;
    PushCache();
    for (size_t i = 0; i < function_.params.size(); ++i) {
      RETURN_IF_ERROR(Parameter(function_.params[i], i, program));
    }
    for (Buffer buffer : CoreRoles::Temporaries(function_.body)) {
      const ir::Param param = {
          .var = {}, .buffer = buffer, .access = ir::Access::kOut, .scope = ""};
      RETURN_IF_ERROR(Parameter(param, program.params.size(), program));
      program.params.back().is_temporary = true;
      if (program.params.back().any_shape) {
        return InvalidInput("'", buffer->name, "' in gmem: its size is not constant");
      }
    }
    for (Stmt s : CoreRoles::TopStatements(function_.body)) {
      if (IsBarrier(s, target_)) {
        RETURN_IF_ERROR(Instruction(s));
      } else {
        RETURN_IF_ERROR(OnWorkingCores(s));
      }
    }
    RETURN_IF_ERROR(Emit("halt", {}));
    return std::move(code_);
  }

 private:
  absl::Status Parameter(const ir::Param& param, size_t index, isa::Program& program) {
    isa::ProgramParam out;
    out.name = std::string(param.name());
    ASSIGN_OR_RETURN(int reg, Value("arg", {isa::kFirstParam + static_cast<int64_t>(index)}));
    if (param.var) {
      out.is_tensor = false;
      out.type = param.var.type();
      vars_[param.var] = reg;
    } else {
      if (param.buffer->scope != isa::kGmem) {
        return InvalidInput("parameter '", out.name, "' is in '", param.buffer->scope,
                            "'; parameters of a program are in gmem");
      }
      out.type = param.buffer->type;
      out.access = param.access;
      for (Expr extent : param.buffer->extents) {
        if (extent.Is(ExprKind::kIntImm)) {
          out.shape.push_back(extent.int_value());
        } else {
          out.any_shape = true;
        }
      }
      if (out.any_shape) out.shape.clear();
      for (const ir::PartsLayout& layout : ir::PartsLayoutsOf(function_)) {
        if (layout.parameter == out.name) out.rows = layout.rows, out.parts = layout.parts;
      }
      if (!isa::HasValidParts(out)) {
        return InvalidInput("parameter '", out.name, "': expected an input of ", out.rows,
                            " rows of ", out.parts, " equal parts, as '@in_parts' says");
      }
      param_registers_[param.buffer] = reg;
    }
    program.params.push_back(std::move(out));
    return absl::OkStatus();
  }

  // ---- statements

  using Barrier = isa::Instruction::Barrier;
  Barrier BarrierOf(Stmt s) const {
    const isa::Instruction* instruction = InstructionOf(s, target_);
    return instruction == nullptr ? Barrier::kNone : instruction->barrier;
  }

  static constexpr isa::Level kThreadLevels[] = {isa::Level::kCluster, isa::Level::kCore};

  // The program argument that holds the number of a core's unit of `level`.
  static int64_t NumberSlot(isa::Level level) {
    return level == isa::Level::kCluster ? isa::kClusterId : isa::kCoreId;
  }

  // Runs `s` where the numbers on axes without a loop are 0, skipping it on all other cores.
  absl::Status OnWorkingCores(Stmt s) {
    std::vector<int> skips;
    PushCache();
    for (const isa::Level level : kThreadLevels) {
      if (roles_.Uses(level)) continue;
      ASSIGN_OR_RETURN(int id, Value("arg", {NumberSlot(level)}));
      ASSIGN_OR_RETURN(int zero, Zero());
      ASSIGN_OR_RETURN(int skip, BranchTo("bne", {id, zero}));
      skips.push_back(skip);
    }
    RETURN_IF_ERROR(Statement(s));
    PopCache();
    return ContinueFrom(skips);
  }

  // Runs `stmts` on the memory core, skipping them on the cluster's cores.
  absl::Status OnMemoryCore(absl::Span<const Stmt> stmts) {
    PushCache();
    ASSIGN_OR_RETURN(int is_memory_core, Value("arg", {isa::kIsMemoryCore}));
    ASSIGN_OR_RETURN(int zero, Zero());
    ASSIGN_OR_RETURN(int skip, BranchTo("beq", {is_memory_core, zero}));
    runs_on_ = RunsOn::kMemoryCore;
    for (Stmt s : stmts) RETURN_IF_ERROR(Statement(s));
    runs_on_ = RunsOn::kCluster;
    PopCache();
    return ContinueFrom({skip});
  }

  // A statement between the loop over clusters and the loops over cores. Neighbours that the memory core
  // runs alone share one branch.
  absl::Status InCluster(Stmt s) {
    if (!roles_.IsForAllCores(s)) return OnMemoryCore({s});
    if (!s.Is(StmtKind::kSeq)) return StatementHere(s);
    const absl::Span<const Stmt> children = s.children();
    for (size_t i = 0; i < children.size();) {
      if (roles_.IsForAllCores(children[i])) {
        RETURN_IF_ERROR(InCluster(children[i++]));
        continue;
      }
      const size_t first = i;
      while (i < children.size() && !roles_.IsForAllCores(children[i])) ++i;
      RETURN_IF_ERROR(OnMemoryCore(children.subspan(first, i - first)));
    }
    return absl::OkStatus();
  }

  // The memory core has no vector and tensor unit, no NMEM and no WMEM.
  absl::Status CheckMemoryCore(Stmt s) const {
    std::string missing;
    const auto touch = [&](const ir::BufferNode* buffer) {
      const std::optional<isa::Space> space = isa::ParseSpace(buffer->scope);
      if (missing.empty() && (!space || isa::LevelOf(*space) == isa::Level::kCore)) {
        missing = StrCat(buffer->scope, " (of '", buffer->name, "')");
      }
    };
    if (s.Is(StmtKind::kStore)) touch(s.buffer().node());
    if (s.Is(StmtKind::kEvaluate)) {
      const isa::Instruction* instruction = set_.Find(s.value().name());
      if (instruction != nullptr && instruction->queue == isa::Queue::kCompute) {
        missing = StrCat(isa::UnitName(instruction->unit), " unit");
      }
    }
    for (Expr e : s.operands()) {
      ir::ForEachExpr(e, [&](Expr x) {
        if (x.Is(ExprKind::kLoad) || x.Is(ExprKind::kAddress)) touch(x.buffer());
      });
    }
    if (missing.empty()) return absl::OkStatus();
    return InvalidInput("'", ir::PrintFirstLine(s),
                        "' stands in a loop over clusters (cid), but in none over their cores "
                        "(tid): the cluster's memory core runs it, and has no ",
                        missing);
  }

  absl::Status Block(Stmt s) {
    PushCache();
    RETURN_IF_ERROR(Statement(s));
    PopCache();
    return absl::OkStatus();
  }

  absl::Status Statement(Stmt s) {
    return runs_on_ == RunsOn::kCluster ? InCluster(s) : StatementHere(s);
  }

  // The code of `s`, for all cores that reach it.
  absl::Status StatementHere(Stmt s) {
    if (runs_on_ != RunsOn::kCore) RETURN_IF_ERROR(CheckMemoryCore(s));
    switch (s.kind()) {
      case StmtKind::kSeq:
        for (Stmt child : s.children()) RETURN_IF_ERROR(Statement(child));
        return absl::OkStatus();
      case StmtKind::kPragma:
        return Statement(s.body());
      case StmtKind::kAllocate:
        if (!addresses_.contains(s.buffer())) {
          return InvalidInput("'", s.buffer()->name, "' is allocated in '", s.buffer()->scope,
                              "': a DianNao card allocates in nmem, smem and wmem, after storage, "
                              "and in gmem around the whole function");
        }
        return Statement(s.body());
      case StmtKind::kLet: {
        ASSIGN_OR_RETURN(vars_[s.var()], Get(s.value(), true));
        return Block(s.body());
      }
      case StmtKind::kFor:
        return s.for_kind() == ir::ForKind::kThread ? ThreadLoop(s) : Loop(s);
      case StmtKind::kIf:
        return Branch(s);
      case StmtKind::kStore: {
        RETURN_IF_ERROR(InsideThreadLoops(s));
        ASSIGN_OR_RETURN(std::string mnemonic, AccessMnemonic("store", s.buffer().node()));
        ASSIGN_OR_RETURN(int value, Get(s.value(), true));
        ASSIGN_OR_RETURN(int address, Address(s.buffer(), s.indices()));
        return Emit(mnemonic, {address, value});
      }
      case StmtKind::kEvaluate:
        if (IsBarrier(s, target_)) RETURN_IF_ERROR(CheckBarrier(s));
        return Instruction(s);
    }
    POLYNAO_UNREACHABLE(static_cast<int>(s.kind()));
  }

  absl::Status InsideThreadLoops(Stmt s) const {
    const bool is_inside = std::all_of(
        std::begin(kThreadLevels), std::end(kThreadLevels),
        [&](isa::Level level) { return !roles_.Uses(level) || open_levels_.contains(level); });
    if (is_inside || runs_on_ == RunsOn::kMemoryCore) return absl::OkStatus();
    return InvalidInput("'", ir::PrintFirstLine(s),
                        "' stands outside a thread loop (cid, tid) that other parts of '",
                        function_.name, "' have: every core would run it");
  }

  // A barrier that is not a top-level statement opens only if all its members reach it.
  absl::Status CheckBarrier(Stmt s) const {
    if (open_levels_.contains(isa::Level::kCore) && !shared_barriers_.contains(s)) {
      return InvalidInput(
          "'", ir::PrintFirstLine(s),
          "' stands in a loop over cores (tid) under a condition, in a loop, or not "
          "for all cores: the memory core, for which it waits, cannot follow");
    }
    const bool global = BarrierOf(s) == Barrier::kGlobal;
    if (!roles_.Uses(isa::Level::kCore) || (global && !roles_.Uses(isa::Level::kCluster))) {
      return InvalidInput("'", ir::PrintFirstLine(s), "' waits for ",
                          global ? "all cores" : "a cluster",
                          ", but only number 0 on axes without a loop gets there");
    }
    return absl::OkStatus();
  }

  absl::Status Instruction(Stmt s) {
    const Expr call = s.value();
    const isa::Instruction* instruction = set_.Find(call.name());
    if (instruction == nullptr) {
      return InvalidInput("the instruction set has no '", call.name(), "'");
    }
    if (instruction->unit != isa::Unit::kControl) RETURN_IF_ERROR(InsideThreadLoops(s));
    absl::InlinedVector<int64_t, 16> fields;
    for (const isa::Operand& operand : instruction->operands) {
      const Expr argument = call.operand(operand.param);
      if (operand.kind == isa::OperandKind::kImmediate) {
        if (!argument.Is(ExprKind::kIntImm)) {
          return InvalidInput(call.name(), ": operand '", operand.name, "' must be a constant");
        }
        fields.push_back(argument.int_value());
        continue;
      }
      ASSIGN_OR_RETURN(int value, Get(argument, false));
      fields.push_back(value);
    }
    return Emit(instruction->mnemonic, fields);
  }

  absl::Status Branch(Stmt s) {
    ASSIGN_OR_RETURN(int condition, Get(s.cond(), false));
    ASSIGN_OR_RETURN(int zero, Zero());
    ASSIGN_OR_RETURN(int to_else, BranchTo("beq", {condition, zero}));
    RETURN_IF_ERROR(Block(s.then_case()));
    if (s.else_case().IsEmpty()) return ContinueFrom({to_else});
    ASSIGN_OR_RETURN(int to_end, BranchTo("jump", {}));
    RETURN_IF_ERROR(ContinueFrom({to_else}));
    RETURN_IF_ERROR(Block(s.else_case()));
    return ContinueFrom({to_end});
  }

  absl::Status Loop(Stmt s) {
    const bool constant_extent = s.extent().Is(ExprKind::kIntImm);
    if (constant_extent && s.extent().int_value() <= 0) return absl::OkStatus();
    PushCache();
    ASSIGN_OR_RETURN(int min, Get(s.min(), false));
    ASSIGN_OR_RETURN(int end, Op("add", {s.min(), s.extent()}, false));
    // Registers hold 64 bits: the end of a loop over i64 may be 2^63, which wraps.
    const bool may_wrap = s.var().type() == Type::kI64 && !s.min().IsInt(0);
    std::vector<int> skips;
    if (!constant_extent && may_wrap) {
      ASSIGN_OR_RETURN(int none, Zero());
      ASSIGN_OR_RETURN(int extent, Get(s.extent(), false));
      ASSIGN_OR_RETURN(int skip, BranchTo("bge", {none, extent}));
      skips.push_back(skip);
    } else if (!constant_extent) {
      ASSIGN_OR_RETURN(int skip, BranchTo("bge", {min, end}));
      skips.push_back(skip);
    }
    const int var = code_.NewRegister(Here() + 1);
    RETURN_IF_ERROR(Emit("mov", {var, min}));
    RETURN_IF_ERROR(NewBlock());
    const int head = Here();
    Label(std::string(s.var().name()));
    vars_[s.var()] = var;
    RETURN_IF_ERROR(Block(s.body()));
    RETURN_IF_ERROR(Emit("addi", {var, var, 1}));
    RETURN_IF_ERROR(BranchTo(may_wrap ? "bne" : "blt", {var, end}, head).status());
    PopCache();
    return ContinueFrom(skips);
  }

  absl::Status ThreadLoop(Stmt s) {
    const std::optional<isa::Level> level = isa::LevelOfAxis(s.name());
    if (!level) {
      return InvalidInput("thread axis '", s.name(),
                          "': a DianNao card has cid (clusters) and tid (cores of a cluster)");
    }
    const int64_t count = roles_.Units(s);
    PushCache();
    std::vector<int> skips;
    const bool exact = roles_.RunsExactlyOnce(s);
    const bool once = roles_.RunsAtMostOnce(s);
    std::vector<Stmt> barriers;
    ASSIGN_OR_RETURN(int var, Value("arg", {NumberSlot(*level)}));
    if (*level == isa::Level::kCore) {
      barriers = roles_.BarriersOfMemoryCore(s);
      shared_barriers_.insert(barriers.begin(), barriers.end());
      // The number of the memory core follows that of the last core; it runs no iteration.
      ASSIGN_OR_RETURN(int cores, Get(s.context().I64(count), false));
      ASSIGN_OR_RETURN(int skip, BranchTo("bge", {var, cores}));
      skips.push_back(skip);
    }
    if (!s.min().IsInt(0)) {
      ASSIGN_OR_RETURN(int min, Get(s.min(), false));
      ASSIGN_OR_RETURN(var, Value("add", {var, min}));
    }
    int end = -1;
    if (!exact) {
      ASSIGN_OR_RETURN(end, Op("add", {s.min(), s.extent()}, false));
      ASSIGN_OR_RETURN(int skip, BranchTo("bge", {var, end}));
      skips.push_back(skip);
    }
    if (!once) {
      const int counter = code_.NewRegister(Here() + 1);
      RETURN_IF_ERROR(Emit("mov", {counter, var}));
      var = counter;
    }
    RETURN_IF_ERROR(NewBlock());
    const int head = Here();
    Label(std::string(s.var().name()));
    vars_[s.var()] = var;
    open_levels_.insert(*level);
    const RunsOn outside = std::exchange(runs_on_, roles_.InBody(s, runs_on_));
    RETURN_IF_ERROR(Block(s.body()));
    runs_on_ = outside;
    open_levels_.erase(*level);
    if (!once) {
      RETURN_IF_ERROR(Emit("addi", {var, var, count}));
      RETURN_IF_ERROR(BranchTo("blt", {var, end}, head).status());
    }
    PopCache();
    if (!barriers.empty()) {
      ASSIGN_OR_RETURN(int behind, BranchTo("jump", {}));
      RETURN_IF_ERROR(ContinueFrom(std::exchange(skips, {behind})));
      for (Stmt barrier : barriers) {
        RETURN_IF_ERROR(Emit(std::string(barrier.value().name()), {}));
      }
    }
    return ContinueFrom(skips);
  }

  const Target& target_;
  const CoreRoles roles_;
  RunsOn runs_on_ = RunsOn::kCore;             // of the code being generated
  std::set<isa::Level> open_levels_;           // whose loops are around it
  absl::flat_hash_set<Stmt> shared_barriers_;  // in loops over tid, but met by memory cores
};

}  // namespace

absl::StatusOr<Code> Generate(const ir::Function& function, const Target& target,
                              isa::Program& program) {
  return Generator(function, target).Run(program);
}

}  // namespace polynao::diannao
