// Tensor expressions: what an operator computes, element by element, without saying how.
//
//   Graph g("matmul");
//   Tensor a = g.Placeholder("A", {m, k}, Type::kF32);
//   Tensor b = g.Placeholder("B", {k, n}, Type::kF32);
//   ReduceAxis kk = g.ReduceAxisOf("k", k);
//   Tensor c = g.Compute("C", {m, n}, [&](Expr x, Expr y) {
//     return ReduceSum(a(x, kk) * b(kk, y), kk);
//   }, {"x", "y"});
//
// Expressions are ir::Expr, with their meaning (ir.h): select evaluates one side, so
// Select(inside, a(i - 1), 0) pads. An index that is evaluated must lie inside its tensor.
// Mistakes (a wrong number of indices, a negative extent, ...) are recorded in the graph; the first
// one is returned by Lower().
#ifndef COMPILER_TE_GRAPH_H_
#define COMPILER_TE_GRAPH_H_

#include <concepts>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/ir/ir.h"

namespace polynao::te {

using ir::Expr;
using ir::Type;

// Extents, outermost first; empty for a scalar. Tensors are dense and row-major.
using Shape = std::vector<int64_t>;
// The variables of a compute, one per dimension.
using Axes = std::vector<Expr>;

// The product of all extents, 1 for a scalar; saturates at 2^62.
int64_t ElementCount(const Shape& shape);

// A variable that a reduction runs from min to min + extent - 1. May serve several computes.
struct ReduceAxis : Expr {
  int64_t min = 0;
  int64_t extent = 0;
};

// kArgMin and kArgMax reduce two results together: an index (the first) goes with the smallest or
// largest value (the second); of equal values the one with the smallest index counts.
enum class Reducer : uint8_t { kSum, kProd, kMin, kMax, kArgMin, kArgMax };
inline bool IsArgReducer(Reducer reducer) {
  return reducer == Reducer::kArgMin || reducer == Reducer::kArgMax;
}

// The value that changes nothing: 0, 1, the largest and the smallest value of `type` (infinities
// for floats). Of kArgMin and kArgMax it is that of the value; an index starts as the largest one.
Expr Identity(Reducer reducer, ir::Context& context, Type type);
// `accumulated` with `value` taken in; no kArgMin or kArgMax.
Expr Combine(Reducer reducer, Expr accumulated, Expr value);
// Returns the condition that the pair of `index` and `value` replaces the accumulated one; kArgMin
// or kArgMax.
Expr TakesOver(Reducer reducer, Expr old_index, Expr old_value, Expr index, Expr value);

// Describes one element of a compute: an expression, or the reduction of an expression over axes,
// accumulated in the expression's type (cast it to choose another one).
struct Body {
  Body(Expr value) : value(value) {}  // NOLINT: an Expr is a Body
  Body(Reducer reducer, Expr value, std::vector<ReduceAxis> axes)
      : value(value), reducer(reducer), axes(std::move(axes)) {}
  Expr value;
  std::optional<Reducer> reducer;
  std::vector<ReduceAxis> axes;
};

// ReduceSum(e, k), ReduceSum(e, ry, rx) or ReduceSum(e, vector). The innermost axis comes last.
#define POLYNAO_REDUCER(name, kind)                                      \
  inline Body name(Expr value, std::vector<ReduceAxis> axes) {           \
    return Body(Reducer::kind, value, std::move(axes));                  \
  }                                                                      \
  template <std::same_as<ReduceAxis>... A>                               \
  Body name(Expr value, const A&... axes) {                              \
    return Body(Reducer::kind, value, std::vector<ReduceAxis>{axes...}); \
  }
POLYNAO_REDUCER(ReduceSum, kSum)
POLYNAO_REDUCER(ReduceProd, kProd)
POLYNAO_REDUCER(ReduceMin, kMin)
POLYNAO_REDUCER(ReduceMax, kMax)
#undef POLYNAO_REDUCER

// The bodies of a ComputeMany of two results, `index` and `value`, reduced by kArgMin or kArgMax.
inline std::vector<Body> ArgReduce(Reducer reducer, Expr index, Expr value,
                                   const std::vector<ReduceAxis>& axes) {
  return {Body(reducer, index, axes), Body(reducer, value, axes)};
}

// condition ? then_value : else_value, evaluating one side. A number takes the other side's type.
Expr Select(Expr condition, Expr then_value, Expr else_value);
Expr Select(Expr condition, Expr then_value, double else_value);

// One node of a graph: an input, another shape of an input, or a compute.
struct Operation {
  enum class Kind : uint8_t { kPlaceholder, kView, kCompute };
  Kind kind;
  std::string name;
  Shape shape;
  // How expressions name the results: a load of outputs[i] reads result i. The buffers of the
  // lowered function are others.
  std::vector<ir::Buffer> outputs;
  Axes axes;                            // computes
  std::vector<std::string> axis_names;  // one per dimension
  std::vector<Body> bodies;             // computes: one per output; all reduce over the same axes
  const Operation* base = nullptr;      // views: the placeholder
  bool is_constant = false;  // placeholders: known before the run, so that its layout is free
};

struct GraphState {
  std::string name;
  std::shared_ptr<ir::Context> context;
  Type index_type;
  // The extents of a tensor in which the output will stand as a box with gaps, so that its dimensions stay as they are;
  // empty: it has none.
  std::vector<int64_t> within = {};
  absl::Status status;  // the first mistake
  std::deque<Operation> operations;
  std::vector<Expr> scalars;
  // Which operation and output a buffer in an expression names.
  absl::flat_hash_map<ir::Buffer, std::pair<const Operation*, size_t>> producers;

  void Fail(const std::string& message);
  // A graph without operations beside this one: it has its name, context, scalars and mistakes.
  std::shared_ptr<GraphState> Empty() const;
  // Adds an operation; gives it buffers of `types`.
  Operation& Add(Operation operation, absl::Span<const Type> types);
};

// A handle on one result of an operation; keeps its graph alive. Cheap to copy.
class Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<GraphState> graph, const Operation* operation, size_t index = 0)
      : graph_(std::move(graph)), operation_(operation), index_(index) {}
  explicit operator bool() const { return operation_ != nullptr; }
  friend bool operator==(const Tensor& a, const Tensor& b) {
    return a.operation_ == b.operation_ && a.index_ == b.index_;
  }

  const std::string& name() const { return buffer()->name; }
  const Shape& shape() const { return operation_->shape; }
  size_t rank() const { return shape().size(); }
  Type type() const { return buffer()->type; }
  ir::Buffer buffer() const { return operation_->outputs[index_]; }
  const Operation* operation() const { return operation_; }
  const std::shared_ptr<GraphState>& graph() const { return graph_; }
  // Another result of the same operation.
  Tensor output(size_t i) const;

  // The element at `indices`, one per dimension; integers of any type.
  Expr At(absl::Span<const Expr> indices) const;
  Expr operator()(const Axes& indices) const { return At(indices); }
  template <typename... I>
    requires(std::convertible_to<const I&, Expr> || ...) || (std::integral<I> || ...) ||
            (sizeof...(I) == 0)
  Expr operator()(const I&... indices) const {
    return At(std::vector<Expr>{Index(indices)...});
  }

 private:
  Expr Index(Expr e) const { return e; }
  Expr Index(int64_t i) const { return graph_->context->Int(graph_->index_type, i); }

  std::shared_ptr<GraphState> graph_;
  const Operation* operation_ = nullptr;
  size_t index_ = 0;
};

// A graph of tensor operations; the function lowered from it has its name. Handles (Tensor,
// Schedule) keep what they need alive.
class Graph {
 public:
  // Indices are i32, from the first tensor of 2^31 or more elements on i64; a graph in which a
  // compute comes before such a tensor must ask for i64 here.
  explicit Graph(std::string_view name, Type index_type = Type::kI32);
  // For further operations of the graph that has this state.
  explicit Graph(std::shared_ptr<GraphState> state) : state_(std::move(state)) {}

  ir::Context& context() const { return *state_->context; }
  Type index_type() const { return state_->index_type; }
  const std::shared_ptr<GraphState>& state() const { return state_; }
  // The first mistake made, OK if none.
  const absl::Status& status() const { return state_->status; }

  // An input: a parameter of the function.
  Tensor Placeholder(std::string_view name, const Shape& shape, Type type);
  // An input that the host knows before the run, as weights are: the function may ask for it in another layout
  // (compiler/ir/parts_layout.h).
  Tensor ConstantPlaceholder(std::string_view name, const Shape& shape, Type type);
  // A scalar parameter, for use in expressions.
  Expr Scalar(std::string_view name, Type type);
  ReduceAxis ReduceAxisOf(std::string_view name, int64_t extent) {
    return ReduceAxisOf(name, 0, extent);
  }
  ReduceAxis ReduceAxisOf(std::string_view name, int64_t min, int64_t extent);

  // The tensor whose element at `axes` is f(axes). `f` takes one Expr per dimension (up to eight),
  // or all of them as Axes; it returns an Expr or a reduction. `axis_names` name the loops (default
  // i, j, k, l, m, n, i6, ...).
  template <typename F>
  Tensor Compute(std::string_view name, const Shape& shape, const F& f,
                 std::vector<std::string> axis_names = {}) {
    const Axes axes = NewAxes(name, shape, axis_names);
    return Define(name, shape, axes, std::move(axis_names), {Body(Invoke(name, f, axes))})[0];
  }
  // Several tensors of one shape computed together; `f` returns std::vector<Body>, one for each
  // ("name.0", "name.1", ...). Either none is a reduction, or all are, over the same axes.
  template <typename F>
  std::vector<Tensor> ComputeMany(std::string_view name, const Shape& shape, const F& f,
                                  std::vector<std::string> axis_names = {}) {
    const Axes axes = NewAxes(name, shape, axis_names);
    return Define(name, shape, axes, std::move(axis_names), Invoke(name, f, axes));
  }

  // The elements of `tensor` in row-major order under another shape of as many elements. Of a
  // placeholder it is another view of the same parameter: the function declares the parameter with
  // the shape that its body uses (flat if it uses several), which is the caller's dense memory all
  // the same. Of a computed tensor it is one more compute, to be inlined or scheduled.
  Tensor Reshape(const Tensor& tensor, const Shape& shape);
  // The same as one dimension: elementwise operators of any rank schedule one loop.
  Tensor Flatten(const Tensor& tensor) { return Reshape(tensor, {ElementCount(tensor.shape())}); }

 private:
  static constexpr size_t kMaxArity = 8;

  // Checks the shape, fills in missing names, and makes the variables.
  Axes NewAxes(std::string_view name, const Shape& shape, std::vector<std::string>& axis_names);
  std::vector<Tensor> Define(std::string_view name, const Shape& shape, const Axes& axes,
                             std::vector<std::string> axis_names, std::vector<Body> bodies);
  bool CheckShape(std::string_view name, const Shape& shape);

  template <typename F, size_t... I>
  static auto Call(const F& f, const Axes& axes, std::index_sequence<I...>) {
    return f(axes[I]...);
  }
  template <typename F, size_t... I>
  static constexpr bool Takes(std::index_sequence<I...>) {
    return std::is_invocable_v<F, std::enable_if_t<(I <= kMaxArity), Expr>...>;
  }
  template <typename F, size_t N = 0>
  static constexpr size_t Arity() {
    static_assert(N <= kMaxArity, "a compute takes Axes or up to eight Exprs");
    if constexpr (Takes<F>(std::make_index_sequence<N>())) {
      return N;
    } else {
      return Arity<F, N + 1>();
    }
  }
  template <typename F>
  auto Invoke(std::string_view name, const F& f, Axes axes) {
    if constexpr (std::is_invocable_v<F, const Axes&>) {
      return f(axes);
    } else {
      constexpr size_t kArity = Arity<F>();
      CheckArity(name, kArity, axes);
      return Call(f, axes, std::make_index_sequence<kArity>());
    }
  }
  // Records a mistake and fills `axes` up if the function takes another number of axes.
  void CheckArity(std::string_view name, size_t arity, Axes& axes);

  std::shared_ptr<GraphState> state_;
};

}  // namespace polynao::te

#endif  // COMPILER_TE_GRAPH_H_
