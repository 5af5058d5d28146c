#include "compiler/passes/effects.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "compiler/arith/logic.h"
#include "compiler/arith/wraps.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/facts.h"

namespace polynao {

using arith::Analyzer;
using arith::ConstRange;
using arith::Mode;
using arith::OperandMode;
using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

// ---- sets ---------------------------------------------------------------------------------------

BufferSet BufferSet::Everything() {
  BufferSet set;
  set.everything_ = true;
  return set;
}

bool BufferSet::Contains(size_t number) const {
  if (everything_) return true;
  const size_t word = number / kWordBits;
  return word < words_.size() && (words_[word] >> (number % kWordBits) & 1) != 0;
}

bool BufferSet::Intersects(const BufferSet& other) const {
  if (everything_) return !other.empty();
  if (other.everything_) return !empty();
  for (size_t i = 0; i < words_.size() && i < other.words_.size(); ++i) {
    if ((words_[i] & other.words_[i]) != 0) return true;
  }
  return false;
}

void BufferSet::Add(size_t number) {
  if (everything_) return;
  const size_t word = number / kWordBits;
  if (word >= words_.size()) words_.resize(word + 1, 0);
  words_[word] |= uint64_t{1} << (number % kWordBits);
}

void BufferSet::Add(const BufferSet& other) {
  if (everything_) return;
  if (other.everything_) {
    *this = other;
    return;
  }
  if (other.words_.size() > words_.size()) words_.resize(other.words_.size(), 0);
  for (size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
}

// ---- buffers ------------------------------------------------------------------------------------

Effects::Effects(const ir::Function& function, const ir::Intrinsics* intrinsics)
    : intrinsics_(intrinsics),
      aliases_(function),
      next_number_(aliases_.group_count()),
      no_loads_(&*load_sets_.emplace().first) {
  for (const ir::Param& param : function.params) {
    if (param.buffer) parameters_.insert(param.buffer.node());
  }
}

size_t Effects::Number(Buffer buffer) const {
  const auto [it, added] = numbers_.try_emplace(buffer.node(), next_number_);
  if (!added) return it->second;
  if (const std::optional<size_t> group = aliases_.Group(buffer)) return it->second = *group;
  return next_number_++;
}

size_t Effects::Outside() const {
  if (!outside_) outside_ = next_number_++;
  return *outside_;
}

BufferSet Effects::CallAccess(Expr call, bool write) const {
  if (const ir::ExternNode* callee = call.callee(); callee != nullptr) {
    BufferSet set;
    if (callee->effect == ir::Effect::kOpaque) return BufferSet::Everything();
    if (callee->effect < (write ? ir::Effect::kWrites : ir::Effect::kReads)) return set;
    set.Add(Outside());
    for (size_t i = 0; i < call.operands().size(); ++i) {
      if (!call.operand(i).Is(ExprKind::kAddress)) continue;
      if (callee->params[i].access == (write ? ir::Access::kIn : ir::Access::kOut)) continue;
      set.Add(Number(Buffer(call.operand(i).buffer())));
    }
    return set;
  }
  const ir::Function* meaning =
      intrinsics_ == nullptr ? nullptr : intrinsics_->FindMeaning(call.name());
  if (meaning != nullptr && meaning->params.size() != call.operands().size()) meaning = nullptr;
  BufferSet set;
  bool has_address = false;
  for (size_t i = 0; i < call.operands().size(); ++i) {
    const Expr operand = call.operand(i);
    if (!operand.Is(ExprKind::kAddress)) continue;
    has_address = true;
    const ir::Access access = meaning == nullptr ? ir::Access::kInOut : meaning->params[i].access;
    if (access == (write ? ir::Access::kIn : ir::Access::kOut)) continue;
    set.Add(Number(Buffer(operand.buffer())));
  }
  return has_address ? set : BufferSet::Everything();
}

// ---- expressions --------------------------------------------------------------------------------

namespace {

// Arithmetic that stops the program if it wraps in an index.
bool IsCheckedInIndex(Expr e) {
  return (e.Is(ExprKind::kAdd) || e.Is(ExprKind::kSub) || e.Is(ExprKind::kMul)) &&
         (e.type() == ir::Type::kI32 || e.type() == ir::Type::kI64);
}

bool IsIntDivision(Expr e) {
  return (e.Is(ExprKind::kDiv) || e.Is(ExprKind::kMod)) && ir::IsInt(e.type());
}

}  // namespace

bool Effects::IsPureAddress(Expr e) const {
  if (!e.Is(ExprKind::kAddress)) return false;
  for (Expr index : e.operands()) {
    if (!exprs_.At(index).pure) return false;
  }
  return true;
}

Effects::ExprInfo Effects::Compute(Expr e) {
  // An extern function that reads is a load of all that it may read.
  const bool is_read = e.callee() != nullptr && e.callee()->effect == ir::Effect::kReads;
  ExprInfo info{.loads = no_loads_};
  std::optional<BufferSet> loads;  // if they are those of no operand
  for (size_t i = 0; i < e.operands().size(); ++i) {
    const ExprInfo& operand = exprs_.At(e.operand(i));
    if (info.loads == no_loads_) {
      info.loads = operand.loads;
    } else if (operand.loads != no_loads_ && operand.loads != info.loads) {
      if (!loads) loads = *info.loads;
      loads->Add(*operand.loads);
    }
    info.pure = info.pure && (operand.pure || (is_read && IsPureAddress(e.operand(i))));
    info.never_traps_as_index = info.never_traps_as_index && operand.never_traps_as_index;
    info.never_traps_as_data =
        info.never_traps_as_data &&
        (OperandMode(e, i, Mode::kData) == Mode::kIndex ? operand.never_traps_as_index
                                                        : operand.never_traps_as_data);
  }
  const bool impure =
      e.Is(ExprKind::kAddress) || (e.Is(ExprKind::kCall) && !is_read && !ir::IsPureCall(e));
  if (e.Is(ExprKind::kLoad) || is_read) {
    if (!loads) loads = *info.loads;
    if (is_read) {
      loads->Add(CallAccess(e, /*write=*/false));
    } else {
      loads->Add(Number(Buffer(e.buffer())));
    }
  }
  if (loads) info.loads = &*load_sets_.insert(*std::move(loads)).first;
  if (impure) info.pure = false;
  if (impure || arith::IsTrap(e)) info.never_traps_as_data = false;
  if (!info.never_traps_as_data || IsCheckedInIndex(e)) info.never_traps_as_index = false;
  return info;
}

const Effects::ExprInfo& Effects::Info(Expr e) {
  if (const ExprInfo* info = exprs_.Find(e)) return *info;
  // Without recursion: expressions of generated programs get deep.
  stack_.emplace_back(e, 0);
  while (!stack_.empty()) {
    auto& [top, next] = stack_.back();
    if (next < top.operands().size()) {
      const Expr operand = top.operand(next++);
      if (!exprs_.Contains(operand)) stack_.emplace_back(operand, 0);
    } else {
      exprs_.Set(top, Compute(top));
      stack_.pop_back();
    }
  }
  return exprs_.At(e);
}

const BufferSet& Effects::Loads(Expr e) { return *Info(e).loads; }

bool Effects::IsPure(Expr e) { return Info(e).pure; }

bool Effects::NeverTraps(Expr e, Mode mode) {
  const ExprInfo& info = Info(e);
  return mode == Mode::kIndex ? info.never_traps_as_index : info.never_traps_as_data;
}

// ---- statements ---------------------------------------------------------------------------------

const BufferSet& Effects::Reads(Stmt s) {
  if (const auto it = reads_.find(s.node()); it != reads_.end()) return it->second;
  BufferSet reads;
  for (Expr e : s.operands()) reads.Add(Loads(e));
  if (s.Is(StmtKind::kAllocate)) {
    for (Expr extent : s.buffer()->extents) reads.Add(Loads(extent));
  }
  if (s.Is(StmtKind::kEvaluate)) reads.Add(CallAccess(s.value(), /*write=*/false));
  for (Stmt child : s.children()) reads.Add(Reads(child));
  return reads_.emplace(s.node(), std::move(reads)).first->second;
}

const BufferSet& Effects::Writes(Stmt s) {
  if (const auto it = writes_.find(s.node()); it != writes_.end()) return it->second;
  BufferSet writes;
  // The contents of an allocation are unknown anew.
  if (s.Is(StmtKind::kAllocate) || s.Is(StmtKind::kStore)) writes.Add(Number(s.buffer()));
  if (s.Is(StmtKind::kEvaluate)) writes.Add(CallAccess(s.value(), /*write=*/true));
  for (Stmt child : s.children()) writes.Add(Writes(child));
  return writes_.emplace(s.node(), std::move(writes)).first->second;
}

bool Effects::Conflict(Stmt a, Stmt b) {
  return Writes(a).Intersects(Writes(b)) || Writes(a).Intersects(Reads(b)) ||
         Reads(a).Intersects(Writes(b));
}

// ---- what may stop the program ------------------------------------------------------------------

bool Effects::MayTrap(Expr e, Analyzer& facts, Mode mode) {
  if (NeverTraps(e, mode)) return false;
  if (mode == Mode::kIndex && facts.CanOverflow(e)) return true;
  absl::flat_hash_set<Expr> safe;
  return MayTrapBelow(e, facts, mode, safe);
}

namespace {

// Assumes of the parts of `condition` those that are facts about mathematical integers, which data
// that may wrap is not.
void AssumeParts(Expr condition, bool truth, bool is_index, Analyzer& facts) {
  if (condition.Is(truth ? ExprKind::kAnd : ExprKind::kOr)) {
    AssumeParts(condition.operand(0), truth, is_index, facts);
    AssumeParts(condition.operand(1), truth, is_index, facts);
  } else if (is_index || !facts.CanOverflow(condition)) {
    facts.Assume(condition, truth);
  }
}

}  // namespace

// `safe` holds expressions that can not trap under the same facts, in kIndex and hence in kData.
// Where an index begins, all that is below it is asked at once whether it may wrap.
bool Effects::MayTrapBelow(Expr e, Analyzer& facts, Mode mode, absl::flat_hash_set<Expr>& safe) {
  if (NeverTraps(e, mode) || safe.contains(e)) return false;
  const auto operand_traps = [&](size_t i) {
    const Mode inner = OperandMode(e, i, mode);
    return (inner != mode && facts.CanOverflow(e.operand(i))) ||
           MayTrapBelow(e.operand(i), facts, inner, safe);
  };
  const auto guarded_traps = [&](size_t i, bool truth) {
    Analyzer::Scope scope(facts);
    const bool is_index = e.Is(ExprKind::kSelect) || mode == Mode::kIndex;
    AssumeParts(e.operand(0), truth, is_index, facts);
    absl::flat_hash_set<Expr> inner;
    return MayTrapBelow(e.operand(i), facts, mode, inner);
  };
  bool traps = false;
  switch (e.kind()) {
    case ExprKind::kAnd:
    case ExprKind::kOr:
      traps = operand_traps(0) || guarded_traps(1, e.Is(ExprKind::kAnd));
      break;
    case ExprKind::kSelect:
      traps = operand_traps(0) || guarded_traps(1, true) || guarded_traps(2, false);
      break;
    case ExprKind::kLet: {
      traps = operand_traps(0);
      if (traps) break;
      Analyzer::Scope scope(facts);
      facts.BindLet(e.var(), e.operand(0), mode);
      absl::flat_hash_set<Expr> inner;
      traps = MayTrapBelow(e.operand(1), facts, mode, inner);
      break;
    }
    default:
      for (size_t i = 0; i < e.operands().size() && !traps; ++i) traps = operand_traps(i);
      if (traps) break;
      if (e.Is(ExprKind::kLoad)) {
        traps =
            !parameters_.contains(e.buffer()) || !IsInside(Buffer(e.buffer()), e.operands(), facts);
      } else if (e.Is(ExprKind::kAddress)) {
        traps = !IsInside(Buffer(e.buffer()), e.operands(), facts);
      } else if (e.Is(ExprKind::kCall)) {
        traps = !ir::SurelyReturns(e);
      } else if (IsIntDivision(e)) {
        traps = facts.Range(e.operand(1), Mode::kData).Contains(0) &&
                !facts.CanProve(ir::Ne(e.operand(1), e.context().Const(e.type(), 0)), Mode::kData);
      }
  }
  if (!traps && mode == Mode::kIndex) safe.insert(e);
  return traps;
}

bool Effects::MayTrap(Stmt s, Analyzer& facts) {
  switch (s.kind()) {
    case StmtKind::kFor: {
      if (MayTrap(s.min(), facts) || MayTrap(s.extent(), facts)) return true;
      // The last value must fit the variable's type.
      if (!HasValuesInType(facts, s.min(), s.extent())) return true;
      Analyzer::Scope scope(facts);
      facts.BindLoop(s.var(), s.min(), s.extent());
      return MayTrap(s.body(), facts);
    }
    case StmtKind::kIf: {
      if (MayTrap(s.cond(), facts)) return true;
      for (const bool truth : {true, false}) {
        Analyzer::Scope scope(facts);
        facts.Assume(s.cond(), truth);
        if (MayTrap(truth ? s.then_case() : s.else_case(), facts)) return true;
      }
      return false;
    }
    case StmtKind::kLet: {
      if (MayTrap(s.value(), facts, Mode::kData)) return true;
      Analyzer::Scope scope(facts);
      facts.BindLet(s.var(), s.value());
      return MayTrap(s.body(), facts);
    }
    case StmtKind::kAllocate:
      for (Expr extent : s.buffer()->extents) {
        if (MayTrap(extent, facts) || facts.Range(extent).min < 0) return true;
      }
      return MayTrap(s.body(), facts);
    case StmtKind::kStore:
      for (Expr index : s.indices()) {
        if (MayTrap(index, facts)) return true;
      }
      return MayTrap(s.value(), facts, Mode::kData) || !IsInside(s.buffer(), s.indices(), facts);
    case StmtKind::kEvaluate:
      return true;
    case StmtKind::kPragma:
    case StmtKind::kSeq:
      for (Expr e : s.operands()) {
        if (MayTrap(e, facts)) return true;
      }
      for (Stmt child : s.children()) {
        if (MayTrap(child, facts)) return true;
      }
      return false;
  }
  POLYNAO_UNREACHABLE(static_cast<int>(s.kind()));
}

}  // namespace polynao
