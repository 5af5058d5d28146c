#include "compiler/te/card/steps.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/te/card/lane_form.h"
#include "compiler/te/card/step_cycles.h"

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
  // `joins`: an elementwise compute that one other alone reads is a part of that one's expression.
  Cutter(const GraphState& graph, const LaneInstructions& instructions,
         const absl::flat_hash_set<const Operation*>& whole, bool joins)
      : graph_(graph), instructions_(instructions), context_(*graph.context), whole_(whole) {
    if (!joins) return;
    for (const Operation& operation : graph.operations) {
      absl::flat_hash_set<const Operation*> read;
      for (const Body& body : operation.bodies) {
        ir::ForEachExpr(body.value, [&](Expr e) {
          if (e.Is(ExprKind::kLoad)) read.insert(graph.producers.at(ir::Buffer(e.buffer())).first);
        });
      }
      for (const Operation* producer : read) ++readers_[producer];
    }
  }

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
      const Expr value = Joined(operation.bodies[output].value);
      ASSIGN_OR_RETURN(step, AddValue(value, {&operation, dimensions}));
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

  // `value` with the expressions of computes that it alone reads in place of their elements.
  Expr Joined(Expr value) {
    if (readers_.empty()) return value;
    absl::flat_hash_map<Expr, Expr> by;
    ir::ForEachExpr(value, [&](Expr e) {
      if (!e.Is(ExprKind::kLoad)) return;
      const auto [producer, output] = graph_.producers.at(ir::Buffer(e.buffer()));
      const auto readers = readers_.find(producer);
      if (readers == readers_.end() || readers->second != 1 || whole_.contains(producer) ||
          !IsElementwise(*producer)) {
        return;
      }
      ir::VarMap axes;
      for (size_t d = 0; d < producer->axes.size(); ++d) axes[producer->axes[d]] = e.operand(d);
      by[e] = Joined(ir::Substitute(producer->bodies[output].value, axes));
    });
    return by.empty() ? value : ir::Replace(value, by);
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

  // ---- which instruction: the one with which the whole expression takes fewest cycles, not the one that computes most
  // of it. One that reads an element for each element of the result takes no row, so that a row has to be copied once
  // for each row of the result first: X * A[c] + B[c] is cheaper as row_mul and row_add than as a multiply-add.

  struct Choice {
    std::optional<LaneMatch> match = {};  // none: no instruction computes the expression
    double cycles = HUGE_VAL;             // for all elements of the domain
  };

  // Of equal ones the first, which computes most.
  Choice Cheapest(const std::vector<LaneMatch>& matches, const Place& place) {
    Choice best;
    for (const LaneMatch& match : matches) {
      if (match.row) continue;
      const double cycles = CyclesOf(match, matches, place);
      if (best.match && cycles >= best.cycles) continue;
      best = {match, cycles};
    }
    return best;
  }

  double CyclesOf(const LaneMatch& match, const std::vector<LaneMatch>& matches,
                  const Place& place) {
    std::vector<bool> varies(steps_.domain.size());
    std::vector<std::vector<bool>> of_operand;
    double cycles = 0;
    for (Expr operand : match.operands) {
      cycles += CyclesOf(operand, place);
      // A number is stored to all elements.
      const bool is_filled = operand.IsConst() || operand.Is(ExprKind::kVar);
      of_operand.emplace_back(varies.size(), is_filled);
      FindVarying(operand, place, of_operand.back());
    }
    for (const std::vector<bool>& own : of_operand) {
      for (size_t d = 0; d < varies.size(); ++d) varies[d] = varies[d] || own[d];
    }
    const auto [rows, count] = RowsOf(steps_.domain, varies);
    std::vector<Type> lacking;
    size_t last = 0;
    for (size_t i = 0; i < of_operand.size(); ++i) {
      if (of_operand[i] == varies) continue;
      lacking.push_back(match.operands[i].type());
      last = i;
    }
    const auto row = std::find_if(matches.begin(), matches.end(), [&](const LaneMatch& other) {
      return other.row == last && other.operands == match.operands;
    });
    return cycles + instructions_.Cycles(*match.instruction,
                                         row == matches.end() ? nullptr : row->instruction, lacking,
                                         rows, count);
  }

  // Of an operand: nothing for a tensor's element, and for what a step has already.
  double CyclesOf(Expr e, const Place& place) {
    if (e.Is(ExprKind::kLoad)) return 0;
    const auto key = std::make_tuple(e.id(), place.operation, place.dimensions);
    if (values_.contains(key)) return 0;
    if (const auto it = cycles_.find(key); it != cycles_.end()) return it->second;
    const Expr canonical = LaneForm(arith::Analyzer(context_).Simplify(e, arith::Mode::kData));
    double cycles = 0;
    if (canonical.IsConst() || canonical.Is(ExprKind::kVar)) {
      const isa::Instruction* fill = instructions_.Fill(canonical.type());
      const auto [rows, count] =
          RowsOf(steps_.domain, std::vector<bool>(steps_.domain.size(), true));
      cycles = fill == nullptr ? HUGE_VAL : instructions_.Cycles(*fill, rows, count);
    } else if (!canonical.Is(ExprKind::kLoad)) {
      const Choice cheapest = Cheapest(instructions_.Find(canonical), place);
      cycles = cheapest.cycles;
      const Expr other = cheapest.match ? Expr() : IntegerForm(canonical);
      if (other) cycles = CyclesOf(other, place);
    }
    return cycles_[key] = cycles;
  }

  // Adds the dimensions of the domain along which `e` differs.
  void FindVarying(Expr e, const Place& place, std::vector<bool>& varies) const {
    if (!e.Is(ExprKind::kLoad)) {
      for (Expr operand : e.operands()) FindVarying(operand, place, varies);
      return;
    }
    if (const auto it = elements_.find(e); it != elements_.end()) {
      const std::vector<bool>& own = steps_.list[it->second].varies;
      for (size_t d = 0; d < varies.size(); ++d) varies[d] = varies[d] || own[d];
      return;
    }
    const Operation& producer = *graph_.producers.at(ir::Buffer(e.buffer())).first;
    const Axes& axes = place.operation->axes;
    for (size_t i = 0; i < e.operands().size(); ++i) {
      const auto it = std::find(axes.begin(), axes.end(), e.operand(i));
      if (it == axes.end() || producer.shape[i] == 1) continue;
      if (const int d = place.dimensions[it - axes.begin()]; d >= 0) varies[d] = true;
    }
  }

  // ---- steps

  // `is_simple`: `e` is what Analyzer::Simplify returned. It would not return every such `e` as it is: within its limit
  // of steps it takes apart only a part of a long sum, and another part of what comes out.
  absl::StatusOr<size_t> AddValue(Expr e, const Place& place, bool is_simple = false) {
    if (const auto it = elements_.find(e); it != elements_.end()) return it->second;
    if (e.Is(ExprKind::kLoad)) return AddLoad(e, place);
    const auto key = std::make_tuple(e.id(), place.operation, place.dimensions);
    if (const auto it = values_.find(key); it != values_.end()) return it->second;
    // In the form that the passes make of it, which is the form that instructions are found in.
    const Expr simple = is_simple ? e : arith::Analyzer(context_).Simplify(e, arith::Mode::kData);
    absl::StatusOr<size_t> step;
    if (simple != e) {
      step = AddValue(simple, place, /*is_simple=*/true);
    } else {
      const Expr canonical = LaneForm(e);
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
    const std::vector<LaneMatch> matches = instructions_.Find(e);
    const std::optional<LaneMatch> cheapest = Cheapest(matches, place).match;
    if (!cheapest) {
      const Expr other = IntegerForm(e);
      return other ? AddValue(other, place) : NoInstruction(e, place);
    }
    const LaneMatch& best = *cheapest;
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
    // What the passes would make simpler is another instruction, or none: min(x, x), x + 0.
    const Expr simple = arith::Analyzer(context_).Simplify(step.value, arith::Mode::kData);
    const bool is_element = simple.Is(ExprKind::kLoad) && simple != step.value;
    if (is_element || Loads(simple) < Loads(step.value)) return AddValue(simple, place);
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
  absl::flat_hash_map<const Operation*, int> readers_;  // computes that read each; none: not joined
  const Operation* root_ = nullptr;
  Steps steps_;
  absl::flat_hash_map<Expr, size_t> elements_;
  absl::flat_hash_map<size_t, Expr> element_of_;
  std::map<std::tuple<const Operation*, size_t, Dimensions>, size_t> tensors_;
  std::map<std::tuple<uint32_t, const Operation*, Dimensions>, size_t> values_;
  std::map<std::tuple<uint32_t, const Operation*, Dimensions>, double> cycles_;  // of expressions
};

// Returns true if an expression of the operation, or of what it reads, reads a compute.
bool ReadsComputes(const Operation& operation, const GraphState& graph) {
  bool reads = false;
  for (const Body& body : operation.bodies) {
    ir::ForEachExpr(body.value, [&](Expr e) {
      reads = reads ||
              (e.Is(ExprKind::kLoad) &&
               graph.producers.at(ir::Buffer(e.buffer())).first->kind == Operation::Kind::kCompute);
    });
  }
  return reads;
}

}  // namespace

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
  const GraphState& graph = *output.graph();
  absl::StatusOr<Steps> apart = Cutter(graph, instructions, whole, /*joins=*/false).Run(output);
  if (IsElementwise(*output.operation()) && ReadsComputes(*output.operation(), graph)) {
    absl::StatusOr<Steps> joined = Cutter(graph, instructions, whole, /*joins=*/true).Run(output);
    if (joined.ok() &&
        (!apart.ok() || CyclesOf(*joined, instructions) < CyclesOf(*apart, instructions))) {
      return joined;
    }
  }
  return apart;
}

}  // namespace polynao::te
