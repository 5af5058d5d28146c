#include "compiler/te/graph.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/visit.h"

namespace polynao::te {

using ir::Buffer;
using ir::Context;
using ir::ExprKind;

int64_t ElementCount(const Shape& shape) {
  constexpr int64_t kLimit = int64_t{1} << 62;
  __int128 count = 1;
  for (int64_t extent : shape) {
    if (extent == 0) return 0;
    count = std::min<__int128>(count * extent, kLimit);
  }
  return static_cast<int64_t>(count);
}

Expr Identity(Reducer reducer, Context& context, Type type) {
  const bool is_float = ir::IsFloat(type);
  const bool is_min = reducer == Reducer::kMin || reducer == Reducer::kArgMin;
  switch (reducer) {
    case Reducer::kSum:
      return context.Const(type, 0);
    case Reducer::kProd:
      return context.Const(type, 1);
    case Reducer::kMin:
    case Reducer::kMax:
    case Reducer::kArgMin:
    case Reducer::kArgMax: {
      if (is_float) {
        const double infinity = std::numeric_limits<double>::infinity();
        return context.Float(type, is_min ? infinity : -infinity);
      }
      return context.Int(type, is_min ? ir::GreatestInt(type) : ir::LeastInt(type));
    }
  }
  POLYNAO_UNREACHABLE(static_cast<int>(reducer));
}

Expr Combine(Reducer reducer, Expr accumulated, Expr value) {
  switch (reducer) {
    case Reducer::kSum:
      return accumulated + value;
    case Reducer::kProd:
      return accumulated * value;
    // Of truths: whether all, whether any is true.
    case Reducer::kMin:
      return value.type() == Type::kI1 ? ir::And(accumulated, value) : ir::Min(accumulated, value);
    case Reducer::kMax:
      return value.type() == Type::kI1 ? ir::Or(accumulated, value) : ir::Max(accumulated, value);
    case Reducer::kArgMin:
    case Reducer::kArgMax:
      break;
  }
  POLYNAO_UNREACHABLE(static_cast<int>(reducer));
}

Expr TakesOver(Reducer reducer, Expr old_index, Expr old_value, Expr index, Expr value) {
  POLYNAO_CHECK(IsArgReducer(reducer)) << static_cast<int>(reducer);
  const Expr better = reducer == Reducer::kArgMin ? value < old_value : old_value < value;
  return ir::Or(better, ir::And(ir::Eq(value, old_value), index < old_index));
}

Expr Select(Expr condition, Expr then_value, Expr else_value) {
  return condition.context().Select(condition, then_value, else_value);
}

Expr Select(Expr condition, Expr then_value, double else_value) {
  Context& context = condition.context();
  const Type type = then_value.type();
  return context.Select(condition, then_value,
                        ir::IsFloat(type) ? context.Float(type, else_value)
                                          : context.Int(type, static_cast<int64_t>(else_value)));
}

void GraphState::Fail(const std::string& message) {
  if (status.ok()) status = InvalidInput("graph ", name, ": ", message);
}

std::shared_ptr<GraphState> GraphState::Empty() const {
  auto state = std::make_shared<GraphState>();
  state->name = name;
  state->context = context;
  state->index_type = index_type;
  state->within = within;
  state->status = status;
  state->scalars = scalars;
  return state;
}

Operation& GraphState::Add(Operation operation, absl::Span<const Type> types) {
  std::vector<Expr> extents;
  for (int64_t extent : operation.shape) extents.push_back(context->Int(index_type, extent));
  operations.push_back(std::move(operation));
  Operation& added = operations.back();
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string name = types.size() == 1 ? added.name : StrCat(added.name, ".", i);
    const Buffer buffer = context->NewBuffer(name, types[i], extents);
    added.outputs.push_back(buffer);
    producers[buffer] = {&added, i};
  }
  return added;
}

Tensor Tensor::output(size_t i) const {
  POLYNAO_CHECK(i < operation_->outputs.size())
      << operation_->name << " has " << operation_->outputs.size() << " outputs";
  return Tensor(graph_, operation_, i);
}

Expr Tensor::At(absl::Span<const Expr> indices) const {
  Context& context = *graph_->context;
  if (indices.size() != rank()) {
    graph_->Fail(StrCat("tensor ", name(), " has ", rank(), " dimensions, ", indices.size(),
                        " indices given"));
    return context.Const(type(), 0);
  }
  std::vector<Expr> converted;
  for (Expr index : indices) {
    if (!ir::IsInt(index.type())) {
      graph_->Fail(StrCat("tensor ", name(), " is indexed by a value of type ",
                          ir::TypeName(index.type()), ", expected an integer"));
      return context.Const(type(), 0);
    }
    converted.push_back(context.Cast(graph_->index_type, index));
  }
  return context.Load(buffer(), converted);
}

Graph::Graph(std::string_view name, Type index_type) : state_(std::make_shared<GraphState>()) {
  POLYNAO_CHECK(index_type == Type::kI32 || index_type == Type::kI64) << ir::TypeName(index_type);
  state_->name = name;
  state_->context = std::make_shared<Context>();
  state_->index_type = index_type;
}

bool Graph::CheckShape(std::string_view name, const Shape& shape) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0) {
      state_->Fail(
          StrCat("tensor ", name, ": extent ", d, " is ", shape[d], ", expected 0 or more"));
      return false;
    }
  }
  if (ElementCount(shape) > std::numeric_limits<int32_t>::max() &&
      state_->index_type == Type::kI32) {
    for (const Operation& operation : state_->operations) {
      if (operation.kind == Operation::Kind::kCompute) {
        state_->Fail(StrCat("tensor ", name, " of ", ElementCount(shape),
                            " elements needs i64 indices, but ", operation.name,
                            " was made before with i32: give Graph the index type i64"));
        return false;
      }
    }
    state_->index_type = Type::kI64;
  }
  return true;
}

namespace {

std::string DefaultAxisName(size_t dimension) {
  static constexpr std::string_view kNames = "ijklmn";
  return dimension < kNames.size() ? std::string(1, kNames[dimension]) : StrCat("i", dimension);
}

std::vector<std::string> DefaultAxisNames(size_t rank) {
  std::vector<std::string> names;
  for (size_t d = 0; d < rank; ++d) names.push_back(DefaultAxisName(d));
  return names;
}

}  // namespace

Tensor Graph::ConstantPlaceholder(std::string_view name, const Shape& shape, Type type) {
  const Tensor tensor = Placeholder(name, shape, type);
  state_->operations.back().is_constant = true;
  return tensor;
}

Tensor Graph::Placeholder(std::string_view name, const Shape& shape, Type type) {
  const bool valid = CheckShape(name, shape);
  Operation operation{.kind = Operation::Kind::kPlaceholder,
                      .name = std::string(name),
                      // After a mistake nothing is lowered; the rank still serves A(i, j).
                      .shape = valid ? shape : Shape(shape.size(), 0),
                      .outputs = {},
                      .axes = {},
                      .axis_names = DefaultAxisNames(shape.size()),
                      .bodies = {}};
  return Tensor(state_, &state_->Add(std::move(operation), {type}));
}

Expr Graph::Scalar(std::string_view name, Type type) {
  state_->scalars.push_back(state_->context->NewVar(name, type));
  return state_->scalars.back();
}

ReduceAxis Graph::ReduceAxisOf(std::string_view name, int64_t min, int64_t extent) {
  const int64_t limit = std::numeric_limits<int32_t>::max();
  if (extent < 0) {
    state_->Fail(StrCat("reduce axis ", name, " has extent ", extent, ", expected 0 or more"));
  } else if (state_->index_type == Type::kI32 && (min < -limit || min + extent > limit)) {
    state_->Fail(StrCat("reduce axis ", name, " from ", min, " of extent ", extent,
                        " needs i64 indices: give Graph the index type i64"));
  }
  return ReduceAxis{state_->context->NewVar(name, state_->index_type), min, extent};
}

Axes Graph::NewAxes(std::string_view name, const Shape& shape,
                    std::vector<std::string>& axis_names) {
  CheckShape(name, shape);
  if (axis_names.size() > shape.size()) {
    state_->Fail(StrCat("compute ", name, " has ", shape.size(), " dimensions, ", axis_names.size(),
                        " axis names given"));
  }
  Axes axes;
  axis_names.resize(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (axis_names[d].empty()) axis_names[d] = DefaultAxisName(d);
    axes.push_back(state_->context->NewVar(axis_names[d], state_->index_type));
  }
  return axes;
}

void Graph::CheckArity(std::string_view name, size_t arity, Axes& axes) {
  if (arity == axes.size()) return;
  state_->Fail(StrCat("compute ", name, " has ", axes.size(),
                      " dimensions, but its function takes ", arity));
  axes.resize(arity, state_->context->Int(state_->index_type, 0));
}

std::vector<Tensor> Graph::Define(std::string_view name, const Shape& shape, const Axes& axes,
                                  std::vector<std::string> axis_names, std::vector<Body> bodies) {
  POLYNAO_CHECK(!bodies.empty()) << "compute " << name << " returns no value";
  const Body& first = bodies[0];
  absl::flat_hash_set<Expr> known(axes.begin(), axes.end());
  known.insert(state_->scalars.begin(), state_->scalars.end());
  for (const ReduceAxis& axis : first.axes) {
    if (!known.insert(axis).second) {
      state_->Fail(StrCat("compute ", name, " reduces twice over axis ", axis.name()));
    }
  }
  if (first.reducer && IsArgReducer(*first.reducer) &&
      (bodies.size() != 2 || bodies[1].reducer != first.reducer ||
       !ir::IsInt(first.value.type()))) {
    state_->Fail(StrCat("compute ", name,
                        " reduces to an index: expected two results, an integer and a value"));
  }
  std::vector<Type> types;
  for (const Body& body : bodies) {
    types.push_back(body.value.type());
    if (body.reducer.has_value() != first.reducer.has_value() ||
        !std::equal(body.axes.begin(), body.axes.end(), first.axes.begin(), first.axes.end())) {
      state_->Fail(StrCat("compute ", name, " reduces its values over different axes"));
    }
    for (Expr var : ir::FreeVars(body.value)) {
      if (known.contains(var)) continue;
      state_->Fail(StrCat("compute ", name, " uses the variable ", var.name(),
                          ", which is neither an axis of it nor a reduce axis in its ",
                          "reduction nor a scalar"));
    }
  }
  Operation operation{.kind = Operation::Kind::kCompute,
                      .name = std::string(name),
                      .shape = shape,
                      .outputs = {},
                      .axes = axes,
                      .axis_names = std::move(axis_names),
                      .bodies = std::move(bodies)};
  const Operation& added = state_->Add(std::move(operation), types);
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < types.size(); ++i) tensors.emplace_back(state_, &added, i);
  return tensors;
}

Tensor Graph::Reshape(const Tensor& tensor, const Shape& shape) {
  if (tensor.shape() == shape) return tensor;
  const bool valid = CheckShape(tensor.name(), shape);
  if (valid && ElementCount(shape) != ElementCount(tensor.shape())) {
    state_->Fail(StrCat("tensor ", tensor.name(), " of shape [",
                        absl::StrJoin(tensor.shape(), ", "), "] has no view of shape [",
                        absl::StrJoin(shape, ", "), "]: the element counts are ",
                        ElementCount(tensor.shape()), " and ", ElementCount(shape)));
  }
  const Operation* operation = tensor.operation();
  if (operation->kind != Operation::Kind::kCompute) {
    if (operation->kind == Operation::Kind::kView) operation = operation->base;
    if (operation->shape == shape) return Tensor(state_, operation);
    Operation view{.kind = Operation::Kind::kView,
                   .name = operation->name,
                   .shape = valid ? shape : Shape(shape.size(), 0),
                   .outputs = {},
                   .axes = {},
                   .axis_names = DefaultAxisNames(shape.size()),
                   .bodies = {},
                   .base = operation};
    return Tensor(state_, &state_->Add(std::move(view), {tensor.type()}));
  }
  return Compute(StrCat(tensor.name(), ".view"), shape, [&](const Axes& axes) {
    // Row-major position, then the digits of that number in the tensor's own shape.
    Context& context = *state_->context;
    Expr position = context.Int(state_->index_type, 0);
    for (size_t d = 0; d < axes.size(); ++d) {
      position = d == 0 ? axes[0] : position * shape[d] + axes[d];
    }
    std::vector<Expr> indices(tensor.rank());
    for (size_t d = tensor.rank(); d-- > 0;) {
      // No element is ever computed if an extent is 0.
      const int64_t extent = std::max<int64_t>(1, tensor.shape()[d]);
      indices[d] = d == 0 ? position : position % extent;
      if (d > 0) position = position / extent;
    }
    return tensor.At(indices);
  });
}

}  // namespace polynao::te
