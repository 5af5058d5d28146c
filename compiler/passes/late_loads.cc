#include "compiler/passes/late_loads.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/core_memory.h"
#include "compiler/target/core_roles.h"
#include "isa/levels.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Stmt;
using ir::StmtKind;

// One loop over cores.
class LateLoads {
 public:
  // `written`: what all cores write meanwhile.
  LateLoads(Stmt loop, const absl::flat_hash_set<Buffer>& written, const Target& target)
      : loop_(loop), written_(written), target_(target) {}

  Stmt Arranged() {
    Collect(loop_.body());
    FindReaders();
    // All go in front of the first reader of any, so that none waits for another one's.
    size_t reader = items_.size();
    for (size_t i = 0; i < items_.size(); ++i) {
      if (HoldsUp(i)) reader = std::min(reader, items_[i].reader);
    }
    if (reader == items_.size()) return loop_;
    for (size_t i = 0; i < reader; ++i) {
      if (HoldsUp(i)) late_.push_back(items_[i].stmt);
    }
    reader_ = items_[reader].stmt;
    return ir::MapChildren(loop_, [this](Stmt s) { return Rest(s); });
  }

 private:
  struct Item {
    Stmt stmt;
    AccessedBuffers accessed;
    // Of a load that may go, the item that accesses next what it fills; else the number of items.
    size_t reader = 0;
    // The last of the items that access next what it, or a statement in it, loads; 0: there is none.
    size_t needed_until = 0;
  };

  bool IsLoad(Stmt s) const {
    if (!s.Is(StmtKind::kEvaluate)) return false;
    const isa::Instruction* instruction = target_.instructions->Find(s.value().name());
    if (instruction == nullptr || instruction->queue != isa::Queue::kIo) return false;
    const std::vector<BufferOperand> operands = BufferOperands(s, target_);
    return std::any_of(operands.begin(), operands.end(), [](const BufferOperand& operand) {
      return operand.is_written && IsOfCore(operand.buffer);
    });
  }

  // The statements between allocations, in their order.
  void Collect(Stmt s) {
    if (s.Is(StmtKind::kSeq) || IsAllocation(s)) {
      for (Stmt child : s.children()) Collect(child);
      return;
    }
    items_.push_back({.stmt = s, .accessed = AccessedBy(s, target_)});
  }

  void FindReaders() {
    absl::flat_hash_map<Buffer, size_t> next;  // that accesses a buffer
    for (size_t i = items_.size(); i-- > 0;) {
      Item& item = items_[i];
      const auto& [reads, writes, allocates, is_known] = item.accessed;
      item.reader = items_.size();
      const bool may_go = IsLoad(item.stmt) && writes.size() == 1 &&
                          std::all_of(reads.begin(), reads.end(), [this](Buffer b) {
                            return b->scope == isa::kGmem && !written_.contains(b);
                          });
      if (may_go) {
        const auto reader = next.find(*writes.begin());
        if (reader != next.end()) item.reader = reader->second;
      }
      ir::ForEachStmt(item.stmt, [&](Stmt s) {
        if (!IsLoad(s)) return true;
        for (const BufferOperand& operand : BufferOperands(s, target_)) {
          const auto at = next.find(operand.buffer);
          if (operand.is_written && at != next.end()) {
            item.needed_until = std::max(item.needed_until, at->second);
          }
        }
        return true;
      });
      for (const Buffer b : reads) next[b] = i;
      for (const Buffer b : writes) next[b] = i;
    }
  }
  bool Multiplies(Stmt s) const {
    if (!s.Is(StmtKind::kEvaluate)) return false;
    const isa::Instruction* instruction = target_.instructions->Find(s.value().name());
    return instruction != nullptr && instruction->unit == isa::Unit::kTensor;
  }

  // Whether another load, behind item i, is needed sooner, for products that take longer than a load, and none is
  // needed later, for which its reader would wait then. It looks at so many items at most. Of several vectors so only
  // the last goes: where products take less than two loads, two cost 4 to 6 % (56x56x128,128x3x3x128 with stride 2).
  bool HoldsUp(size_t i) const {
    constexpr size_t kMostItems = 64;
    const size_t reader = items_[i].reader;
    if (reader == items_.size() || reader - i > kMostItems) return false;
    bool holds_up = false, is_long = false;
    for (size_t j = i + 1; j < reader; ++j) {
      if (items_[j].needed_until > reader) return false;
      holds_up = holds_up || items_[j].reader < reader;
      is_long = is_long || ir::AnyStmt(items_[j].stmt, [this](Stmt s) { return Multiplies(s); });
    }
    return holds_up && is_long;
  }

  Stmt Rest(Stmt s) {
    if (s == reader_) {
      std::vector<Stmt> behind = late_;
      behind.push_back(s);
      return s.context().Seq(behind);
    }
    if (!s.Is(StmtKind::kSeq)) {
      return IsAllocation(s) ? ir::MapChildren(s, [this](Stmt child) { return Rest(child); }) : s;
    }
    std::vector<Stmt> rest;
    for (Stmt child : s.children()) {
      if (std::find(late_.begin(), late_.end(), child) == late_.end()) rest.push_back(Rest(child));
    }
    return s.context().Seq(rest);
  }

  const Stmt loop_;
  const absl::flat_hash_set<Buffer>& written_;
  const Target& target_;
  std::vector<Item> items_;
  std::vector<Stmt> late_;
  Stmt reader_;
};

Stmt Walk(Stmt s, const absl::flat_hash_set<Buffer>& written, const Target& target) {
  if (IsCoreLoop(s)) return LateLoads(s, written, target).Arranged();
  if (!ir::AnyStmt(s, IsCoreLoop)) return s;
  return ir::MapChildren(s, [&](Stmt child) { return Walk(child, written, target); });
}

}  // namespace

Stmt LoadLate(Stmt s, const Target& target) {
  if (!ir::AnyStmt(s, IsCoreLoop)) return s;
  // Whole loops over clusters, between which waits for all stand.
  if (IsThreadLoop(s)) return Walk(s, AccessedBy(s, target).writes, target);
  return ir::MapChildren(s, [&](Stmt child) { return LoadLate(child, target); });
}

}  // namespace polynao
