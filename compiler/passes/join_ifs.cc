#include "compiler/passes/join_ifs.h"

#include <functional>

#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/pass.h"

namespace polynao {
namespace {

using ir::Stmt;
using ir::StmtKind;

void Append(Stmt s, std::vector<Stmt>& list) {
  if (s.Is(StmtKind::kSeq)) {
    list.insert(list.end(), s.children().begin(), s.children().end());
  } else {
    list.push_back(s);
  }
}

bool CanJoin(Stmt first, Stmt second, Effects& effects) {
  return first.Is(StmtKind::kIf) && second.Is(StmtKind::kIf) && first.cond() == second.cond() &&
         !effects.MayChange(first.cond(), first);
}

bool Join(ir::Function& function, const Target& target, int& joined) {
  Effects effects(function, target.instructions ? &target.instructions->intrinsics() : nullptr);
  const std::function<Stmt(Stmt)> join = [&](Stmt s) {
    const Stmt inner = ir::MapChildren(s, join);
    if (!inner.Is(StmtKind::kSeq)) return inner;
    const std::vector<Stmt> children = JoinNeighbours(inner.children(), effects, joined);
    return children.size() == inner.children().size() ? inner : function.context->Seq(children);
  };
  const Stmt body = join(function.body);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

}  // namespace

std::vector<Stmt> JoinNeighbours(absl::Span<const Stmt> children, Effects& effects, int& joined) {
  std::vector<Stmt> result;
  for (size_t begin = 0, end; begin < children.size(); begin = end) {
    end = begin + 1;
    while (end < children.size() && CanJoin(children[end - 1], children[end], effects)) ++end;
    if (end == begin + 1) {
      result.push_back(children[begin]);
      continue;
    }
    std::vector<Stmt> then_cases, else_cases;
    for (size_t i = begin; i < end; ++i) {
      Append(children[i].then_case(), then_cases);
      Append(children[i].else_case(), else_cases);
    }
    joined += static_cast<int>(end - begin) - 1;
    ir::Context& c = children[begin].context();
    result.push_back(c.If(children[begin].cond(),
                          c.Seq(JoinNeighbours(then_cases, effects, joined)),
                          c.Seq(JoinNeighbours(else_cases, effects, joined))));
  }
  return result;
}

absl::StatusOr<bool> JoinIfs(ir::Function& function, const Target& target) {
  int joined = 0;
  return Join(function, target, joined);
}

PassInfo JoinIfsPass() {
  return {.name = "join_ifs",
          .doc = "neighbouring ifs about one condition become one",
          .run = [](ir::Function& function, const PassEnvironment& environment,
                    const OptionValues&) -> absl::StatusOr<bool> {
            int joined = 0;
            const bool changed = Join(function, environment.target, joined);
            if (environment.stats != nullptr && joined > 0) {
              environment.stats->push_back(StrCat(joined, " ifs joined with the one before"));
            }
            return changed;
          }};
}

}  // namespace polynao
