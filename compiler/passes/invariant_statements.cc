#include "compiler/passes/invariant_statements.h"

#include <algorithm>
#include <cstddef>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/visit.h"

namespace polynao {
namespace {

using ir::Stmt;
using ir::StmtKind;

// A statement of a body, without the lets around it; or a let, whose value counts as a read.
struct Item {
  Stmt s;
  BufferSet reads, writes;
};

void Collect(Stmt s, Effects& effects, std::vector<Item>& items) {
  if (s.Is(StmtKind::kSeq)) {
    for (Stmt child : s.children()) Collect(child, effects, items);
  } else if (s.Is(StmtKind::kLet)) {
    items.push_back({.s = s, .reads = effects.Loads(s.value()), .writes = {}});
    Collect(s.body(), effects, items);
  } else {
    items.push_back({.s = s, .reads = effects.Reads(s), .writes = effects.Writes(s)});
  }
}

bool HasCall(Stmt root) {
  return ir::AnyStmt(root, [](Stmt s) { return s.Is(StmtKind::kEvaluate); });
}

Stmt Without(Stmt s, const absl::flat_hash_set<Stmt>& gone) {
  if (gone.contains(s)) return s.context().Nop();
  if (!s.Is(StmtKind::kSeq) && !s.Is(StmtKind::kLet)) return s;
  const Stmt result = ir::MapChildren(s, [&](Stmt child) { return Without(child, gone); });
  return s.Is(StmtKind::kLet) && result.body().IsEmpty() ? result.body() : result;
}

}  // namespace

InvariantStatements FindInvariantStatements(Stmt loop, Effects& effects,
                                            const std::function<bool(Stmt)>& varies) {
  InvariantStatements result{.statements = {}, .loop = loop};
  std::vector<Item> items;
  Collect(loop.body(), effects, items);
  const auto may_move = [&](const Item& item) {
    return !item.writes.empty() && !varies(item.s) && !HasCall(item.s);
  };
  // Most loops have no such statement.
  if (std::none_of(items.begin(), items.end(), may_move)) return result;
  // What the items behind each item write.
  std::vector<BufferSet> later_writes(items.size() + 1);
  for (size_t i = items.size(); i-- > 0;) {
    later_writes[i] = later_writes[i + 1];
    later_writes[i].Add(items[i].writes);
  }
  // What the items in front that stay in the loop read and write.
  BufferSet earlier_reads, earlier_writes;
  absl::flat_hash_set<Stmt> gone;
  for (size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    BufferSet other_writes = earlier_writes;
    other_writes.Add(later_writes[i + 1]);
    if (may_move(item) && !item.writes.Intersects(other_writes) &&
        !item.writes.Intersects(earlier_reads) && !item.reads.Intersects(item.writes) &&
        !item.reads.Intersects(other_writes)) {
      result.statements.push_back(item.s);
      gone.insert(item.s);
      continue;
    }
    earlier_reads.Add(item.reads);
    earlier_writes.Add(item.writes);
  }
  if (gone.empty()) return result;
  const Stmt rest = Without(loop.body(), gone);
  result.loop = rest.IsEmpty() ? rest : loop.context().Rebuild(loop, loop.operands(), {rest});
  return result;
}

}  // namespace polynao
