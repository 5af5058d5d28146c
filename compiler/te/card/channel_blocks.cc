#include "compiler/te/card/channel_blocks.h"

#include <algorithm>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "base/text.h"
#include "compiler/ir/visit.h"
#include "compiler/te/card/card_group.h"
#include "compiler/te/card/column_sums.h"
#include "compiler/te/schedule.h"
#include "isa/granularity.h"

namespace polynao::te {
namespace {

using ir::ExprKind;

bool IsVector(const Operation& operation) {
  const Shape& shape = operation.shape;
  return ElementCount(shape) <= (shape.empty() ? 1 : std::max<int64_t>(1, shape.back()));
}

// Whether each load is of the element at all axes, or of a vector's at the last axis or 0, and no other value depends
// on axes.
bool ReadsByAxes(const GraphState& graph, const Operation& compute) {
  const std::function<bool(Expr)> is_free = [&](Expr e) {
    const std::vector<Expr> operands(e.operands().begin(), e.operands().end());
    if (!e.Is(ExprKind::kLoad)) {
      return std::find(compute.axes.begin(), compute.axes.end(), e) == compute.axes.end() &&
             std::all_of(operands.begin(), operands.end(), is_free);
    }
    const Operation& read = *graph.producers.at(ir::Buffer(e.buffer())).first;
    if (read.shape == compute.shape) return operands == compute.axes;
    if (!IsVector(read)) return false;
    if (operands.empty()) return true;
    const bool has_channels = read.shape.back() == compute.shape.back();
    return std::all_of(operands.begin(), operands.end() - 1,
                       [](Expr index) { return index.IsInt(0); }) &&
           (has_channels ? operands.back() == compute.axes.back() : operands.back().IsInt(0));
  };
  return is_free(compute.bodies[0].value);
}

}  // namespace

const Operation* EndOfBlocks(const Tensor& output) {
  const GraphState& graph = *output.graph();
  const std::vector<const Operation*> computes = Computes(output);
  absl::flat_hash_map<const Operation*, std::vector<const Operation*>> readers;
  const Operation* end = nullptr;
  for (const Operation* compute : computes) {
    for (const Operation* read : ReadOperations(graph, compute->bodies)) {
      readers[read].push_back(compute);
    }
    if (IsColumnSum(*compute)) return nullptr;
    if (!IsSumOfProducts(*compute)) continue;
    if (end != nullptr) return nullptr;
    end = compute;
  }
  const int64_t channels = output.shape().empty() ? 0 : output.shape().back();
  if (end == nullptr || (output.rank() != 2 && output.rank() != 3) ||
      end->shape != output.shape() || channels < 2 * isa::kTensorLanes ||
      channels % isa::kTensorLanes != 0 || ElementCount(output.shape()) == 0) {
    return nullptr;
  }
  const auto is_behind = [&](const Operation& compute) {
    return IsElementwise(compute) && compute.bodies.size() == 1 && compute.shape == end->shape;
  };
  const auto reads_vectors = [&](const Operation& compute) {
    const std::vector<const Operation*> read = ReadOperations(graph, compute.bodies);
    return std::all_of(read.begin(), read.end(), [&](const Operation* operation) {
      return operation == end || IsVector(*operation);
    });
  };
  while (readers[end].size() == 1 && is_behind(*readers[end][0]) &&
         reads_vectors(*readers[end][0])) {
    end = readers[end][0];
  }
  // Of the rest all is elementwise and over the output's dimensions, or a vector.
  std::vector<const Operation*> rest = {output.operation()};
  for (size_t i = 0; i < rest.size(); ++i) {
    const Operation& operation = *rest[i];
    if (&operation == end || operation.kind != Operation::Kind::kCompute) continue;
    if (!is_behind(operation) || !ReadsByAxes(graph, operation)) return nullptr;
    for (const Operation* read : ReadOperations(graph, operation.bodies)) {
      if (IsVector(*read) && read->kind == Operation::Kind::kCompute) return nullptr;
      rest.push_back(read);
    }
  }
  return end;
}

BlockReader ReadBlocks(const Tensor& output, const Operation& end) {
  const GraphState& whole = *output.graph();
  // Pixels, blocks, channels of one; of a vector without the first.
  const auto blocked = [&](const Shape& shape) -> Shape {
    const int64_t all = ElementCount(shape), channels = end.shape.back();
    if (all < channels) return {all};
    Shape blocks = {channels / isa::kTensorLanes, isa::kTensorLanes};
    if (shape == end.shape) blocks.insert(blocks.begin(), all / channels);
    return blocks;
  };
  std::vector<const Operation*> needed = {output.operation()};
  for (size_t i = 0; i < needed.size(); ++i) {
    const Operation& operation = *needed[i];
    if (operation.kind == Operation::Kind::kView) needed.push_back(operation.base);
    if (operation.kind != Operation::Kind::kCompute || &operation == &end) continue;
    for (const Operation* read : ReadOperations(whole, operation.bodies)) needed.push_back(read);
  }
  Graph g(whole.Empty());
  BlockReader reader;
  absl::flat_hash_map<const Operation*, Tensor> own;
  // The element of a tensor of the whole graph that is `at`: pixel, block, channel of it.
  const auto element = [&](const Operation& operation, const Axes& at) {
    if (&operation == &end) return own.at(&end)(Axes{at[1], at[0], at[2]});
    const Tensor& tensor = own.at(&operation);
    if (operation.shape == end.shape) return tensor(at);
    if (tensor.rank() == 2) return tensor(Axes{at[1], at[2]});
    return tensor(Axes{g.context().Int(g.index_type(), 0)});
  };
  const std::function<Expr(Expr, const Axes&)> rewrite = [&](Expr e, const Axes& at) -> Expr {
    if (e.Is(ExprKind::kLoad)) {
      return element(*whole.producers.at(ir::Buffer(e.buffer())).first, at);
    }
    Axes operands;
    for (Expr operand : e.operands()) operands.push_back(rewrite(operand, at));
    return operands.empty() ? e : e.context().Rebuild(e, operands);
  };
  for (const Operation& operation : whole.operations) {
    if (std::find(needed.begin(), needed.end(), &operation) == needed.end()) continue;
    if (&operation == &end) {
      const Shape shape = blocked(end.shape);
      own[&end] = g.Placeholder(StrCat(end.name, ".blocks"), {shape[1], shape[0], shape[2]},
                                end.outputs[0]->type);
      reader.inputs.push_back(&end);
    } else if (operation.kind == Operation::Kind::kPlaceholder) {
      own[&operation] =
          g.Reshape(g.Placeholder(operation.name, operation.shape, operation.outputs[0]->type),
                    blocked(operation.shape));
      reader.inputs.push_back(&operation);
    } else if (operation.kind == Operation::Kind::kView) {
      const Operation* base = own.at(operation.base).operation();
      if (base->kind == Operation::Kind::kView) base = base->base;
      own[&operation] = g.Reshape(Tensor(g.state(), base), blocked(operation.shape));
    } else {
      own[&operation] = g.Compute(operation.name, blocked(operation.shape), [&](const Axes& at) {
        return rewrite(operation.bodies[0].value, at);
      });
    }
  }
  reader.output = output.operation() != &end
                      ? own.at(output.operation())
                      : g.Compute(StrCat(end.name, ".pixels"), blocked(end.shape),
                                  [&](const Axes& at) { return element(end, at); });
  return reader;
}

}  // namespace polynao::te
