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
  return ElementCount(operation.shape) <= std::max<int64_t>(1, operation.shape.back());
}

// Whether each load has axes of `compute` or 0 as its indices, the last axis where the tensor has channels, and no
// other value depends on that axis.
bool ReadsByAxes(const GraphState& graph, const Operation& compute) {
  const Expr channel = compute.axes.back();
  const std::function<bool(Expr)> is_free = [&](Expr e) {
    if (!e.Is(ExprKind::kLoad)) {
      return e != channel && std::all_of(e.operands().begin(), e.operands().end(), is_free);
    }
    const Shape& shape = graph.producers.at(ir::Buffer(e.buffer())).first->shape;
    for (size_t d = 0; d < e.operands().size(); ++d) {
      const Expr index = e.operands()[d];
      const bool has_channels = d + 1 == shape.size() && shape[d] == compute.shape.back();
      const bool is_axis =
          std::find(compute.axes.begin(), compute.axes.end(), index) != compute.axes.end();
      if ((index == channel) != has_channels || (!is_axis && !index.IsInt(0))) return false;
    }
    return true;
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
      const bool is_whole = read->shape == end->shape || IsVector(*read);
      if (!is_whole || (IsVector(*read) && read->kind == Operation::Kind::kCompute)) return nullptr;
      rest.push_back(read);
    }
  }
  return end;
}

BlockReader ReadBlocks(const Tensor& output, const Operation& end) {
  const GraphState& whole = *output.graph();
  const auto blocked = [&](Shape shape) {
    if (shape.empty() || shape.back() != end.shape.back()) return shape;
    shape.back() /= isa::kTensorLanes;
    shape.push_back(isa::kTensorLanes);
    return shape;
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
  // The element of a tensor of the whole graph at indices of which the last may be two.
  const auto element = [&](const Operation& operation, const Axes& at) {
    if (&operation != &end) return own.at(&operation)(at);
    Axes of_blocks = {at[at.size() - 2]};
    of_blocks.insert(of_blocks.end(), at.begin(), at.end() - 2);
    of_blocks.push_back(at.back());
    return own.at(&end)(of_blocks);
  };
  // `e` of a compute of the whole graph, whose element is that at `at`.
  const std::function<Expr(Expr, const Operation&, const Axes&)> rewrite =
      [&](Expr e, const Operation& compute, const Axes& at) -> Expr {
    if (e.Is(ExprKind::kVar)) {
      const auto axis = std::find(compute.axes.begin(), compute.axes.end(), e);
      return axis == compute.axes.end() ? e : at[axis - compute.axes.begin()];
    }
    Axes operands;
    if (!e.Is(ExprKind::kLoad)) {
      for (Expr operand : e.operands()) operands.push_back(rewrite(operand, compute, at));
      return e.context().Rebuild(e, operands);
    }
    for (Expr index : e.operands()) {
      if (index == compute.axes.back()) operands.push_back(at[at.size() - 2]);
      operands.push_back(index == compute.axes.back() ? at.back() : rewrite(index, compute, at));
    }
    return element(*whole.producers.at(ir::Buffer(e.buffer())).first, operands);
  };
  for (const Operation& operation : whole.operations) {
    if (std::find(needed.begin(), needed.end(), &operation) == needed.end()) continue;
    if (&operation == &end) {
      Shape shape = blocked(end.shape);
      std::rotate(shape.begin(), shape.end() - 2, shape.end() - 1);
      own[&end] = g.Placeholder(StrCat(end.name, ".blocks"), shape, end.outputs[0]->type);
      reader.inputs.push_back(&end);
    } else if (operation.kind == Operation::Kind::kPlaceholder) {
      own[&operation] = g.Reshape(
          g.Placeholder(operation.name, operation.shape, operation.outputs[0]->type),
          blocked(operation.shape));
      reader.inputs.push_back(&operation);
    } else if (operation.kind == Operation::Kind::kView) {
      const Tensor& base = own.at(operation.base);
      const Operation* placeholder = base.operation()->kind == Operation::Kind::kView
                                         ? base.operation()->base
                                         : base.operation();
      own[&operation] = g.Reshape(Tensor(g.state(), placeholder), blocked(operation.shape));
    } else {
      own[&operation] =
          g.Compute(operation.name, blocked(operation.shape), [&](const Axes& at) {
            return rewrite(operation.bodies[0].value, operation, at);
          });
    }
  }
  if (output.operation() == &end) {
    reader.output = g.Compute(StrCat(end.name, ".pixels"), blocked(end.shape),
                              [&](const Axes& at) { return element(end, at); });
  } else {
    reader.output = own.at(output.operation());
  }
  return reader;
}

}  // namespace polynao::te
