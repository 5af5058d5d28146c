#include "compiler/passes/instruction_layout.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "compiler/ir/affine.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/visit.h"
#include "isa/levels.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Context;
using ir::Expr;
using ir::ExprKind;
using ir::Function;
using ir::Stmt;
using ir::StmtKind;
using ir::Var;

// The store in `meaning` that accumulates, with the loops around it; null if none does.
Stmt FindUpdate(Stmt s, std::vector<Stmt>& loops) {
  if (s.Is(StmtKind::kStore)) {
    bool accumulates = false;
    ir::ForEachExpr(s.value(), [&](Expr e) {
      accumulates |= e.Is(ExprKind::kLoad) && Buffer(e.buffer()) == s.buffer();
    });
    if (!accumulates) return Stmt();
    for (Stmt loop : loops) {
      bool in_index = false;
      for (Expr index : s.indices()) in_index = in_index || ir::UsesVar(index, loop.var());
      if (!in_index) return s;
    }
    return Stmt();
  }
  if (s.Is(StmtKind::kFor)) loops.push_back(s);
  for (Stmt child : s.children()) {
    if (Stmt update = FindUpdate(child, loops)) return update;
  }
  if (s.Is(StmtKind::kFor)) loops.pop_back();
  return Stmt();
}

Stmt FindUpdate(Stmt s) {
  std::vector<Stmt> loops;
  return FindUpdate(s, loops);
}

bool LoadsFromWmem(Expr e) { return e.Is(ExprKind::kLoad) && e.buffer()->scope == isa::kWmem; }

bool LoadsWeights(Stmt update) {
  bool found = false;
  ir::ForEachExpr(update.value(), [&](Expr e) { found = found || LoadsFromWmem(e); });
  return found;
}

// The multiple of which `@require(pitch * size % multiple == 0)` wants `pitch` to be; 1 if nothing
// does.
int64_t RequiredMultiple(const Function& meaning, Expr pitch) {
  int64_t result = 1;
  for (const ir::Attribute& attribute : meaning.attributes) {
    if (attribute.key != "require") continue;
    for (const ir::AttributeValue& value : attribute.values) {
      const Expr* condition = std::get_if<Expr>(&value);
      if (condition == nullptr || !condition->Is(ExprKind::kEq) ||
          !condition->operand(1).IsInt(0) || !condition->operand(0).Is(ExprKind::kMod)) {
        continue;
      }
      const Expr modulo = condition->operand(0);
      const std::optional<ir::Affine> size = ir::Linearize(modulo.operand(0), {pitch});
      if (!size || size->constant || !size->coefficients[0] ||
          !size->coefficients[0].Is(ExprKind::kIntImm) ||
          !modulo.operand(1).Is(ExprKind::kIntImm)) {
        continue;
      }
      const int64_t multiple = modulo.operand(1).int_value();
      result = std::lcm(result, multiple / std::gcd(multiple, size->coefficients[0].int_value()));
    }
  }
  return result;
}

// The layout of weights that an accumulating meaning asks for:
//   dst[.., c * lanes + l] += ... weights[l, c * pitch + ...]
std::optional<WeightLayout> FindWeights(const Function& meaning) {
  std::vector<Stmt> loops;
  const Stmt update = FindUpdate(meaning.body, loops);
  std::vector<Var> vars;
  for (Stmt loop : loops) vars.push_back(loop.var());
  const std::optional<ir::Affine> channel = ir::Linearize(update.indices().back(), vars);
  std::optional<WeightLayout> weights;
  ir::ForEachExpr(update.value(), [&](Expr e) {
    if (!channel || !LoadsFromWmem(e) || e.operands().size() != 2) return;
    const auto lane = std::find(vars.begin(), vars.end(), e.operand(0));
    const std::optional<ir::Affine> place = ir::Linearize(e.operand(1), vars);
    if (lane == vars.end() || !place) return;
    const Expr lanes = loops[lane - vars.begin()].extent();
    const Expr unit = channel->coefficients[lane - vars.begin()];
    if (!lanes.Is(ExprKind::kIntImm) || !unit || !unit.IsInt(1)) return;
    for (size_t c = 0; c < vars.size(); ++c) {
      const Expr stride = channel->coefficients[c];
      const Expr pitch = place->coefficients[c];
      if (!stride || !stride.IsInt(lanes.int_value()) || !pitch || !pitch.Is(ExprKind::kVar)) {
        continue;
      }
      weights = {e.type(), lanes.int_value(), RequiredMultiple(meaning, pitch)};
    }
  });
  return weights;
}

InstructionFamily MakeFamily(const isa::InstructionSet& set, std::string_view name) {
  InstructionFamily family;
  for (const isa::Instruction& instruction : set.instructions()) {
    if (instruction.family != name || instruction.queue == isa::Queue::kNone || instruction.waits) {
      continue;
    }
    if (const Stmt update = FindUpdate(instruction.meaning.body)) {
      family.reduces = true;
      if (!LoadsWeights(update)) continue;
      // In a context of its own: the table's is shared.
      const Function meaning = ir::CloneInto(instruction.meaning, std::make_shared<Context>());
      if (auto weights = FindWeights(meaning)) family.weights.push_back(*weights);
      continue;
    }
    Stmt s = instruction.meaning.body;
    while (s.Is(StmtKind::kFor)) s = s.body();
    if (s.Is(StmtKind::kStore) && s.value().Is(ExprKind::kLoad)) family.copies = true;
  }
  return family;
}

}  // namespace

std::optional<InstructionFamily> FindInstructionFamily(const isa::InstructionSet& set,
                                                       std::string_view name) {
  for (const isa::Instruction& instruction : set.instructions()) {
    if (instruction.family == name && instruction.queue != isa::Queue::kNone) {
      return MakeFamily(set, name);
    }
  }
  return std::nullopt;
}

}  // namespace polynao
