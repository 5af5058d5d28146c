#include "compiler/te/card/vector_nodes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/const_range.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/te/schedule.h"

namespace polynao::te {
namespace {

using ir::ExprKind;
using Kind = VectorNode::Kind;
using Operand = VectorNode::Operand;

// Whether the values of `e` depend on `axes` other than through elements that are read.
bool HasAxisOutsideLoads(Expr e, const Axes& axes) {
  if (e.Is(ExprKind::kLoad)) return false;
  if (e.Is(ExprKind::kVar)) return std::find(axes.begin(), axes.end(), e) != axes.end();
  return std::any_of(e.operands().begin(), e.operands().end(),
                     [&](Expr operand) { return HasAxisOutsideLoads(operand, axes); });
}

class Cutter {
 public:
  Cutter(const Tensor& output, const LaneInstructions& instructions, bool products)
      : graph_(output.graph()), instructions_(instructions), products_(products) {
    // What several computes read is computed once.
    absl::flat_hash_map<const Operation*, int> readers;
    absl::flat_hash_set<const Operation*> live = {output.operation()};
    const auto& operations = output.graph()->operations;
    for (auto it = operations.rbegin(); it != operations.rend(); ++it) {
      if (!live.contains(&*it) || it->kind != Operation::Kind::kCompute) continue;
      for (const Operation* read : ReadOperations(*output.graph(), it->bodies)) {
        live.insert(read);
        if (++readers[read] > 1) whole_.insert(read);
      }
      // What reads elements at other places is cut by itself, and so is what a reduction reads at fewer places than
      // it has: in its loops it would be computed again.
      for (const Body& body : it->bodies) {
        ir::ForEachExpr(body.value, [&](Expr e) {
          if (!e.Is(ExprKind::kLoad)) return;
          if (!IsPlain(e, it->axes, it->shape)) whole_.insert(&*it);
          if (body.reducer && e.operands().size() < it->axes.size() + body.axes.size()) {
            whole_.insert(output.graph()->producers.at(ir::Buffer(e.buffer())).first);
          }
        });
      }
    }
  }

  absl::StatusOr<VectorNodes> Run(const Tensor& output) {
    ASSIGN_OR_RETURN(nodes_.result, NodeOf(*output.operation(), 0));
    TakeOutOfLoops();
    return std::move(nodes_);
  }

 private:
  // What others than a reduction's own nodes read too is computed outside of its loops.
  void TakeOutOfLoops() {
    std::vector<std::vector<size_t>> readers(nodes_.list.size());
    for (size_t i = nodes_.list.size(); i-- > 0;) {
      VectorNode& node = nodes_.list[i];
      const bool is_own = std::all_of(readers[i].begin(), readers[i].end(), [&](size_t reader) {
        return static_cast<int>(reader) == node.reduction ||
               nodes_.list[reader].reduction == node.reduction;
      });
      if (node.reduction >= 0 && !is_own) {
        node.reduction = -1;
        node.is_reduced.clear();
      }
      for (const Operand& operand : node.operands) readers[operand.node].push_back(i);
    }
  }

  size_t Add(VectorNode node) {
    nodes_.list.push_back(std::move(node));
    return nodes_.list.size() - 1;
  }

  // The node that holds a tensor, in the domain of the tensor's dimensions.
  absl::StatusOr<Operand> NodeOf(const Operation& operation, size_t output) {
    const auto key = std::pair(&operation, output);
    if (const auto it = tensors_.find(key); it != tensors_.end()) return it->second;
    absl::StatusOr<Operand> operand;
    if (operation.kind != Operation::Kind::kCompute) {
      std::vector<arith::ConstRange> whole;
      for (int64_t extent : operation.shape) whole.push_back({0, extent - 1});
      return InputNode(operation, output, whole);
    }
    if (const auto it = copies_.find(&operation); it != copies_.end()) {
      operand = CopyNode(operation, it->second);
    } else if (const isa::Instruction* product = ProductOf(operation, output)) {
      operand = ProductNode(operation, output, *product);
    } else if (operation.bodies[output].reducer) {
      operand = ReduceNode(operation, output);
    } else {
      operand =
          Value(operation.name, operation.bodies[output].value, operation.axes, operation.shape);
    }
    if (operand.ok()) tensors_[key] = *operand;
    return operand;
  }

  // The node of an input of which these elements are read. Parts that have none in common are loaded by themselves, and
  // so is what is read backwards: an interval around both ways would hold elements that nobody reads.
  Operand InputNode(const Operation& operation, size_t output,
                    const std::vector<arith::ConstRange>& ranges, bool backwards = false) {
    const auto is_apart = [](const arith::ConstRange& a, const arith::ConstRange& b) {
      return arith::Intersect(a, b).IsEmpty();
    };
    std::vector<Part>& parts = parts_[{&operation, output}];
    for (Part& part : parts) {
      bool apart = part.backwards != backwards;
      for (size_t d = 0; d < ranges.size(); ++d) {
        apart = apart || is_apart(part.ranges[d], ranges[d]);
      }
      if (apart) continue;
      for (size_t d = 0; d < ranges.size(); ++d) {
        part.ranges[d] = arith::Union(part.ranges[d], ranges[d]);
      }
      return All(part.node);
    }
    parts.push_back({ranges, backwards,
                     Add({.kind = Kind::kInput,
                          .name = operation.name,
                          .type = operation.outputs[output]->type,
                          .shape = operation.shape,
                          .input = &operation,
                          .output = output})});
    return All(parts.back().node);
  }

  Operand All(size_t node) const {
    Operand operand = {.node = node, .dimensions = {}};
    for (size_t d = 0; d < nodes_.list[node].shape.size(); ++d) {
      operand.dimensions.push_back(static_cast<int>(d));
    }
    return operand;
  }

  absl::StatusOr<Operand> CopyNode(const Operation& copy, Expr load) {
    const auto [producer, output] = graph_->producers.at(ir::Buffer(load.buffer()));
    Operand from;
    if (producer->kind == Operation::Kind::kCompute) {
      ASSIGN_OR_RETURN(from, NodeOf(*producer, output));
    } else {
      arith::VarRanges axes;
      for (size_t d = 0; d < copy.axes.size(); ++d) axes[copy.axes[d]] = {0, copy.shape[d] - 1};
      std::vector<arith::ConstRange> ranges;
      bool backwards = false;
      for (size_t d = 0; d < load.operands().size(); ++d) {
        const arith::LinearForm form = arith::Decompose(load.operands()[d]);
        for (const arith::LinearForm::Term& term : form.terms()) {
          backwards = backwards || term.coefficient < 0;
        }
        const arith::ConstRange inside = {0, producer->shape[d] - 1};
        ranges.push_back(arith::Intersect(arith::RangeOf(load.operands()[d], axes), inside));
      }
      from = InputNode(*producer, output, ranges, backwards);
    }
    // Of the indices those of the dimensions that the node has.
    std::vector<Expr> indices;
    for (int d : from.dimensions) indices.push_back(d < 0 ? Index(0) : load.operands()[d]);
    const VectorNode& read = nodes_.list[from.node];
    const ir::Buffer buffer =
        load.context().NewBuffer(read.name, read.type, std::vector<Expr>(indices.size(), Index(1)));
    const Expr element = load.context().Load(buffer, indices);
    return All(Add({.kind = Kind::kCopy,
                    .name = copy.name,
                    .type = copy.outputs[0]->type,
                    .shape = copy.shape,
                    .operands = {{.node = from.node, .dimensions = {}}},
                    .axes = copy.axes,
                    .value = ir::Replace(copy.bodies[0].value, {{load, element}}),
                    .load = element}));
  }

  absl::StatusOr<Operand> ReduceNode(const Operation& operation, size_t output) {
    const Body& body = operation.bodies[output];
    if (*body.reducer != Reducer::kSum && *body.reducer != Reducer::kMin &&
        *body.reducer != Reducer::kMax) {
      return InvalidInput("tensor ", operation.name,
                          ": expected a sum, a minimum or a maximum, found another reduction");
    }
    Graph g(graph_);
    // The same elements as a compute over all axes.
    const std::vector<size_t> order = MemoryOrder(operation, body);
    const size_t results = operation.axes.size();
    Shape shape;
    for (size_t d : order) {
      shape.push_back(d < results ? operation.shape[d] : body.axes[d - results].extent);
    }
    const Tensor elements =
        g.Compute(StrCat(operation.name, ".in"), shape, [&](const Axes& at) -> Expr {
          ir::VarMap by;
          for (size_t k = 0; k < order.size(); ++k) {
            const size_t d = order[k];
            if (d < results) {
              by[operation.axes[d]] = at[k];
            } else {
              const ReduceAxis& axis = body.axes[d - results];
              by[axis] = axis.min == 0 ? at[k] : at[k] + Index(axis.min);
            }
          }
          return ir::Substitute(body.value, by);
        });
    RETURN_IF_ERROR(graph_->status);
    const size_t first = nodes_.list.size();
    const Operation& all = *elements.operation();
    ASSIGN_OR_RETURN(Operand read, Value(operation.name, all.bodies[0].value, all.axes, all.shape));
    for (int& d : read.dimensions) d = d < 0 ? -1 : static_cast<int>(order[d]);
    VectorNode node = {.kind = Kind::kReduce,
                       .name = operation.name,
                       .type = operation.outputs[output]->type,
                       .shape = {},
                       .operands = {read},
                       .reducer = *body.reducer};
    for (const ReduceAxis& axis : body.axes) node.reduced.push_back(axis.extent);
    const int rank = static_cast<int>(operation.shape.size());
    Operand result;
    std::map<int, int> own;  // of the domain's dimensions
    for (int d = 0; d < rank; ++d) {
      if (std::count(read.dimensions.begin(), read.dimensions.end(), d) == 0) continue;
      own[d] = static_cast<int>(node.shape.size());
      node.shape.push_back(operation.shape[d]);
      result.dimensions.push_back(d);
    }
    for (size_t r = 0; r < body.axes.size(); ++r) {
      own[rank + static_cast<int>(r)] = static_cast<int>(node.shape.size() + r);
    }
    for (int& d : node.operands[0].dimensions) d = d < 0 ? -1 : own.at(d);
    result.node = Add(std::move(node));
    // What was made for these elements alone belongs to the reduction's loops.
    for (size_t i = first; i < result.node; ++i) {
      VectorNode& part = nodes_.list[i];
      const auto it = domains_.find(i);
      if (it == domains_.end() || it->second.first != &all.axes) continue;
      for (int d : it->second.second) {
        part.is_reduced.push_back(d >= 0 && order[d] >= results);
      }
      const bool varies = std::count(part.is_reduced.begin(), part.is_reduced.end(), true) > 0;
      if (varies) part.reduction = static_cast<int>(result.node);
    }
    return result;
  }

  static Expr WithoutCast(Expr e) { return e.Is(ExprKind::kCast) ? e.operand(0) : e; }

  // Which factor of a product are the weights: the one that the last axis, the channels, occurs in. -1: neither or
  // both.
  static int WeightsOf(const Operation& operation, const Body& body) {
    const bool first = ir::UsesVar(body.value.operand(0), operation.axes.back());
    const bool second = ir::UsesVar(body.value.operand(1), operation.axes.back());
    return first == second ? -1 : first ? 0 : 1;
  }

  // The tensor unit's instruction for a sum of products of two elements over one axis; null if there is none. Each
  // axis of the results belongs to a factor; along at least one the weights are the same, so that rows share them.
  const isa::Instruction* ProductOf(const Operation& operation, size_t output) const {
    const Body& body = operation.bodies[output];
    if (!products_ || body.reducer != Reducer::kSum || !body.value.Is(ExprKind::kMul) ||
        body.axes.size() != 1 || operation.axes.empty()) {
      return nullptr;
    }
    const int weights = WeightsOf(operation, body);
    const Expr load = WithoutCast(body.value.operand(0)),
               other = WithoutCast(body.value.operand(1));
    if (weights < 0 || !load.Is(ExprKind::kLoad) || !other.Is(ExprKind::kLoad) ||
        load.type() != other.type() || !ir::UsesVar(load, body.axes[0]) ||
        !ir::UsesVar(other, body.axes[0])) {
      return nullptr;
    }
    bool shares = false;
    for (size_t d = 0; d + 1 < operation.axes.size(); ++d) {
      const bool in_weights = ir::UsesVar(body.value.operand(weights), operation.axes[d]);
      const bool in_rows = ir::UsesVar(body.value.operand(1 - weights), operation.axes[d]);
      if (!in_weights && !in_rows) return nullptr;
      shares = shares || !in_weights;
    }
    const isa::Instruction* product = instructions_.SumOfProducts(load.type(), 2, 1);
    const bool fits =
        product != nullptr && product->meaning.params[0].buffer->type == body.value.type();
    return shares && fits ? product : nullptr;
  }

  //   Y[b, y, c] = sum over r of f32(A[b, y, r]) * f32(B[b, r, c])
  //   operands: A[b, y, r], and a copy of B as [b, c, r]
  absl::StatusOr<Operand> ProductNode(const Operation& operation, size_t output,
                                      const isa::Instruction& product) {
    const Body& body = operation.bodies[output];
    const size_t rank = operation.axes.size();
    const int weights = WeightsOf(operation, body);
    VectorNode node = {.kind = Kind::kProduct,
                       .name = operation.name,
                       .type = operation.outputs[output]->type,
                       .shape = operation.shape,
                       .reduced = {body.axes[0].extent},
                       .product = &product};
    for (const int factor : {1 - weights, weights}) {
      const Expr load = WithoutCast(body.value.operand(factor));
      std::vector<size_t> order;
      Shape shape;
      for (size_t d = 0; d < rank; ++d) {
        if (!ir::UsesVar(load, operation.axes[d])) continue;
        order.push_back(d);
        shape.push_back(operation.shape[d]);
      }
      order.push_back(rank);
      shape.push_back(body.axes[0].extent);
      Graph g(graph_);
      const Tensor elements =
          g.Compute(StrCat(operation.name, factor == weights ? ".weights" : ".rows"), shape,
                    [&](const Axes& at) -> Expr {
                      ir::VarMap by;
                      for (size_t k = 0; k + 1 < order.size(); ++k)
                        by[operation.axes[order[k]]] = at[k];
                      const int64_t min = body.axes[0].min;
                      by[body.axes[0]] = min == 0 ? at.back() : at.back() + Index(min);
                      return ir::Substitute(load, by);
                    });
      RETURN_IF_ERROR(graph_->status);
      const Operation& all = *elements.operation();
      ASSIGN_OR_RETURN(Operand read, Value(all.name, all.bodies[0].value, all.axes, all.shape));
      if (read.dimensions.size() != order.size()) {
        return InvalidInput("tensor ", operation.name,
                            ": expected factors of which each index counts");
      }
      for (int& d : read.dimensions) d = d < 0 ? -1 : static_cast<int>(order[d]);
      node.operands.push_back(std::move(read));
    }
    return All(Add(std::move(node)));
  }

  // The results' and the reduced axes (these count on from the results') in the order in which the elements stand in
  // memory: that of a load whose indices are all of them; or, where a result's are the last, all that have more than
  // one element, and numbers. Without such a load results' come first.
  static std::vector<size_t> MemoryOrder(const Operation& operation, const Body& body) {
    Axes all = operation.axes;
    all.insert(all.end(), body.axes.begin(), body.axes.end());
    std::vector<size_t> order(all.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = d;
    const auto is_one = [&](size_t d) {
      const size_t results = operation.axes.size();
      return (d < results ? operation.shape[d] : body.axes[d - results].extent) == 1;
    };
    ir::ForEachExpr(body.value, [&](Expr e) {
      if (!e.Is(ExprKind::kLoad)) return;
      std::vector<size_t> found;
      for (Expr index : e.operands()) {
        const auto it = std::find(all.begin(), all.end(), index);
        if (it != all.end()) found.push_back(it - all.begin());
        if (it == all.end() && !index.IsConst()) return;
      }
      std::set<size_t> has(found.begin(), found.end());
      for (size_t d = all.size(); d-- > 0;) {
        if (is_one(d) && has.insert(d).second) found.insert(found.begin(), d);
      }
      if (has.size() != all.size() || found.size() != all.size()) return;
      if (e.operands().size() == all.size() || found.back() < operation.axes.size()) order = found;
    });
    return order;
  }

  Expr Index(int64_t i) const { return graph_->context->Int(graph_->index_type, i); }

  // The node of an expression over `axes`.
  absl::StatusOr<Operand> Value(const std::string& name, Expr value, const Axes& axes,
                                const Shape& shape) {
    Graph g(graph_);
    ASSIGN_OR_RETURN(const Expr plain, Plain(name, value, axes, shape));
    const Tensor elements = g.Compute(name, shape, [&](const Axes& at) -> Expr {
      ir::VarMap by;
      for (size_t d = 0; d < axes.size(); ++d) by[axes[d]] = at[d];
      return ir::Substitute(plain, by);
    });
    RETURN_IF_ERROR(graph_->status);
    if (!IsElementwise(*elements.operation())) {
      return InvalidInput("tensor ", name, ": the card has no instruction for ", ir::Print(value));
    }
    ASSIGN_OR_RETURN(const Steps steps, CutIntoSteps(elements, instructions_, whole_));
    std::vector<Operand> operands;
    for (const Step& step : steps.list) {
      if (step.tensor != nullptr) {
        ASSIGN_OR_RETURN(Operand operand, NodeOf(*step.tensor, step.output));
        for (int& d : operand.dimensions) d = d < 0 ? -1 : step.dimensions[d];
        const VectorNode& node = nodes_.list[operand.node];
        if (node.kind == Kind::kCopy) domains_[operand.node] = {&axes, operand.dimensions};
        operands.push_back(std::move(operand));
        continue;
      }
      Operand own;
      std::vector<int> position(shape.size(), -1);
      VectorNode node = {
          .kind = Kind::kLane, .name = step.name, .type = step.type, .shape = {}, .step = step};
      for (size_t d = 0; d < shape.size(); ++d) {
        if (!step.varies[d]) continue;
        position[d] = static_cast<int>(node.shape.size());
        node.shape.push_back(shape[d]);
        own.dimensions.push_back(static_cast<int>(d));
      }
      for (size_t operand : step.operands) {
        node.operands.push_back(operands[operand]);
        for (int& d : node.operands.back().dimensions) d = d < 0 ? -1 : position[d];
      }
      own.node = Add(std::move(node));
      domains_[own.node] = {&axes, own.dimensions};
      operands.push_back(std::move(own));
    }
    return operands[steps.result];
  }

  // `e` over elements at plain places alone: others are copies.
  absl::StatusOr<Expr> Plain(const std::string& name, Expr e, const Axes& axes,
                             const Shape& shape) {
    if (e.Is(ExprKind::kLoad)) return IsPlain(e, axes, shape) ? e : Copy(name, e, e, axes, shape);
    if (e.Is(ExprKind::kSelect) && HasAxisOutsideLoads(e.operand(0), axes)) {
      const bool loads_first = e.operand(1).Is(ExprKind::kLoad);
      const Expr load = e.operand(loads_first ? 1 : 2), other = e.operand(loads_first ? 2 : 1);
      bool has_loads = false;
      ir::ForEachExpr(e.operand(0),
                      [&](Expr part) { has_loads = has_loads || part.Is(ExprKind::kLoad); });
      if (!load.Is(ExprKind::kLoad) || !other.IsConst() || has_loads) {
        return InvalidInput("tensor ", name,
                            ": expected an element or a constant by a condition on the axes, "
                            "found ",
                            ir::Print(e));
      }
      const Expr select =
          loads_first ? e : e.context().Select(ir::Not(e.operand(0)), e.operand(2), e.operand(1));
      return Copy(name, select, load, axes, shape);
    }
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) {
      ASSIGN_OR_RETURN(const Expr plain, Plain(name, operand, axes, shape));
      operands.push_back(plain);
    }
    return operands.empty() ? e : e.context().Rebuild(e, operands);
  }

  // Whether all elements of a tensor are read in the order of the axes, each index an axis or 0.
  bool IsPlain(Expr load, const Axes& axes, const Shape& shape) const {
    const Operation& producer = *graph_->producers.at(ir::Buffer(load.buffer())).first;
    size_t next = 0;
    for (size_t d = 0; d < load.operands().size(); ++d) {
      const Expr index = load.operands()[d];
      if (producer.shape[d] == 1 && index.IsInt(0)) continue;
      const auto it = std::find(axes.begin() + static_cast<ptrdiff_t>(next), axes.end(), index);
      if (it == axes.end() || shape[it - axes.begin()] != producer.shape[d]) return false;
      next = it - axes.begin() + 1;
    }
    return true;
  }

  // An element of a new compute that copies: `value` over the axes that it has.
  absl::StatusOr<Expr> Copy(const std::string& name, Expr value, Expr load, const Axes& axes,
                            const Shape& shape) {
    const auto key = std::pair(value, axes.empty() ? Expr() : axes[0]);
    if (const auto it = elements_.find(key); it != elements_.end()) return it->second;
    Axes used;
    Shape extents;
    for (size_t d = 0; d < axes.size(); ++d) {
      if (!ir::UsesVar(value, axes[d])) continue;
      used.push_back(axes[d]);
      extents.push_back(shape[d]);
    }
    int loads = 0;
    ir::ForEachExpr(value, [&](Expr part) { loads += part.Is(ExprKind::kLoad); });
    if (loads > 1) {
      return InvalidInput("tensor ", name, ": expected indices of axes alone, found ",
                          ir::Print(load));
    }
    if (used.empty()) {
      used = {axes.empty() ? Index(0) : axes[0]};
      extents = {axes.empty() ? 1 : shape[0]};
    }
    Graph g(graph_);
    Expr copied_load;
    const Tensor copy = g.Compute(StrCat(name, ".at"), extents, [&](const Axes& at) -> Expr {
      ir::VarMap by;
      for (size_t d = 0; d < at.size(); ++d) {
        if (used[d].Is(ExprKind::kVar)) by[used[d]] = at[d];
      }
      copied_load = ir::Substitute(load, by);
      return ir::Substitute(value, by);
    });
    RETURN_IF_ERROR(graph_->status);
    copies_[copy.operation()] = copied_load;
    whole_.insert(copy.operation());
    return elements_[key] = copy(used);
  }

  std::shared_ptr<GraphState> graph_;
  const LaneInstructions& instructions_;
  const bool products_;
  // Computes that are nodes of their own, not parts of their readers' expressions.
  absl::flat_hash_set<const Operation*> whole_;
  absl::flat_hash_map<const Operation*, Expr> copies_;  // their loads
  std::map<std::pair<const Operation*, size_t>, Operand> tensors_;
  struct Part {
    std::vector<arith::ConstRange> ranges;
    bool backwards;
    size_t node;
  };
  std::map<std::pair<const Operation*, size_t>, std::vector<Part>> parts_;  // of inputs
  absl::flat_hash_map<std::pair<Expr, Expr>, Expr> elements_;
  // The axes of the expression that a node is a part of, and which of these its dimensions are.
  std::map<size_t, std::pair<const Axes*, std::vector<int>>> domains_;
  VectorNodes nodes_;
};

}  // namespace

absl::StatusOr<VectorNodes> CutIntoNodes(const Tensor& output, const LaneInstructions& instructions,
                                         bool products) {
  RETURN_IF_ERROR(output.graph()->status);
  return Cutter(output, instructions, products).Run(output);
}

}  // namespace polynao::te
