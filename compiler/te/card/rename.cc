#include "compiler/te/card/rename.h"

#include <algorithm>

#include "base/check.h"

namespace polynao::te {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

Expr Rename::Mutate(Expr e) {
  e = MutateOperands(e);
  const bool reads = e.Is(ExprKind::kLoad) || e.Is(ExprKind::kAddress);
  const auto it = reads ? to_.find(ir::Buffer(e.buffer())) : to_.end();
  if (it == to_.end()) return e;
  const std::vector<Expr> at = At(it->first, it->second, e.operands());
  return e.Is(ExprKind::kLoad) ? e.context().Load(it->second.to, at)
                               : e.context().Address(it->second.to, at);
}

Stmt Rename::Mutate(Stmt s) {
  s = MutateChildren(s);
  const auto it = s.Is(StmtKind::kStore) ? to_.find(s.buffer()) : to_.end();
  if (it == to_.end()) return s;
  return s.context().Store(it->second.to, At(it->first, it->second, s.indices()), s.value());
}

std::vector<Expr> Rename::At(ir::Buffer from, const Renamed& renamed,
                             absl::Span<const Expr> indices) {
  std::vector<Expr> at(indices.begin(), indices.end());
  const ir::Buffer to = renamed.to;
  const bool is_same = from->extents.size() == to->extents.size() &&
                       std::equal(from->extents.begin(), from->extents.end(), to->extents.begin());
  if (renamed.strides.empty() && is_same) return at;
  POLYNAO_CHECK(to->extents.size() == 1) << to->name;
  ir::Context& c = *to->context;
  const ir::Type type = to->extents[0].type();
  if (renamed.strides.empty()) {
    Expr position = at.empty() ? c.Int(type, 0) : at[0];
    for (size_t d = 1; d < at.size(); ++d) position = position * from->extents[d] + at[d];
    return {position};
  }
  POLYNAO_CHECK(renamed.strides.size() == at.size()) << to->name;
  Expr position = c.Int(type, renamed.offset);
  for (size_t d = 0; d < at.size(); ++d) position = position + at[d] * renamed.strides[d];
  return {position};
}

}  // namespace polynao::te
