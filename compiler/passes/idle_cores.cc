#include "compiler/passes/idle_cores.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/visit.h"
#include "compiler/target/core_roles.h"
#include "isa/levels.h"

namespace polynao {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

bool IsOfCore(ir::Buffer buffer) {
  return buffer->scope == isa::kNmem || buffer->scope == isa::kWmem;
}

class IdleCores {
 public:
  explicit IdleCores(const Target& target) : target_(target) {}

  Stmt Walk(Stmt s) {
    if (!IsThreadLoop(s)) return ir::MapChildren(s, [this](Stmt child) { return Walk(child); });
    numbers_.insert(s.var());
    Stmt result;
    if (IsCoreLoop(s)) {
      common_.reset();
      around_.clear();
      FindCommon(s.body());
      result =
          common_ && !common_->empty() ? ir::MapChildren(s, [this](Stmt b) { return Skip(b); }) : s;
    } else {
      result = ir::MapChildren(s, [this](Stmt child) { return Walk(child); });
    }
    numbers_.erase(s.var());
    return result;
  }

 private:
  // Of the core's numbers alone.
  bool IsOfNumbers(Expr condition) const {
    const absl::flat_hash_set<ir::Var> used = ir::FreeVars(condition);
    bool reads = false;
    ir::ForEachExpr(condition, [&](Expr e) { reads = reads || e.Is(ExprKind::kLoad); });
    return !reads && !used.empty() && std::all_of(used.begin(), used.end(), [this](ir::Var v) {
      return numbers_.contains(v);
    });
  }

  bool WritesShared(Stmt s) const {
    if (s.Is(StmtKind::kStore)) return !IsOfCore(s.buffer());
    if (!s.Is(StmtKind::kEvaluate)) return false;
    const isa::Instruction* instruction = target_.instructions->Find(s.value().name());
    return instruction == nullptr ||
           std::any_of(instruction->operands.begin(), instruction->operands.end(),
                       [&](const isa::Operand& operand) {
                         return operand.kind == isa::OperandKind::kAddress && operand.is_written &&
                                !IsOfCore(ir::Buffer(s.value().operand(operand.param).buffer()));
                       });
  }

  void FindCommon(Stmt s) {
    if (s.Is(StmtKind::kIf) && IsOfNumbers(s.cond())) {
      around_.push_back(s.cond());
      FindCommon(s.then_case());
      around_.pop_back();
      FindCommon(s.else_case());
      return;
    }
    if (WritesShared(s)) {
      if (!common_) {
        common_ = around_;
      } else {
        std::erase_if(*common_, [this](Expr c) {
          return std::find(around_.begin(), around_.end(), c) == around_.end();
        });
      }
    }
    for (Stmt child : s.children()) FindCommon(child);
  }

  static bool OnlyStoresToCore(Stmt s) {
    bool stores = false, other = false;
    ir::ForEachStmt(s, [&](Stmt x) {
      if (x.Is(StmtKind::kStore)) (IsOfCore(x.buffer()) ? stores : other) = true;
      if (x.Is(StmtKind::kEvaluate) || x.Is(StmtKind::kAllocate)) other = true;
      return !other;
    });
    return stores && !other;
  }

  Stmt Skip(Stmt s) const {
    if (s.Is(StmtKind::kIf) &&
        std::find(common_->begin(), common_->end(), s.cond()) != common_->end()) {
      return s;
    }
    const bool is_block = s.Is(StmtKind::kSeq) || s.Is(StmtKind::kAllocate);
    if (is_block || !OnlyStoresToCore(s)) {
      return ir::MapChildren(s, [this](Stmt child) { return Skip(child); });
    }
    Stmt result = s;
    for (size_t i = common_->size(); i-- > 0;) result = s.context().If((*common_)[i], result);
    return result;
  }

  const Target& target_;
  absl::flat_hash_set<ir::Var> numbers_;
  std::optional<std::vector<Expr>> common_;  // conditions around all that others see
  std::vector<Expr> around_;
};

}  // namespace

Stmt SkipScalarCodeOfIdleCores(Stmt s, const Target& target) { return IdleCores(target).Walk(s); }

}  // namespace polynao
