#include "compiler/passes/scalar_code.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/core_memory.h"
#include "compiler/target/core_roles.h"
#include "isa/granularity.h"
#include "isa/levels.h"

namespace polynao {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

class IdleCores {
 public:
  explicit IdleCores(const Target& target) : target_(target) {}

  // What idle cores do not store any more.
  const absl::flat_hash_set<ir::Buffer>& skipped() const { return skipped_; }

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
    if (target_.instructions->Find(s.value().name()) == nullptr) return true;
    const std::vector<BufferOperand> operands = BufferOperands(s, target_);
    return std::any_of(operands.begin(), operands.end(), [](const BufferOperand& operand) {
      return operand.is_written && !IsOfCore(operand.buffer);
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

  // What it stores is not constant. Constants need nothing that is defined, and copies may read them.
  static bool OnlyStoresLoadsToCore(Stmt s) {
    bool loads = false, stores = false, other = false;
    ir::ForEachStmt(s, [&](Stmt x) {
      if (x.Is(StmtKind::kStore)) (IsOfCore(x.buffer()) ? stores : other) = true;
      if (x.Is(StmtKind::kEvaluate) || x.Is(StmtKind::kAllocate)) other = true;
      return !other;
    });
    ir::ForEachExprIn(s, [&](Expr e) { loads = loads || e.Is(ExprKind::kLoad); });
    return loads && stores && !other;
  }

  Stmt Skip(Stmt s) {
    if (s.Is(StmtKind::kIf) &&
        std::find(common_->begin(), common_->end(), s.cond()) != common_->end()) {
      return s;
    }
    const bool is_block = s.Is(StmtKind::kSeq) || s.Is(StmtKind::kAllocate);
    if (is_block || !OnlyStoresLoadsToCore(s)) {
      return ir::MapChildren(s, [this](Stmt child) { return Skip(child); });
    }
    ir::ForEachStmt(s, [this](Stmt x) {
      if (x.Is(StmtKind::kStore)) skipped_.insert(x.buffer());
      return true;
    });
    Stmt result = s;
    for (size_t i = common_->size(); i-- > 0;) result = s.context().If((*common_)[i], result);
    return result;
  }

  const Target& target_;
  absl::flat_hash_set<ir::Var> numbers_;
  std::optional<std::vector<Expr>> common_;  // conditions around all that others see
  std::vector<Expr> around_;
  absl::flat_hash_set<ir::Buffer> skipped_;
};

// Fills memory of cores that scalar code may read, and what it leaves out on idle ones.
class Fills {
 public:
  Fills(const Target& target, const absl::flat_hash_set<ir::Buffer>& skipped)
      : target_(target), skipped_(skipped) {}

  Stmt Walk(Stmt s) {
    if (!IsCoreLoop(s)) return ir::MapChildren(s, [this](Stmt child) { return Walk(child); });
    needed_.clear(), calls_.clear();
    ir::ForEachStmt(s, [this](Stmt x) {
      Find(x);
      return true;
    });
    AddSources();
    needed_.insert(skipped_.begin(), skipped_.end());
    if (needed_.empty()) return s;
    return ir::MapChildren(s, [this](Stmt child) { return Filled(child); });
  }

 private:
  void Find(Stmt s) {
    if (s.Is(StmtKind::kStore)) {
      ir::ForEachExpr(s.value(), [this](Expr e) {
        if (e.Is(ExprKind::kLoad) && IsOfCore(ir::Buffer(e.buffer()))) {
          needed_.insert(ir::Buffer(e.buffer()));
        }
      });
    }
    if (std::vector<BufferOperand> operands = BufferOperands(s, target_); !operands.empty()) {
      calls_.push_back(std::move(operands));
    }
  }
  // What instructions compute something needed from is needed, too.
  void AddSources() {
    for (size_t before = 0; before != needed_.size();) {
      before = needed_.size();
      for (const std::vector<BufferOperand>& operands : calls_) {
        const bool writes = std::any_of(operands.begin(), operands.end(), [this](const auto& o) {
          return o.is_written && needed_.contains(o.buffer);
        });
        for (const BufferOperand& operand : operands) {
          if (writes && operand.is_read) needed_.insert(operand.buffer);
        }
      }
    }
  }

  // All elements; those behind the last whole group of the vector unit one by one.
  Stmt Fill(ir::Buffer buffer, ir::Context& c) const {
    const Expr extent = buffer->extents[0];
    const ir::Type index = extent.type();
    const std::string name = StrCat("fill.", std::string(ir::TypeName(buffer->type)));
    const bool has_instruction = target_.instructions->Find(name) != nullptr;
    const int64_t count = extent.int_value();
    const int64_t whole = has_instruction ? count / isa::kVectorGroup * isa::kVectorGroup : 0;
    const Expr zero = c.Const(buffer->type, 0);
    std::vector<Stmt> stmts;
    if (whole > 0) {
      stmts.push_back(c.Evaluate(c.Call(
          ir::Type::kI32, name, {c.Address(buffer, {c.Int(index, 0)}), zero, c.I64(whole)})));
    }
    if (whole < count) {
      const ir::Var i = c.NewVar("i", index);
      stmts.push_back(
          c.For(i, c.Int(index, whole), c.Int(index, count - whole), c.Store(buffer, {i}, zero)));
    }
    return c.Seq(stmts);
  }

  Stmt Filled(Stmt s) const {
    const Stmt below = ir::MapChildren(s, [this](Stmt child) { return Filled(child); });
    if (!s.Is(StmtKind::kAllocate)) return below;
    const ir::Buffer buffer = s.buffer();
    const bool is_needed = buffer->scope == isa::kNmem && needed_.contains(buffer);
    if (!is_needed || buffer->extents.size() != 1 || !buffer->extents[0].Is(ExprKind::kIntImm)) {
      return below;
    }
    ir::Context& c = s.context();
    return c.Allocate(buffer, BeforeUse(below.body(), buffer, Fill(buffer, c)));
  }

  static bool Uses(Stmt s, ir::Buffer buffer) {
    bool uses = ir::AnyStmt(
        s, [&](Stmt x) { return x.Is(StmtKind::kStore) && ir::Buffer(x.buffer()) == buffer; });
    ir::ForEachExprIn(s, [&](Expr e) {
      uses = uses || (e.buffer() != nullptr && ir::Buffer(e.buffer()) == buffer);
    });
    return uses;
  }
  // In front of the first statement that uses the buffer, so that it lives no longer than before.
  static Stmt BeforeUse(Stmt s, ir::Buffer buffer, Stmt fill) {
    if (!s.Is(StmtKind::kSeq) && !IsAllocation(s)) return s.context().Seq({fill, s});
    bool done = false;
    return ir::MapChildren(s, [&](Stmt child) {
      if (done || !Uses(child, buffer)) return child;
      done = true;
      return BeforeUse(child, buffer, fill);
    });
  }

  const Target& target_;
  const absl::flat_hash_set<ir::Buffer>& skipped_;
  absl::flat_hash_set<ir::Buffer> needed_;  // what scalar code reads depends on their elements
  std::vector<std::vector<BufferOperand>> calls_;
};

}  // namespace

Stmt DefineWhatScalarCodeReads(Stmt s, const Target& target) {
  IdleCores idle(target);
  const Stmt skipping = idle.Walk(s);
  return Fills(target, idle.skipped()).Walk(skipping);
}

}  // namespace polynao
