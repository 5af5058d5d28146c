#include "compiler/passes/tensor_conditions.h"

#include <algorithm>
#include <functional>

#include "absl/container/flat_hash_set.h"
#include "base/math.h"
#include "base/text.h"
#include "compiler/arith/const_range.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao {
namespace {

using arith::Analyzer;
using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using ir::Var;

// No allocation on chip grows beyond this many elements.
constexpr int64_t kMaxReach = int64_t{1} << 24;

}  // namespace

bool TensorConditions::Hold(TensorAttempt& a) {
  ++a.assignments;
  return Aliasing(a) && Parameters(a);
}

Expr TensorConditions::Extent(const TensorAttempt& a, size_t j) {
  Expr extent = c_.I64(1);
  for (size_t k = a.runs[j].first; k < a.runs[j].second; ++k) {
    const Expr factor = a.nest.loops[k].extent;
    if (extent.IsInt(1)) {
      extent = factor;
    } else if (extent.Is(ExprKind::kIntImm) && factor.Is(ExprKind::kIntImm)) {
      extent = c_.I64(extent.int_value() * factor.int_value());
    } else {
      extent = analyzer_.Simplify(extent * factor);
    }
  }
  return extent;
}

bool TensorConditions::Unproved(const TensorAttempt& a, int progress, std::string why) {
  if (closest_.IsCloser(progress)) {
    closest_.difference = {.progress = progress,
                           .mnemonic = a.pattern.instruction->mnemonic,
                           .why = std::move(why),
                           .program = StoreText(a.nest.store),
                           .pattern = StoreText(a.pattern.store)};
  }
  return false;
}

// An instruction may read all its sources before it writes; the loops read and write element by
// element. Both give the same where the destination is no source, or is a source with the same
// index.
bool TensorConditions::Aliasing(const TensorAttempt& a) {
  for (const auto& [load, access] : a.nest.loads) {
    if (access.buffer == a.nest.target.buffer && access.index != a.nest.target.index) {
      return Unproved(
          a, kProgressConditions,
          StrCat("'", access.buffer->name, "' is read and written at different places"));
    }
  }
  // An instruction works in place only if it reads and writes with one index; a copy has two.
  for (const auto& [load, index] : a.pattern.load_index) {
    if (a.binding.buffers.at(Buffer(load.buffer()))->buffer == a.nest.target.buffer &&
        index.coefficients != a.pattern.store_index.coefficients) {
      return Unproved(a, kProgressConditions + 1,
                      StrCat("'", a.nest.target.buffer->name, "' would be copied onto itself"));
    }
  }
  return true;
}

bool TensorConditions::Parameters(TensorAttempt& a) {
  ParameterProblem problem;
  for (const ir::Param& param : a.pattern.meaning.params) {
    if (param.var && param.var.type() == Type::kI64 && !a.binding.values.contains(param.var)) {
      problem.parameters.push_back(param.var);
    }
  }
  for (size_t j = 0; j < a.pattern.vars.size(); ++j) {
    if (!a.pattern.extents[j].Is(ExprKind::kIntImm)) {
      problem.equations.push_back({a.pattern.extents[j], Extent(a, j)});
    }
  }
  for (const auto& [pattern, access] : a.binding.accesses) {
    for (size_t j = 0; j < a.pattern.vars.size(); ++j) {
      const Expr stride = pattern->coefficients[j];
      if (!stride || stride.Is(ExprKind::kIntImm)) continue;
      for (Var var : problem.parameters) problem.uses[var] += ir::UsesVar(stride, var);
      // A single iteration has no stride to match.
      if (a.runs[j].first == a.runs[j].second) continue;
      problem.equations.push_back({stride, access->coefficients[a.runs[j].second - 1]});
    }
  }
  // The conditions of the pattern are in its attributes, in this function's context.
  std::vector<Expr> texts;  // as in the table, for messages
  for (const ir::Attribute& attribute : a.pattern.meaning.attributes) {
    if (attribute.key != "require") continue;
    for (const ir::AttributeValue& value : attribute.values) {
      if (const auto* condition = std::get_if<Expr>(&value)) {
        texts.push_back(*condition);
        problem.conditions.push_back(WithAddresses(a, *condition));
      }
    }
  }
  std::string why;
  const bool solved = SolveParameters(
      problem, analyzer_,
      [&](const ir::VarMap& values) { return Accept(a, problem, texts, values); }, &why);
  return solved || Unproved(a, kProgressConditions + 2, why);
}

// The condition with the offsets of operands for their addresses. That is enough for alignments:
// buffers on chip begin at multiples of kOnChipAlignment, tensors in GMEM at multiples of
// isa::kTensorAlignment.
Expr TensorConditions::WithAddresses(const TensorAttempt& a, Expr e) {
  if (e.Is(ExprKind::kAddress)) {
    const NestAccess& access = *a.binding.buffers.at(Buffer(e.buffer()));
    return analyzer_.Simplify(Base(a, access) * ir::ByteSize(access.buffer->type));
  }
  std::vector<Expr> operands;
  for (Expr operand : e.operands()) operands.push_back(WithAddresses(a, operand));
  return c_.Rebuild(e, operands);
}

// The element (i64) of its buffer at which the instruction begins to access it.
Expr TensorConditions::Base(const TensorAttempt& a, const NestAccess& access) {
  return analyzer_.Simplify(Widened(c_.Cast(Type::kI64, ir::Substitute(access.index, a.to_min))));
}

// Makes the match if all conditions hold for these values of the parameters.
bool TensorConditions::Accept(TensorAttempt& a, const ParameterProblem& problem,
                              absl::Span<const Expr> texts, ir::VarMap values) {
  absl::flat_hash_map<Buffer, int64_t> needed;
  const auto provable = [&](Expr condition) {
    const Expr bound = BindParameters(condition, values, problem.parameters, analyzer_);
    return bound.Is(ExprKind::kIntImm) ? bound.int_value() != 0 : analyzer_.CanProve(bound);
  };
  for (size_t i = 0; i < problem.conditions.size(); ++i) {
    const Expr condition = problem.conditions[i];
    if (provable(condition)) continue;
    std::string why = StrCat("it must have ", ir::Print(texts[i]));
    if (RoundUpCount(a, condition, values, needed, why) && provable(condition)) continue;
    return Unproved(a, kProgressConditions + 3 + static_cast<int>(i), std::move(why));
  }
  if (!Reaches(a, problem, values, needed)) return false;

  TensorMatch match{.pattern = &a.pattern, .around = a.around};
  for (const ir::Param& param : a.pattern.meaning.params) {
    if (param.buffer) {
      const NestAccess& access = *a.binding.buffers.at(param.buffer);
      const Expr first = analyzer_.Simplify(ir::Substitute(access.index, a.to_min));
      match.arguments.push_back(c_.Address(access.buffer, {first}));
    } else if (auto it = a.binding.values.find(param.var); it != a.binding.values.end()) {
      match.arguments.push_back(it->second);
    } else {
      match.arguments.push_back(values.at(param.var));
    }
  }
  const std::optional<int64_t> cost = Cost(a.pattern, match.arguments);
  if (!cost) return Unproved(a, kProgressConditions + 500, "the machine lacks this instruction");
  match.cost = *cost;
  match.needed = std::move(needed);
  a.match = std::move(match);
  return true;
}

// For the condition `count % N == 0` of a lanewise instruction of one loop: rounds the count up if
// that is harmless.
bool TensorConditions::RoundUpCount(const TensorAttempt& a, Expr condition, ir::VarMap& values,
                                    absl::flat_hash_map<Buffer, int64_t>& needed,
                                    std::string& why) {
  if (!a.pattern.instruction->lanewise || a.pattern.vars.size() != 1) return false;
  if (!condition.Is(ExprKind::kEq) || !condition.operand(0).Is(ExprKind::kMod) ||
      !condition.operand(1).IsInt(0) || condition.operand(0).operand(0) != a.pattern.extents[0] ||
      !condition.operand(0).operand(1).Is(ExprKind::kIntImm)) {
    return false;
  }
  const Var count_param = condition.operand(0).operand(0);
  const int64_t multiple = condition.operand(0).operand(1).int_value();
  const Expr count = values.at(count_param);
  if (!count.Is(ExprKind::kIntImm)) {
    why = StrCat("the count ", NumberText(count), " must be a constant to be rounded up to ",
                 multiple);
    return false;
  }
  const int64_t rounded = RoundUp(count.int_value(), multiple);
  for (const auto& [param, access] : a.binding.buffers) {
    const Expr base = Base(a, *access);
    const bool is_target = access->buffer == a.nest.target.buffer;
    if (!IsOnChip(access->buffer->scope) ||
        (is_target ? !base.Is(ExprKind::kIntImm) : analyzer_.Range(base).max > kMaxReach)) {
      why = StrCat("'", access->buffer->name, "' must be on chip",
                   is_target ? " from a constant place on" : "");
      return false;
    }
    if (is_target && !NothingDefinedFrom(access->buffer, base.int_value() + count.int_value(),
                                         base.int_value() + rounded)) {
      why = StrCat("elements of '", access->buffer->name, "' behind the ", NumberText(count),
                   " computed ones must not be in use");
      return false;
    }
  }
  for (const auto& [param, access] : a.binding.buffers) {
    int64_t& reached = needed[access->buffer];
    reached = std::max(reached, analyzer_.Range(Base(a, *access)).max + rounded);
  }
  values[count_param] = c_.I64(rounded);
  return true;
}

// An operand of several dimensions has the size of its extents, though the loops may touch less (of
// the last row of a convolution's source, say). All of it must lie in the buffer, or the buffer
// must be able to grow.
bool TensorConditions::Reaches(const TensorAttempt& a, const ParameterProblem& problem,
                               const ir::VarMap& values,
                               absl::flat_hash_map<Buffer, int64_t>& needed) {
  for (const ir::Param& param : a.pattern.meaning.params) {
    if (!param.buffer || param.buffer->extents.size() < 2) continue;
    const NestAccess& access = *a.binding.buffers.at(param.buffer);
    Expr elements = c_.I64(1);
    for (Expr extent : param.buffer->extents) {
      elements = elements * c_.Cast(Type::kI64, extent);
    }
    elements = BindParameters(elements, values, problem.parameters, analyzer_);
    const Expr base = Base(a, access);
    const Expr end = analyzer_.Simplify(base + elements);
    const Expr extent = access.buffer->extents[0];
    if (analyzer_.CanProve(end <= Widened(c_.Cast(Type::kI64, extent)))) continue;
    // The elements that the nest touches are in the buffer.
    Expr touched = c_.I64(1);
    for (size_t k = a.around; k < a.nest.loops.size(); ++k) {
      touched = touched + access.coefficients[k] * (a.nest.loops[k].extent - 1);
    }
    if (analyzer_.CanProve(elements <= touched)) continue;
    const arith::ConstRange range = analyzer_.Range(end);
    if (!surroundings_.allocations.contains(access.buffer) || !IsOnChip(access.buffer->scope) ||
        range.max > kMaxReach) {
      return Unproved(a, kProgressConditions + 400,
                      StrCat("it would reach behind the end of '", access.buffer->name, "'"));
    }
    int64_t& reached = needed[access.buffer];
    reached = std::max(reached, range.max);
  }
  return true;
}

// Whether, while the branches around the nest are taken, no statement in the scope of the
// allocation stores to the elements begin .. end - 1 of `buffer`.
bool TensorConditions::NothingDefinedFrom(Buffer buffer, int64_t begin, int64_t end) {
  auto it = surroundings_.allocations.find(buffer);
  if (it == surroundings_.allocations.end()) return false;
  bool harmless = true;
  absl::flat_hash_set<Var> bound_inside;
  ir::ForEachStmt(it->second.body(), [&](Stmt s) {
    if (s.Is(StmtKind::kFor) || s.Is(StmtKind::kLet)) bound_inside.insert(s.var());
    return true;
  });
  // Facts about variables bound outside the allocation (thread numbers, say) hold as long as the
  // buffer lives. Loops inside its scope give the ranges of indices.
  Analyzer analyzer(c_);
  Analyzer::Scope facts(analyzer);
  for (Stmt loop : surroundings_.loops) {
    if (!bound_inside.contains(loop.var())) {
      analyzer.BindLoop(loop.var(), loop.min(), loop.extent());
    }
  }
  for (const auto& [condition, truth] : surroundings_.conditions) {
    bool outside = true;
    for (Var var : ir::FreeVars(condition)) outside = outside && !bound_inside.contains(var);
    if (outside) analyzer.Assume(condition, truth);
  }
  const std::function<void(Stmt)> visit = [&](Stmt s) {
    if (!harmless) return;
    Analyzer::Scope scope(analyzer);
    if (s.Is(StmtKind::kFor)) analyzer.BindLoop(s.var(), s.min(), s.extent());
    if (s.Is(StmtKind::kLet) && ir::IsInt(s.var().type())) analyzer.BindLet(s.var(), s.value());
    if (s.Is(StmtKind::kStore) && s.buffer() == buffer) {
      const arith::ConstRange range = analyzer.Range(s.indices()[0]);
      if (!(range.max < begin || range.min >= end)) harmless = false;
    }
    if (s.Is(StmtKind::kEvaluate)) {
      for (Expr operand : s.value().operands()) {
        if (operand.Is(ExprKind::kAddress) && Buffer(operand.buffer()) == buffer) harmless = false;
      }
    }
    if (s.Is(StmtKind::kIf)) {
      for (const bool truth : {true, false}) {
        if (analyzer.CanProve(truth ? ir::Not(s.cond()) : s.cond())) continue;
        Analyzer::Scope branch(analyzer);
        analyzer.Assume(s.cond(), truth);
        visit(truth ? s.then_case() : s.else_case());
      }
      return;
    }
    for (Stmt child : s.children()) visit(child);
  };
  visit(it->second.body());
  return harmless;
}

// Cycles by the table, where arguments known only at run time count as 0; none if the machine lacks
// the instruction.
std::optional<int64_t> TensorConditions::Cost(const TensorPattern& pattern,
                                              absl::Span<const Expr> arguments) {
  if (target_.machine == nullptr) return 0;
  std::vector<int64_t> values;
  for (const isa::Operand& operand : pattern.instruction->operands) {
    const Expr argument = arguments[operand.param];
    values.push_back(argument.Is(ExprKind::kIntImm) ? argument.int_value() : 0);
  }
  const absl::StatusOr<int64_t> cost =
      target_.instructions->Cost(*pattern.instruction, values, *target_.machine);
  return cost.ok() ? std::optional(*cost) : std::nullopt;
}

}  // namespace polynao
