#include "kernels/te/unscheduled.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "compiler/poly/card/nest_program.h"
#include "compiler/target/target.h"
#include "compiler/te/card/card_program.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "kernels/reference/elementwise.h"
#include "kernels/reference/layout.h"
#include "kernels/te/processor.h"
#include "kernels/te/schedule_util.h"
#include "kernels/te/tuned.h"

namespace polynao::kernels {
namespace {

using ir::Expr;
using ir::Type;
using te::Axes;
using te::Graph;
using te::Shape;
using te::Tensor;

// ---- schedules

// Without the card: for processors by the polyhedral scheduler; elsewhere what is elementwise before the first
// reduction is inlined, and threads share the rows of the rest.
absl::StatusOr<ir::Function> WithoutCard(const Tensor& y, const Target& target) {
  if (IsProcessor(target.name)) return LowerForProcessor(y, target);
  te::Schedule s(y);
  std::vector<Tensor> stored;
  for (const te::Operation& operation : y.graph()->operations) {
    if (operation.kind != te::Operation::Kind::kCompute) continue;
    const Tensor tensor(y.graph(), &operation);
    if (tensor == y) continue;
    if (stored.empty() && !operation.bodies[0].reducer) {
      s[tensor].ComputeInline();
    } else {
      stored.push_back(tensor);
    }
  }
  if (stored.empty()) {
    if (IsGpu(target.name)) {
      auto [block, thread] = s[y].Split(s[y].Fuse(s[y].leaves()), 256);
      s[y].Bind(block, "blockIdx.x").Bind(thread, "threadIdx.x");
    }
    return Lower(s);
  }
  if (IsInterpreter(target.name)) return Lower(s);
  stored.push_back(y);
  for (const Tensor& tensor : stored) {
    if (tensor.rank() > 0) s[tensor].Parallel(s[tensor].axis(0));
  }
  return Lower(s);
}

absl::StatusOr<te::CardProgram> GroupOf(const Expressions& express, const std::string& function,
                                        const OperatorCase& c, const Target& target) {
  Graph g(function);
  absl::StatusOr<te::CardProgram> group = te::CardProgram::Create(express(g, c), target);
  if (group.ok()) return group;
  return WithContext(StrCat("operator ", c.op), group.status());
}

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// The schedules that agree with the case, or the first of them, if it takes no more cycles than `limit`.
absl::StatusOr<std::vector<te::CardSchedule>> SchedulesOf(const te::CardProgram& group,
                                                          const OperatorCase& c, bool only_first,
                                                          double limit = kNoLimit) {
  std::vector<te::CardSchedule> schedules = group.Schedules(c.schedule, only_first, limit);
  if (!schedules.empty() || limit != kNoLimit) return schedules;
  if (c.schedule.empty()) return InvalidInput("operator ", c.op, ": no schedule fits");
  return NoSchedule(c, group.WhyNone(c.schedule));
}

}  // namespace

void ScheduleByLoops(Operator& row, const Expressions& express, const std::string& function) {
  row.loops_on_card = [](const OperatorCase&, const Target&) { return true; };
  row.build = [express, function](const OperatorCase& c,
                                  const Target& target) -> absl::StatusOr<ir::Function> {
    if (target.machine != nullptr) {
      return InvalidInput("operator ", c.op, ": it has no schedule for target ", target.name);
    }
    Graph g(function);
    const Tensor y = express(g, c);
    // A nest for each tensor: the card's scheduler puts them together.
    return IsInterpreter(target.name) ? Lower(te::Schedule(y)) : WithoutCard(y, target);
  };
}

void OrByLoops(Operator& row, const Expressions& express, const std::string& function,
               bool if_cheaper) {
  Operator loops;
  ScheduleByLoops(loops, express, function);
  row.loops_on_card = [first = row.first_schedules, express, function, if_cheaper](
                          const OperatorCase& c, const Target& target) {
    const auto schedules = first(c, target, kNoLimit);
    if (!schedules.ok() || schedules->empty()) return true;
    if (!if_cheaper) return false;
    Graph g(function);
    const absl::StatusOr<ir::Function> nest = Lower(te::Schedule(express(g, c)));
    if (!nest.ok()) return false;
    // Its cycles alone: nothing is refused.
    const auto program =
        poly::ScheduleForCard(*nest, target, [](const ir::Function&) { return 0; });
    return program.ok() && program->cycles < (*schedules)[0].cycles;
  };
  row.build = [on_card = row.build, loops = loops.build](const OperatorCase& c,
                                                         const Target& target) {
    return target.machine != nullptr ? on_card(c, target) : loops(c, target);
  };
}

void ScheduleByExpressions(Operator& row, const Expressions& express, const std::string& function) {
  row.express = express;
  row.build = [express, function](const OperatorCase& c,
                                  const Target& target) -> absl::StatusOr<ir::Function> {
    if (target.machine == nullptr) {
      Graph g(function);
      return WithoutCard(express(g, c), target);
    }
    ASSIGN_OR_RETURN(const te::CardProgram group, GroupOf(express, function, c, target));
    ASSIGN_OR_RETURN(const std::vector<te::CardSchedule> first, SchedulesOf(group, c, true));
    return group.Build(first[0].choice);
  };
  const auto ranked = [express, function](
                          const OperatorCase& c, const Target& target, bool only_first,
                          double limit) -> absl::StatusOr<std::vector<RankedSchedule>> {
    ASSIGN_OR_RETURN(const te::CardProgram group, GroupOf(express, function, c, target));
    ASSIGN_OR_RETURN(const std::vector<te::CardSchedule> list,
                     SchedulesOf(group, c, only_first, limit));
    return Ranked(list);
  };
  row.schedules = [ranked](const OperatorCase& c, const Target& target) {
    return ranked(c, target, false, kNoLimit);
  };
  row.estimate = [express, function](const OperatorCase& c,
                                     const Target& target) -> absl::StatusOr<mapping::Estimate> {
    ASSIGN_OR_RETURN(const te::CardProgram group, GroupOf(express, function, c, target));
    return group.EstimateOf(te::CardChoice(c.schedule.begin(), c.schedule.end()));
  };
  row.first_schedules = [ranked](const OperatorCase& c, const Target& target, double limit) {
    return ranked(c, target, true, limit);
  };
}

namespace {

// ---- elementwise operators

Expr Number(Expr like, double value) {
  return ir::IsFloat(like.type()) ? like.context().Float(like.type(), value)
                                  : like.context().Int(like.type(), static_cast<int64_t>(value));
}

// A tensor element by element: f(axes).
template <typename F>
Tensor Elementwise(Graph& g, const char* name, const Shape& shape, const F& f) {
  return g.Compute(name, shape, [&](const Axes& at) { return Expr(f(at)); });
}

// The element of `t` that belongs to the result's element `at`, by the rules of numpy.
Expr Broadcast(Graph& g, const Tensor& t, const Axes& at) {
  Axes own;
  const size_t missing = at.size() - t.rank();
  for (size_t d = 0; d < t.rank(); ++d) {
    own.push_back(t.shape()[d] == 1 ? g.context().Int(g.index_type(), 0) : at[missing + d]);
  }
  return t(own);
}

std::optional<Shape> BroadcastShape(const Shape& a, const Shape& b) {
  Shape shape(std::max(a.size(), b.size()));
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t x = d < a.size() ? a[a.size() - 1 - d] : 1;
    const int64_t y = d < b.size() ? b[b.size() - 1 - d] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    shape[shape.size() - 1 - d] = x == 1 ? y : x;
  }
  return shape;
}

// The reference's steps; each rounds to the type.
ir::Tensor Apply(BinaryOp op, const ir::Tensor& a, const ir::Tensor& b) {
  ir::Tensor c = a;
  ReferenceBinary(op, a, b.shape == a.shape ? b : ReferenceBroadcast(b, a.shape), c);
  return c;
}
ir::Tensor Apply(BinaryOp op, const ir::Tensor& a, double b) {
  ir::Tensor c = a;
  ReferenceScalar(op, a, b, c);
  return c;
}
ir::Tensor Apply(UnaryOp op, const ir::Tensor& a) {
  ir::Tensor c = a;
  ReferenceUnary(op, a, 0, c);
  return c;
}

isa::Work ElementwiseWork(const std::vector<TensorSpec>& tensors, int64_t operations) {
  isa::Work work;
  for (const TensorSpec& spec : tensors) {
    work.gmem_bytes += te::ElementCount(spec.shape) * ir::ByteSize(spec.type);
  }
  work.vector_elements = operations * te::ElementCount(tensors.back().shape);
  work.vector_type = tensors.back().type;
  return work;
}

// `operations`: of the vector unit for each element of the output.
Operator MakeOperator(const char* name, const char* doc, const Expressions& express,
                      std::function<int64_t(const OperatorCase&)> operations) {
  Operator row;
  row.name = name;
  row.doc = doc;
  row.tensors = [](const OperatorCase& c) {
    return std::vector<TensorSpec>{{"X", c.dtype, c.shape}, {"Y", c.dtype, c.shape}};
  };
  // A name that no function of C's library has.
  ScheduleByExpressions(row, express, StrCat(name, "_graph"));
  row.work = [tensors = row.tensors, operations = std::move(operations)](const OperatorCase& c) {
    return ElementwiseWork(tensors(c), operations(c));
  };
  return row;
}

Operator AddRelu() {
  const auto shape_of = [](const OperatorCase& c) {
    return *BroadcastShape(c.shape, c.operands.empty() ? c.shape : c.operands[0]);
  };
  Operator row = MakeOperator(
      "add_relu", "C = the larger of A + B and 0",
      [shape_of](Graph& g, const OperatorCase& c) {
        const Tensor a = g.Placeholder("A", c.shape, c.dtype);
        const Tensor b = g.Placeholder("B", c.operands.empty() ? c.shape : c.operands[0], c.dtype);
        const Tensor sum = Elementwise(g, "S", shape_of(c), [&](const Axes& at) {
          return Broadcast(g, a, at) + Broadcast(g, b, at);
        });
        return Elementwise(g, "C", sum.shape(),
                           [&](const Axes& at) { return ir::Max(sum(at), Number(sum(at), 0)); });
      },
      [](const OperatorCase&) { return 2; });
  row.optional_shapes = {"B, if other than A's: repeated as numpy does"};
  row.check = [](const OperatorCase& c) {
    if (c.operands.empty() || BroadcastShape(c.shape, c.operands[0])) return absl::OkStatus();
    return WrongCase(c, "expected shapes that agree from the last dimension on, or are 1 there");
  };
  row.tensors = [shape_of](const OperatorCase& c) {
    return std::vector<TensorSpec>{{"A", c.dtype, c.shape},
                                   {"B", c.dtype, c.operands.empty() ? c.shape : c.operands[0]},
                                   {"C", c.dtype, shape_of(c)}};
  };
  row.work = [tensors = row.tensors](const OperatorCase& c) {
    return ElementwiseWork(tensors(c), 2);
  };
  row.reference = [](const OperatorCase&, absl::Span<const ir::Tensor> in,
                     absl::Span<ir::Tensor> out) {
    const ir::Tensor a = ReferenceBroadcast(in[0], out[0].shape);
    out[0] = Apply(BinaryOp::kMax, Apply(BinaryOp::kAdd, a, in[1]), 0.0);
  };
  return row;
}

Operator AddN() {
  const auto base = std::make_shared<Operator>();
  base->attributes = {{"count", "3", "how many tensors are added, from 2 to 16"}};
  const auto count_of = [base](const OperatorCase& c) { return *AttributeInt(*base, c, "count"); };
  Operator row = MakeOperator(
      "add_n", "Y = X0 + X1 + ..., in this order",
      [count_of](Graph& g, const OperatorCase& c) {
        std::vector<Tensor> x;
        for (int64_t i = 0; i < count_of(c); ++i) {
          x.push_back(g.Placeholder(StrCat("X", i), c.shape, c.dtype));
        }
        return Elementwise(g, "Y", c.shape, [&](const Axes& at) {
          Expr sum = x[0](at);
          for (size_t i = 1; i < x.size(); ++i) sum = sum + x[i](at);
          return sum;
        });
      },
      [count_of](const OperatorCase& c) { return count_of(c) - 1; });
  row.attributes = base->attributes;
  row.check = [row](const OperatorCase& c) { return CheckNumber(row, c, "count", 2, 16); };
  row.tensors = [count_of](const OperatorCase& c) {
    std::vector<TensorSpec> specs;
    for (int64_t i = 0; i < count_of(c); ++i) specs.push_back({StrCat("X", i), c.dtype, c.shape});
    specs.push_back({"Y", c.dtype, c.shape});
    return specs;
  };
  row.work = [tensors = row.tensors, count_of](const OperatorCase& c) {
    return ElementwiseWork(tensors(c), count_of(c) - 1);
  };
  row.reference = [](const OperatorCase&, absl::Span<const ir::Tensor> in,
                     absl::Span<ir::Tensor> out) {
    out[0] = in[0];
    for (size_t i = 1; i < in.size(); ++i) out[0] = Apply(BinaryOp::kAdd, out[0], in[i]);
  };
  return row;
}

// Batch normalisation with scale and shift folded, then the addition of another branch and relu, as networks have
// them in inference.
Operator BatchNorm() {
  const auto base = std::make_shared<Operator>();
  base->attributes = {{"residual", "0", "1: a fourth input R of X's shape is added"},
                      {"relu", "0", "1: values below 0 become 0"}};
  const auto is_set = [base](const OperatorCase& c, const char* name) {
    return *AttributeInt(*base, c, name) != 0;
  };
  const auto operations = [is_set](const OperatorCase& c) -> int64_t {
    return 2 + is_set(c, "residual") + is_set(c, "relu");
  };
  Operator row = MakeOperator(
      "batch_norm", "Y = X * SCALE + SHIFT, both for each channel; + R; the larger of that and 0",
      [is_set](Graph& g, const OperatorCase& c) {
        const Tensor x = g.Placeholder("X", c.shape, c.dtype);
        const Tensor scale = g.Placeholder("SCALE", {c.shape.back()}, c.dtype);
        const Tensor shift = g.Placeholder("SHIFT", {c.shape.back()}, c.dtype);
        const Tensor r = is_set(c, "residual") ? g.Placeholder("R", c.shape, c.dtype) : Tensor();
        return Elementwise(g, "Y", c.shape, [&](const Axes& at) {
          Expr value = x(at) * scale({at.back()}) + shift({at.back()});
          if (r) value = value + r(at);
          return is_set(c, "relu") ? ir::Max(value, Number(value, 0)) : value;
        });
      },
      operations);
  row.shapes = {"X (.., C)"};
  row.attributes = base->attributes;
  row.floats_only = true;
  row.check = [row](const OperatorCase& c) {
    for (const OperatorAttribute& a : row.attributes) {
      RETURN_IF_ERROR(CheckNumber(row, c, a.name, 0, 1));
    }
    return c.shape.empty() ? WrongCase(c, "expected a dimension of channels") : absl::OkStatus();
  };
  row.tensors = [is_set](const OperatorCase& c) {
    std::vector<TensorSpec> specs = {{"X", c.dtype, c.shape},
                                     {"SCALE", c.dtype, {c.shape.back()}},
                                     {"SHIFT", c.dtype, {c.shape.back()}}};
    if (is_set(c, "residual")) specs.push_back({"R", c.dtype, c.shape});
    specs.push_back({"Y", c.dtype, c.shape});
    return specs;
  };
  row.work = [tensors = row.tensors, operations](const OperatorCase& c) {
    return ElementwiseWork(tensors(c), operations(c));
  };
  row.reference = [is_set](const OperatorCase& c, absl::Span<const ir::Tensor> in,
                           absl::Span<ir::Tensor> out) {
    ir::Tensor y = Apply(BinaryOp::kAdd, Apply(BinaryOp::kMul, in[0], in[1]), in[2]);
    if (is_set(c, "residual")) y = Apply(BinaryOp::kAdd, y, in[3]);
    out[0] = is_set(c, "relu") ? Apply(BinaryOp::kMax, y, 0.0) : y;
  };
  return row;
}

// A function of one tensor: its element's value, and the same on whole tensors.
Operator Activation(const char* name, const char* doc, int64_t operations, Expr (*value)(Expr x),
                    ir::Tensor (*reference)(const ir::Tensor& x)) {
  Operator row = MakeOperator(
      name, doc,
      [value](Graph& g, const OperatorCase& c) {
        const Tensor x = g.Placeholder("X", c.shape, c.dtype);
        return Elementwise(g, "Y", c.shape, [&](const Axes& at) { return value(x(at)); });
      },
      [operations](const OperatorCase&) { return operations; });
  row.floats_only = true;
  row.reference = [reference](const OperatorCase&, absl::Span<const ir::Tensor> in,
                              absl::Span<ir::Tensor> out) { out[0] = reference(in[0]); };
  return row;
}

Expr Call(const char* function, Expr x) { return x.context().Call(x.type(), function, {x}); }

Operator Silu() {
  return Activation(
      "silu", "Y = X * sigmoid(X); of floats", 2, [](Expr x) { return x * Call("sigmoid", x); },
      [](const ir::Tensor& x) { return Apply(BinaryOp::kMul, x, Apply(UnaryOp::kSigmoid, x)); });
}

// "Gaussian error linear units" (Hendrycks, Gimpel), the approximation by tanh; (1 + tanh(z)) / 2 is sigmoid(2 * z).
constexpr double kGeluCubic = 0.044715;
constexpr double kGeluScale = 1.5957691216057308;  // twice the square root of 2 / pi

Operator Gelu() {
  return Activation(
      "gelu", "Y = X * sigmoid(1.596 * (X + 0.0447 * X * X * X)); of floats", 7,
      [](Expr x) {
        const Expr cubic = x + x * x * x * Number(x, kGeluCubic);
        return x * Call("sigmoid", cubic * Number(x, kGeluScale));
      },
      [](const ir::Tensor& x) {
        const ir::Tensor cube = Apply(BinaryOp::kMul, Apply(BinaryOp::kMul, x, x), x);
        const ir::Tensor cubic = Apply(BinaryOp::kAdd, x, Apply(BinaryOp::kMul, cube, kGeluCubic));
        return Apply(BinaryOp::kMul, x,
                     Apply(UnaryOp::kSigmoid, Apply(BinaryOp::kMul, cubic, kGeluScale)));
      });
}

Operator HardSwish() {
  return Activation(
      "hard_swish", "Y = X * (X + 3 limited to 0 .. 6) / 6; of floats", 5,
      [](Expr x) { return x * ir::Min(ir::Max(x + 3, Number(x, 0)), Number(x, 6)) * (1.0 / 6); },
      [](const ir::Tensor& x) {
        const ir::Tensor above = Apply(BinaryOp::kMax, Apply(BinaryOp::kAdd, x, 3.0), 0.0);
        return Apply(BinaryOp::kMul, Apply(BinaryOp::kMul, x, Apply(BinaryOp::kMin, above, 6.0)),
                     1.0 / 6);
      });
}

}  // namespace

std::vector<Operator> UnscheduledOperators() {
  // Steps between neighbouring values by which the processor's functions may be off.
  Operator silu = Silu(), gelu = Gelu();
  silu.tolerance_steps = gelu.tolerance_steps = 4;
  return {AddRelu(), AddN(), BatchNorm(), std::move(silu), std::move(gelu), HardSwish()};
}

}  // namespace polynao::kernels
