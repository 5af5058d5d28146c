#include "kernels/te/depthwise.h"

#include "base/status.h"
#include "compiler/ir/parts_layout.h"
#include "compiler/target/target.h"
#include "kernels/te/schedule_util.h"

namespace polynao::kernels {

using ir::Expr;
using te::Tensor;

Tensor Padded(te::Graph& g, const GroupedConv& k, const Tensor& x) {
  return g.Compute("P", {k.h + 2 * k.pad_h, k.w + 2 * k.pad_w, k.ci},
                   [&](Expr y, Expr column, Expr c) {
                     const Expr value = x(y - k.pad_h, column - k.pad_w, c);
                     if (k.pad_h == 0 && k.pad_w == 0) return value;
                     return te::Select(ir::And(ir::And(k.pad_h <= y, y < k.pad_h + k.h),
                                               ir::And(k.pad_w <= column, column < k.pad_w + k.w)),
                                       value, 0.0);
                   },
                   {"y", "x", "c"});
}

namespace {

// The filters are read place by place of the window: they are constants, which the host lays out so.
te::Tensor Express(te::Graph& g, const GroupedConv& k) {
  const Tensor x = g.Placeholder("X", {k.h, k.w, k.ci}, k.in);
  const Tensor f = g.Reshape(g.Placeholder("F", {k.co, k.kh, k.kw, 1}, k.in), {k.kh, k.kw, k.co});
  const Tensor b = k.bias ? g.Placeholder("B", {k.co}, k.sum) : Tensor();
  const Tensor image = k.pad_h == 0 && k.pad_w == 0 ? x : Padded(g, k, x);
  const te::ReduceAxis r = g.ReduceAxisOf("r", k.kh), s = g.ReduceAxisOf("s", k.kw);
  const Tensor sums = g.Compute("S", {k.ho(), k.wo(), k.co}, [&](Expr y, Expr column, Expr c) {
    const Expr value = image(y * k.stride + r * k.dilation, column * k.stride + s * k.dilation, c);
    return te::ReduceSum(To(k.sum, value) * To(k.sum, f(r, s, c)), r, s);
  });
  const EpilogueSteps steps = Append(g, k, sums, b);
  return steps.tensors.empty() ? sums : steps.tensors.back();
}

}  // namespace

absl::StatusOr<te::CardProgram> Depthwise(const GroupedConv& k, const Target& target) {
  te::Graph g("conv2d");
  return te::CardProgram::Create(Express(g, k), target, /*by_vector=*/true);
}

absl::StatusOr<ir::Function> BuildDepthwise(const GroupedConv& k, const te::CardProgram& program,
                                            const te::CardChoice& choice) {
  ASSIGN_OR_RETURN(ir::Function function, program.Build(choice));
  ir::AddPartsLayout(function, {.parameter = "F", .rows = k.co, .parts = k.kh * k.kw});
  return function;
}

}  // namespace polynao::kernels
