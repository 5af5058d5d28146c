#include "compiler/passes/bind_parallel.h"

#include <algorithm>

#include "base/math.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/pass.h"

namespace polynao {
namespace {

using ir::Expr;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;

bool HasThreadLoop(Stmt root) {
  return ir::AnyStmt(
      root, [](Stmt s) { return s.Is(StmtKind::kFor) && s.for_kind() == ForKind::kThread; });
}

Stmt Bind(ir::Context& c, Stmt loop) {
  constexpr int64_t kManyIterations = 1 << 15;
  const int64_t extent = loop.extent().int_value();
  const int64_t threads = std::min<int64_t>(extent, extent >= kManyIterations ? 256 : 32);
  const int64_t blocks = CeilDiv(extent, threads);
  const ir::Type type = loop.var().type();
  const ir::Var block = c.NewVar("blockIdx.x", type);
  const ir::Var thread = c.NewVar("threadIdx.x", type);
  const Expr place = block * threads + thread;
  Stmt body = c.LetStmt(loop.var(), loop.min().IsInt(0) ? place : place + loop.min(), loop.body());
  if (blocks * threads != extent) body = c.If(place < extent, body);
  body = c.For(thread, c.Int(type, 0), c.Int(type, threads), body, ForKind::kThread, "threadIdx.x");
  return c.For(block, c.Int(type, 0), c.Int(type, blocks), body, ForKind::kThread, "blockIdx.x");
}

Stmt Visit(ir::Context& c, Stmt s) {
  if (s.Is(StmtKind::kFor)) {
    const bool binds = s.for_kind() == ForKind::kParallel && s.min().IsConst() &&
                       s.extent().IsConst() && s.extent().int_value() > 0 && !HasThreadLoop(s);
    return binds ? Bind(c, s) : s;
  }
  return ir::MapChildren(s, [&](Stmt child) { return Visit(c, child); });
}

}  // namespace

absl::StatusOr<bool> BindParallel(ir::Function& function) {
  const Stmt body = Visit(*function.context, function.body);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

PassInfo BindParallelPass() {
  return {.name = "bind_parallel",
          .doc = "gives a GPU's threads the iterations of parallel loops",
          .run = [](ir::Function& function, const PassEnvironment&, const OptionValues&) {
            return BindParallel(function);
          }};
}

}  // namespace polynao
