#include "compiler/te/card/steps.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao::te {
namespace {

using ir::ExprKind;

// For each dimension of a tensor the domain's; -1: element 0.
using Dimensions = std::vector<int>;

// How often elements are read, each time counted.
int Loads(Expr e) {
  int loads = e.Is(ExprKind::kLoad);
  for (Expr operand : e.operands()) loads += Loads(operand);
  return loads;
}

// Drops steps that the result does not need.
Steps Needed(const Steps& all) {
  std::vector<bool> is_needed(all.list.size());
  is_needed[all.result] = true;
  for (size_t i = all.list.size(); i-- > 0;) {
    if (!is_needed[i]) continue;
    for (size_t operand : all.list[i].operands) is_needed[operand] = true;
  }
  Steps needed = {.domain = all.domain, .list = {}};
  std::vector<size_t> number(all.list.size());
  for (size_t i = 0; i < all.list.size(); ++i) {
    if (!is_needed[i]) continue;
    number[i] = needed.list.size();
    needed.list.push_back(all.list[i]);
    for (size_t& operand : needed.list.back().operands) operand = number[operand];
  }
  needed.result = number[all.result];
  return needed;
}

// What an instruction computes of `e`: `e` with what the pattern loads replaced. A constant may be loaded in one place
// and be part of the instruction in another.
Expr Instantiate(Expr pattern, Expr e, const absl::flat_hash_map<Expr, Expr>& elements) {
  if (pattern.Is(ExprKind::kLoad)) return elements.at(e);
  std::vector<Expr> operands;
  for (size_t i = 0; i < pattern.operands().size(); ++i) {
    operands.push_back(Instantiate(pattern.operand(i), e.operand(i), elements));
  }
  return operands.empty() ? e : e.context().Rebuild(e, operands);
}

class Cutter {
 public:
  Cutter(const GraphState& graph, const LaneInstructions& instructions,
         const absl::flat_hash_set<const Operation*>& whole)
      : graph_(graph), instructions_(instructions), context_(*graph.context), whole_(whole) {}

  absl::StatusOr<Steps> Run(const Tensor& output) {
    steps_.domain = output.shape();
    Dimensions all;
    for (size_t d = 0; d < output.rank(); ++d) all.push_back(static_cast<int>(d));
    const auto [producer, index] = graph_.producers.at(output.buffer());
    root_ = producer;
    ASSIGN_OR_RETURN(steps_.result, AddTensor(*producer, index, all));
    return Needed(steps_);
  }

 private:
  struct Place {  // where an expression stands
    const Operation* operation;
    Dimensions dimensions;  // of the operation
  };

  size_t Add(Step step) {
    steps_.list.push_back(std::move(step));
    return steps_.list.size() - 1;
  }

  absl::StatusOr<size_t> AddTensor(const Operation& operation, size_t output,
                                   const Dimensions& dimensions) {
    const auto key = std::make_tuple(&operation, output, dimensions);
    if (const auto it = tensors_.find(key); it != tensors_.end()) return it->second;
    size_t step;
    const bool is_entered = &operation == root_ || !whole_.contains(&operation);
    if (is_entered && IsElementwise(operation)) {
      ASSIGN_OR_RETURN(step, AddValue(operation.bodies[output].value, {&operation, dimensions}));
    } else {
      std::vector<bool> varies(steps_.domain.size());
      for (int d : dimensions) {
        if (d >= 0) varies[d] = true;
      }
      step = Add({.name = operation.name,
                  .type = operation.outputs[output]->type,
                  .varies = varies,
                  .tensor = &operation,
                  .output = output,
                  .dimensions = dimensions});
    }
    tensors_[key] = step;
    return step;
  }

  absl::StatusOr<size_t> AddLoad(Expr load, const Place& place) {
    const auto [producer, output] = graph_.producers.at(ir::Buffer(load.buffer()));
    Dimensions dimensions;
    for (Expr index : load.operands()) {
      const auto& axes = place.operation->axes;
      const auto it = std::find(axes.begin(), axes.end(), index);
      const size_t d = dimensions.size();
      dimensions.push_back(it == axes.end() ? -1 : place.dimensions[it - axes.begin()]);
      // Along one element any index is 0; dimensions count from the last one.
      const size_t rank = steps_.domain.size(),
                   missing = rank - std::min(rank, load.operands().size());
      if (producer->shape[d] == 1 && d + missing < rank) {
        const bool is_one = steps_.domain[d + missing] == 1;
        dimensions[d] = is_one ? static_cast<int>(d + missing) : -1;
      }
      const int64_t extent = dimensions[d] < 0 ? 1 : steps_.domain[dimensions[d]];
      if (producer->shape[d] == extent) continue;
      return InvalidInput("tensor ", place.operation->name, ": expected that it reads all ",
                          producer->shape[d], " elements of ", producer->name, " along dimension ",
                          d, ", found ", extent);
    }
    return AddTensor(*producer, output, dimensions);
  }

  // 1 of `type` where `condition` holds, else 0, in terms that instructions have.
  Expr Mask(Expr condition, Type type) {
    const Expr one = context_.Const(type, 1);
    switch (condition.kind()) {
      case ExprKind::kAnd:
        return Mask(condition.operand(0), type) * Mask(condition.operand(1), type);
      case ExprKind::kOr:
        return ir::Max(Mask(condition.operand(0), type), Mask(condition.operand(1), type));
      case ExprKind::kNot:
        return one - Mask(condition.operand(0), type);
      default:
        break;
    }
    if (condition.IsConst()) return context_.Const(type, condition.int_value());
    const Type compared = condition.operands().empty() ? type : condition.operand(0).type();
    const Expr mask =
        context_.Select(condition, context_.Const(compared, 1), context_.Const(compared, 0));
    return compared == type ? mask : context_.Cast(type, mask);
  }

  // `e` in the form of the table's meanings.
  Expr Canonical(Expr e) {
    const bool is_commutative = e.Is(ExprKind::kAdd) || e.Is(ExprKind::kMul);
    if (is_commutative && e.operand(0).IsConst()) {
      return Canonical(context_.Binary(e.kind(), e.operand(1), e.operand(0)));
    }
    if (e.Is(ExprKind::kAdd) && e.operand(1).Is(ExprKind::kIntImm)) {
      const int64_t value = e.operand(1).int_value();
      if (value < 0 && value != ir::LeastInt(e.type())) {
        return e.operand(0) - context_.Int(e.type(), -value);
      }
    }
    if (e.Is(ExprKind::kCast) && e.operand(0).type() == Type::kI1)
      return Mask(e.operand(0), e.type());
    if (!e.Is(ExprKind::kSelect)) return e;
    const Expr zero = context_.Const(e.type(), 0);
    const Expr condition = e.operand(0);
    // A comparison that gives 1 or 0 is an instruction, and so is a choice by a number that is 0 or not.
    const bool is_mask = ir::IsComparison(condition.kind()) &&
                         e.operand(1) == context_.Const(e.type(), 1) && e.operand(2) == zero &&
                         condition.operand(0).type() == e.type();
    const bool is_choice = condition.Is(ExprKind::kNe) && condition.operand(1) == zero;
    if (is_mask || is_choice) return e;
    return context_.Select(ir::Ne(Mask(condition, e.type()), zero), e.operand(1), e.operand(2));
  }

  absl::StatusOr<size_t> AddValue(Expr e, const Place& place) {
    if (const auto it = elements_.find(e); it != elements_.end()) return it->second;
    if (e.Is(ExprKind::kLoad)) return AddLoad(e, place);
    const auto key = std::make_tuple(e.id(), place.operation, place.dimensions);
    if (const auto it = values_.find(key); it != values_.end()) return it->second;
    // In the form that the passes make of it, which is the form that instructions are found in.
    const Expr simple = arith::Analyzer(context_).Simplify(e, arith::Mode::kData);
    absl::StatusOr<size_t> step;
    if (simple != e) {
      step = AddValue(simple, place);
    } else {
      const Expr canonical = Canonical(e);
      step = CutValue(canonical, place);
    }
    if (step.ok()) values_[key] = *step;
    return step;
  }

  absl::StatusOr<size_t> CutValue(Expr e, const Place& place) {
    Step step = {.name = place.operation->name, .type = e.type(), .varies = {}};
    step.varies.resize(steps_.domain.size());
    if (e.IsConst() || e.Is(ExprKind::kVar)) {
      step.instruction = instructions_.Fill(e.type());
      step.value = e;
      step.varies.assign(steps_.domain.size(), true);
      if (step.instruction == nullptr) return NoInstruction(e, place);
      return Add(std::move(step));
    }
    std::vector<LaneMatch> matches = instructions_.Find(e);
    const auto first = std::find_if(matches.begin(), matches.end(),
                                    [](const LaneMatch& match) { return !match.row; });
    if (first == matches.end()) return NoInstruction(e, place);
    const LaneMatch best = *first;
    step.instruction = best.instruction;
    for (const LaneMatch& match : matches) {
      if (match.row && match.operands == best.operands) {
        step.row_forms.push_back({match.instruction, *match.row});
      }
    }
    absl::flat_hash_map<Expr, Expr> elements;
    for (Expr operand : best.operands) {
      ASSIGN_OR_RETURN(const size_t index, AddValue(operand, place));
      elements[operand] = ElementOf(index);
      // Different expressions may have come out as one step.
      if (std::count(step.operands.begin(), step.operands.end(), index) > 0) continue;
      step.operands.push_back(index);
      step.elements.push_back(ElementOf(index));
      for (size_t d = 0; d < step.varies.size(); ++d) {
        if (steps_.list[index].varies[d]) step.varies[d] = true;
      }
    }
    if (step.operands.size() < best.operands.size()) step.row_forms.clear();
    step.value = Instantiate(best.pattern, e, elements);
    // What the passes would make simpler is another instruction, or none: min(x, x).
    const Expr simple = arith::Analyzer(context_).Simplify(step.value, arith::Mode::kData);
    if (Loads(simple) < Loads(step.value)) return AddValue(simple, place);
    return Add(std::move(step));
  }

  // Stands for an element of a step in the values of others.
  Expr ElementOf(size_t step) {
    if (const auto it = element_of_.find(step); it != element_of_.end()) return it->second;
    const Step& s = steps_.list[step];
    const Expr element = context_.Load(context_.NewBuffer(s.name, s.type, {}), {});
    elements_[element] = step;
    element_of_[step] = element;
    return element;
  }

  static absl::Status NoInstruction(Expr e, const Place& place) {
    return InvalidInput("tensor ", place.operation->name, ": the card has no instruction for ",
                        ir::Print(e), " of ", ir::TypeName(e.type()));
  }

  const GraphState& graph_;
  const LaneInstructions& instructions_;
  ir::Context& context_;
  const absl::flat_hash_set<const Operation*>& whole_;
  const Operation* root_ = nullptr;
  Steps steps_;
  absl::flat_hash_map<Expr, size_t> elements_;
  absl::flat_hash_map<size_t, Expr> element_of_;
  std::map<std::tuple<const Operation*, size_t, Dimensions>, size_t> tensors_;
  std::map<std::tuple<uint32_t, const Operation*, Dimensions>, size_t> values_;
};

}  // namespace

Expr Replace(Expr e, const absl::flat_hash_map<Expr, Expr>& by) {
  if (const auto it = by.find(e); it != by.end()) return it->second;
  std::vector<Expr> operands;
  bool changed = false;
  for (Expr operand : e.operands()) {
    operands.push_back(Replace(operand, by));
    changed = changed || operands.back() != operand;
  }
  return changed ? e.context().Rebuild(e, operands) : e;
}

std::vector<size_t> Steps::LastReaders() const {
  std::vector<size_t> last(list.size(), list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    for (size_t operand : list[i].operands) last[operand] = i;
  }
  return last;
}

bool IsElementwise(const Operation& operation) {
  if (operation.kind != Operation::Kind::kCompute) return false;
  bool is_elementwise = true;
  for (const Body& body : operation.bodies) {
    if (body.reducer) return false;
    // Axes in indices are found by their loads, all others here.
    const auto visit = [&](const auto& self, Expr e) -> void {
      if (e.Is(ExprKind::kVar)) {
        is_elementwise = is_elementwise && std::find(operation.axes.begin(), operation.axes.end(),
                                                     e) == operation.axes.end();
      } else if (e.Is(ExprKind::kLoad)) {
        size_t next = 0;  // the first axis that a further index may be
        for (Expr index : e.operands()) {
          if (index.IsInt(0)) continue;
          const auto it = std::find(operation.axes.begin() + static_cast<ptrdiff_t>(next),
                                    operation.axes.end(), index);
          is_elementwise = is_elementwise && it != operation.axes.end();
          if (it != operation.axes.end()) next = it - operation.axes.begin() + 1;
        }
      } else {
        for (Expr operand : e.operands()) self(self, operand);
      }
    };
    visit(visit, body.value);
  }
  return is_elementwise;
}

absl::StatusOr<Steps> CutIntoSteps(const Tensor& output, const LaneInstructions& instructions,
                                   const absl::flat_hash_set<const Operation*>& whole) {
  RETURN_IF_ERROR(output.graph()->status);
  return Cutter(*output.graph(), instructions, whole).Run(output);
}

}  // namespace polynao::te
