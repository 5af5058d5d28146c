#include "compiler/te/card/lane_instructions.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/math.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "isa/granularity.h"
#include "isa/levels.h"

namespace polynao::te {
namespace {

using ir::Expr;
using ir::ExprKind;

// What the loads and numbers of a pattern stand for in an expression.
struct Bindings {
  absl::flat_hash_map<Expr, Expr> values;
  int size = 0;

  bool Bind(Expr pattern, Expr e) { return values.try_emplace(pattern, e).first->second == e; }
};

// Numbers that the scalar unit has in a register before the loop.
bool IsNumber(Expr e) { return e.IsConst() || e.Is(ExprKind::kVar); }

bool SameConstant(Expr a, Expr b) {
  if (a.Is(ExprKind::kIntImm)) return a.int_value() == b.int_value();
  // -0.0 is another number than 0.0 here.
  const double x = a.float_value(), y = b.float_value();
  return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
}

bool Unify(Expr pattern, Expr e, Bindings& bindings) {
  if (pattern.type() != e.type()) return false;
  if (pattern.Is(ExprKind::kLoad)) return bindings.Bind(pattern, e);
  ++bindings.size;
  if (pattern.Is(ExprKind::kVar)) return IsNumber(e) && bindings.Bind(pattern, e);
  if (pattern.kind() != e.kind() || pattern.operands().size() != e.operands().size()) return false;
  if (pattern.IsConst()) return SameConstant(pattern, e);
  if (pattern.Is(ExprKind::kCall) && pattern.name() != e.name()) return false;
  for (size_t i = 0; i < pattern.operands().size(); ++i) {
    if (!Unify(pattern.operand(i), e.operand(i), bindings)) return false;
  }
  return true;
}

// The number of loops around the first value of an instruction's sums, and of
// those inside; zeros if it has none.
std::pair<size_t, size_t> SumLoops(const isa::Instruction& instruction) {
  size_t outer = 0, inner = 0;
  ir::Stmt s = instruction.meaning.body;
  for (; s.Is(ir::StmtKind::kFor); s = s.body()) ++outer;
  if (!s.Is(ir::StmtKind::kSeq) || s.children().size() != 2) return {};
  for (s = s.children()[1]; s.Is(ir::StmtKind::kFor); s = s.body()) ++inner;
  return {outer, inner};
}

}  // namespace

std::optional<LaneInstructions::Pattern> LaneInstructions::PatternOf(
    const isa::Instruction& instruction) {
  if (instruction.unit != isa::Unit::kVector) return std::nullopt;
  Pattern pattern = {
      .instruction = &instruction, .value = {}, .loads = {}, .row = {}, .variables = {}};
  ir::Stmt s = instruction.meaning.body;
  for (; s.Is(ir::StmtKind::kFor); s = s.body()) pattern.variables.push_back(s.var());
  const auto is_at = [](absl::Span<const Expr> indices, absl::Span<const Expr> variables) {
    return std::equal(indices.begin(), indices.end(), variables.begin(), variables.end());
  };
  if (!s.Is(ir::StmtKind::kStore) || !is_at(s.indices(), pattern.variables)) return std::nullopt;
  pattern.value = s.value();
  bool is_lanewise = true;
  for (const ir::Param& param : instruction.meaning.params) {
    if (!param.buffer) continue;
    ir::ForEachExpr(pattern.value, [&](Expr e) {
      if (!e.Is(ExprKind::kLoad) || ir::Buffer(e.buffer()) != param.buffer) return;
      if (is_at(e.operands(), pattern.variables)) {
        pattern.loads.push_back(e);
      } else if (pattern.variables.size() == 2 &&
                 is_at(e.operands(), absl::MakeSpan(pattern.variables).subspan(1)) &&
                 !pattern.row) {
        pattern.row = pattern.loads.size();
        pattern.loads.push_back(e);
      } else {
        is_lanewise = false;
      }
    });
  }
  if (!is_lanewise) return std::nullopt;
  return pattern;
}

LaneInstructions::LaneInstructions(const isa::InstructionSet& instructions,
                                   const isa::Machine& machine)
    : instructions_(instructions),
      machine_(machine),
      found_(instructions.parameter_names().size()),
      parameters_(instructions.parameter_names().size()) {
  for (const isa::Instruction& instruction : instructions.instructions()) {
    std::optional<Pattern> pattern = PatternOf(instruction);
    if (!pattern || !std::isfinite(Cycles(instruction, 1, isa::kVectorGroup))) continue;
    if (!pattern->loads.empty()) {
      patterns_.push_back(*std::move(pattern));
    } else if (pattern->value.Is(ExprKind::kVar)) {
      fills_.push_back(&instruction);
    }
  }
}

std::vector<LaneMatch> LaneInstructions::Find(Expr value) const {
  std::vector<LaneMatch> matches;
  for (const Pattern& pattern : patterns_) {
    Bindings bindings;
    if (!Unify(pattern.value, value, bindings)) continue;
    LaneMatch match = {.instruction = pattern.instruction,
                       .row = {},
                       .size = bindings.size,
                       .pattern = pattern.value};
    for (size_t i = 0; i < pattern.loads.size(); ++i) {
      const Expr operand = bindings.values.at(pattern.loads[i]);
      const auto it = std::find(match.operands.begin(), match.operands.end(), operand);
      if (pattern.row == i) match.row = it - match.operands.begin();
      if (it == match.operands.end()) match.operands.push_back(operand);
    }
    matches.push_back(std::move(match));
  }
  std::sort(matches.begin(), matches.end(), [](const LaneMatch& a, const LaneMatch& b) {
    const auto order = [](const auto& match) {
      return std::tuple(-match.size, match.instruction->operands.size(), match.instruction->index);
    };
    return order(a) < order(b);
  });
  return matches;
}

const isa::Instruction* LaneInstructions::Fill(ir::Type type) const {
  for (const isa::Instruction* fill : fills_) {
    if (fill->meaning.params[0].buffer->type == type) return fill;
  }
  return nullptr;
}

const isa::Instruction* LaneInstructions::RowReduction(ir::ExprKind combine, ir::Type type) const {
  // for (i) { dst[i] = first; for (j) { dst[i] = combine(dst[i], src[..]) } }
  for (const isa::Instruction& instruction : instructions_.instructions()) {
    const ir::Stmt rows = instruction.meaning.body;
    if (instruction.unit != isa::Unit::kVector || !rows.Is(ir::StmtKind::kFor)) continue;
    const ir::Stmt row = rows.body();
    if (!row.Is(ir::StmtKind::kSeq) || row.children().size() != 2) continue;
    const ir::Stmt first = row.children()[0], elements = row.children()[1];
    if (!first.Is(ir::StmtKind::kStore) || !elements.Is(ir::StmtKind::kFor)) continue;
    const ir::Stmt one = elements.body();
    const bool combines = one.Is(ir::StmtKind::kStore) && one.buffer() == first.buffer() &&
                          one.value().Is(combine) && one.value().type() == type &&
                          one.value().operand(0).Is(ExprKind::kLoad) &&
                          ir::Buffer(one.value().operand(0).buffer()) == first.buffer() &&
                          one.value().operand(1).Is(ExprKind::kLoad);
    if (combines && std::isfinite(Cycles(instruction, 1, isa::kVectorGroup))) return &instruction;
  }
  return nullptr;
}

const isa::Instruction* LaneInstructions::Transpose(ir::Type type) const {
  // for (j) { for (i) { dst[j, i] = src[i, j] } }
  for (const isa::Instruction& instruction : instructions_.instructions()) {
    const ir::Stmt outer = instruction.meaning.body;
    if (instruction.unit != isa::Unit::kVector || !outer.Is(ir::StmtKind::kFor)) continue;
    const ir::Stmt inner = outer.body();
    if (!inner.Is(ir::StmtKind::kFor) || !inner.body().Is(ir::StmtKind::kStore)) continue;
    const ir::Stmt store = inner.body();
    const Expr j = outer.var(), i = inner.var(), load = store.value();
    const bool transposes = load.Is(ExprKind::kLoad) && load.type() == type &&
                            store.indices().size() == 2 && load.operands().size() == 2 &&
                            store.indices()[0] == j && store.indices()[1] == i &&
                            load.operand(0) == i && load.operand(1) == j;
    if (transposes && std::isfinite(TransposeCycles(instruction, 1, 1))) return &instruction;
  }
  return nullptr;
}

double LaneInstructions::Cycles(const isa::Instruction& instruction, int64_t rows,
                                int64_t count) const {
  std::vector<int64_t> values(instruction.operands.size());
  bool has_rows = false;
  for (size_t i = 0; i < values.size(); ++i) {
    has_rows = has_rows || instruction.operands[i].name == "rows";
    if (instruction.operands[i].name == "rows") values[i] = rows;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (instruction.operands[i].name != "count") continue;
    values[i] = RoundUp(has_rows ? count : rows * count, isa::kVectorGroup);
  }
  return Cost(instruction, values);
}

double LaneInstructions::Cycles(const isa::Instruction& instruction,
                                const isa::Instruction* row_form,
                                const std::vector<ir::Type>& lacking, int64_t rows,
                                int64_t count) const {
  if (lacking.size() == 1 && row_form != nullptr) return Cycles(*row_form, rows, count);
  double cycles = Cycles(instruction, rows, count);
  for (const ir::Type type : lacking) cycles += CopyCycles(type, rows, count);
  return cycles;
}

double LaneInstructions::CyclesWith(
    const isa::Instruction& instruction,
    std::initializer_list<std::pair<std::string_view, int64_t>> values) const {
  std::vector<int64_t> operands(instruction.operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    for (const auto& [name, value] : values) {
      if (instruction.operands[i].name == name) operands[i] = value;
    }
  }
  return Cost(instruction, operands);
}

double LaneInstructions::Cost(const isa::Instruction& instruction,
                              const std::vector<int64_t>& values) const {
  for (const int i : instructions_.CostParameters(instruction)) {
    std::optional<const int64_t*>& found = found_[i];
    if (!found) found = machine_.Find(instructions_.parameter_names()[i]);
    if (*found == nullptr) return HUGE_VAL;
    parameters_[i] = **found;
  }
  const absl::StatusOr<int64_t> cycles = instructions_.Cost(instruction, values, parameters_);
  return cycles.ok() ? static_cast<double>(*cycles) : HUGE_VAL;
}

double LaneInstructions::SegmentCycles(ir::Type type, std::string_view to, int64_t segments,
                                       int64_t count) const {
  const auto [it, is_new] = copies_.try_emplace({type, to});
  if (is_new) {
    it->second = instructions_.Find(StrCat("memcpy.", ir::TypeName(type), ".", to, ".nmem.async"));
  }
  const isa::Instruction* copy = it->second;
  return copy == nullptr ? HUGE_VAL : CyclesWith(*copy, {{"segments", segments}, {"count", count}});
}

double LaneInstructions::CopyCycles(ir::Type type, int64_t segments, int64_t count) const {
  return SegmentCycles(type, isa::kNmem, segments, count);
}

double LaneInstructions::WeightCopyCycles(ir::Type type, int64_t segments, int64_t count) const {
  return SegmentCycles(type, isa::kWmem, segments, count);
}

const isa::Instruction* LaneInstructions::SumOfProducts(ir::Type type, size_t results,
                                                        size_t reduced) const {
  for (const isa::Instruction& instruction : instructions_.instructions()) {
    if (instruction.unit != isa::Unit::kTensor) continue;
    if (instruction.variant[0] != ir::TypeName(type)) continue;
    if (SumLoops(instruction) != std::pair(results + 1, reduced)) continue;
    // A machine without such a unit has a rate of 0, by which the cost divides.
    if (std::isfinite(
            CyclesWith(instruction, {{"rows", 1}, {"co", isa::kTensorLanes}, {"k", 1}}))) {
      return &instruction;
    }
  }
  return nullptr;
}

double LaneInstructions::ProductCycles(const isa::Instruction& instruction, int64_t rows,
                                       int64_t channels, int64_t depth) const {
  return CyclesWith(instruction,
                    {{"rows", rows}, {"co", RoundUp(channels, isa::kTensorLanes)}, {"k", depth}});
}

}  // namespace polynao::te
