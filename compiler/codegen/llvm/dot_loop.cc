#include "compiler/codegen/llvm/dot_loop.h"

#include <optional>
#include <utility>

#include "compiler/codegen/llvm/meaning.h"

namespace polynao::codegen {

namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;

// The loops of a meaning, and of what may have it: a loop over lanes around one over q around a store.
struct Nest {
  Stmt outer, inner, store;
};

std::optional<Nest> NestOf(Stmt loop) {
  Nest nest{.outer = loop, .inner = loop.body(), .store = {}};
  if (!nest.inner.Is(StmtKind::kFor) || nest.inner.for_kind() == ForKind::kParallel)
    return std::nullopt;
  nest.store = nest.inner.body();
  if (!nest.store.Is(StmtKind::kStore)) return std::nullopt;
  for (Stmt one : {nest.outer, nest.inner}) {
    if (!one.min().Is(ExprKind::kIntImm) || !one.extent().Is(ExprKind::kIntImm))
      return std::nullopt;
  }
  return nest;
}

DotLoop Match(const Nest& nest, const isa::ProcessorInstruction& instruction,
              arith::Analyzer& analyzer) {
  const std::optional<Nest> meaning = NestOf(instruction.meaning.body);
  const Stmt store = nest.store;
  const int64_t lanes = nest.outer.extent().int_value();
  Likeness likeness;
  auto& loads = likeness.loads;
  if (!meaning || lanes % instruction.lanes != 0 || lanes == 0) return {};
  likeness.vars.emplace(meaning->outer.var(), nest.outer.var());
  if (!IsAlike(meaning->inner, nest.inner, likeness)) return {};
  // Sums are loaded where they are stored.
  ir::Context& c = store.context();
  if (loads.at(instruction.sums) != c.Load(store.buffer(), store.indices())) return {};
  const auto fits = [&](Buffer parameter, Expr load) {
    if (parameter != instruction.sums && Buffer(load.buffer()) == store.buffer()) return false;
    Expr in_meaning;
    // The meaning's own access, of which there is one.
    const auto find = [&](Expr e, const auto& self) -> void {
      if (e.Is(ExprKind::kLoad) && Buffer(e.buffer()) == parameter) in_meaning = e;
      for (Expr operand : e.operands()) self(operand, self);
    };
    find(meaning->store.value(), find);
    for (const auto& [own, wanted] : {std::pair(nest.outer.var(), meaning->outer.var()),
                                      std::pair(nest.inner.var(), meaning->inner.var())}) {
      const auto step = StepOf(Buffer(load.buffer()), load.operands(), own, analyzer);
      const auto right = StepOf(parameter, in_meaning.operands(), wanted, analyzer);
      if (!step || step != right) return false;
    }
    return true;
  };
  Expr& a = loads.at(instruction.a);
  Expr& b = loads.at(instruction.b);
  // A product of two operands of one type may have them in either order.
  if (a.type() == b.type() && !fits(instruction.a, a)) std::swap(a, b);
  if (!fits(instruction.sums, loads.at(instruction.sums)) || !fits(instruction.a, a) ||
      !fits(instruction.b, b)) {
    return {};
  }
  const auto step = StepOf(Buffer(a.buffer()), a.operands(), nest.inner.var(), analyzer);
  return {.instruction = &instruction,
          .store = store,
          .a = a,
          .b = b,
          .lane = nest.outer.var(),
          .q = nest.inner.var(),
          .first_q = *step < 0 ? instruction.group - 1 : 0,
          .iterations = lanes};
}

}  // namespace

DotLoop FindDotLoop(Stmt loop, const std::vector<const isa::ProcessorInstruction*>& instructions,
                    arith::Analyzer& analyzer) {
  if (instructions.empty()) return {};
  const std::optional<Nest> nest = NestOf(loop);
  if (!nest || !nest->outer.min().IsInt(0) || !nest->inner.min().IsInt(0)) return {};
  for (const isa::ProcessorInstruction* instruction : instructions) {
    const DotLoop found = Match(*nest, *instruction, analyzer);
    if (found.instruction != nullptr) return found;
  }
  return {};
}

}  // namespace polynao::codegen
