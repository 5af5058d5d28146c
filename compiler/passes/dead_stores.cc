#include "compiler/passes/dead_stores.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "compiler/ir/aliases.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/core_memory.h"
#include "compiler/passes/pass.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

class Dropping {
 public:
  explicit Dropping(const ir::Function& function) : aliases_(function) {
    FindAllocations(function.body);
    FindReads(function.body);
    while (!reached_.empty()) {
      const Buffer buffer = reached_.back();
      reached_.pop_back();
      if (!live_.insert(buffer).second) continue;
      for (const Stmt store : stores_[buffer]) ReadOperands(store);
    }
  }

  int count() const { return count_; }

  Stmt Drop(Stmt s) {
    if (s.Is(StmtKind::kStore) && IsDead(s.buffer())) {
      ++count_;
      return s.context().Seq({});
    }
    if (IsAllocation(s)) {
      const Stmt allocation = s.Is(StmtKind::kAllocate) ? s : s.body();
      if (IsDead(allocation.buffer())) return Drop(allocation.body());
    }
    const Stmt result = ir::MapChildren(s, [this](Stmt child) { return Drop(child); });
    if (result == s || result.children().empty()) return result;
    const auto is_empty = [](Stmt child) { return child.IsEmpty(); };
    const bool all = std::all_of(result.children().begin(), result.children().end(), is_empty);
    return all ? s.context().Seq({}) : result;
  }

 private:
  void FindAllocations(Stmt root) {
    ir::ForEachStmt(root, [this](Stmt s) {
      if (s.Is(StmtKind::kAllocate) && !aliases_.Group(s.buffer())) {
        allocations_.insert(s.buffer());
      }
      return true;
    });
  }

  // What is read whatever becomes of the stores. Those to allocations are kept in stores_.
  void FindReads(Stmt root) {
    ir::ForEachStmt(root, [this](Stmt s) {
      if (s.Is(StmtKind::kStore) && allocations_.contains(s.buffer())) {
        stores_[s.buffer()].push_back(s);
      } else {
        ReadOperands(s);
      }
      return true;
    });
  }

  void ReadOperands(Stmt s) {
    for (Expr operand : s.operands()) {
      ir::ForEachExpr(operand, [this](Expr e) {
        if (e.Is(ExprKind::kLoad) || e.Is(ExprKind::kAddress)) reached_.emplace_back(e.buffer());
      });
    }
  }

  bool IsDead(Buffer buffer) const {
    return allocations_.contains(buffer) && !live_.contains(buffer);
  }

  const ir::Aliases aliases_;
  absl::flat_hash_set<Buffer> allocations_;  // those that overlap no other buffer
  absl::flat_hash_map<Buffer, std::vector<Stmt>> stores_;
  absl::flat_hash_set<Buffer> live_;
  std::vector<Buffer> reached_;  // yet to be made live
  int count_ = 0;
};

bool DropIn(ir::Function& function, int& count) {
  const Stmt before = function.body;
  // Conditions, bounds and lets that went with their bodies read nothing any more.
  while (true) {
    Dropping dropping(function);
    const Stmt body = dropping.Drop(function.body);
    count += dropping.count();
    if (body == function.body) return body != before;
    function.body = body;
  }
}

}  // namespace

absl::StatusOr<bool> DropDeadStores(ir::Function& function) {
  int count = 0;
  return DropIn(function, count);
}

PassInfo DeadStoresPass() {
  return {.name = "dead_stores",
          .doc = "takes out stores to allocations that nobody reads, and what feeds only them",
          .run = [](ir::Function& function, const PassEnvironment& environment,
                    const OptionValues&) -> absl::StatusOr<bool> {
            int count = 0;
            const bool changed = DropIn(function, count);
            if (environment.stats != nullptr && changed) {
              environment.stats->push_back(StrCat(count, " dead stores"));
            }
            return changed;
          }};
}

}  // namespace polynao
