// Extents, layouts, padding and epilogues, shared by the convolutions of this folder.
#ifndef KERNELS_TOPI_SPATIAL_H_
#define KERNELS_TOPI_SPATIAL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/te/graph.h"
#include "kernels/reference/spatial.h"
#include "kernels/te/operator.h"

namespace polynao::kernels {

// Steps behind the sums, in this order. In the words of the attribute `epilogue`: none, bias, relu,
// bias_relu, scale_shift, scale_shift_relu.
struct Tail {
  bool bias = false;         // an input of one number per output channel is added
  bool scale_shift = false;  // two inputs: times the first, plus the second
  bool relu = false;
  std::string word = "none";
};

// The attribute, of those `words`.
OperatorAttribute TailAttribute(std::vector<std::string> words);
Tail ReadTail(const Operator& row, const OperatorCase& c);

// A convolution of one, two or three spatial axes.
struct Spatial {
  std::string name;  // of the function: operator and epilogue
  ir::Type in = ir::Type::kF32;
  ir::Type acc = ir::Type::kF32;
  ir::Type out = ir::Type::kF32;
  int64_t n = 1, ci = 1, co = 1, groups = 1;
  std::vector<SpatialAxis> axes;
  std::vector<int64_t> after;  // zeros behind each axis
  // Letters of the dimensions: N C D H W; of the filter I O D H W, or C M H W.
  std::string layout, kernel_layout;
  te::Shape data_shape, weight_shape, out_shape;
  Tail tail;

  size_t rank() const { return axes.size(); }
  int64_t group_ci() const { return ci / groups; }
  int64_t group_co() const { return co / groups; }
};

// How a row lays its tensors out.
struct SpatialForm {
  std::string layout = "NCHW";
  std::string kernel_layout = "OIHW";
  bool transposed = false;  // the filter has in-channels first, the output is the larger one
  std::vector<ir::Type> types = {ir::Type::kF32};
};

// stride_h, dilation_h, pad_top, pad_bottom, ... for the spatial axes of `form`.
std::vector<OperatorAttribute> SpatialAttributes(const SpatialForm& form,
                                                 bool with_dilation = true);
// The same as the case has them, and all extents; outputs of an element and more.
absl::StatusOr<Spatial> ReadSpatial(const Operator& row, const OperatorCase& c,
                                    const SpatialForm& form);
// Inputs (data, weight, what the tail takes), then the output.
std::vector<TensorSpec> SpatialTensors(const Spatial& k);
SpatialProblem ToProblem(const Spatial& k);
// Products of the direct convolution (of a transposed one: without those of zeros).
int64_t SpatialMacs(const Spatial& k, bool transposed = false);
// `sums`, N O D H W in row-major order, with the tail and in the output's layout. Integers wrap to the
// output's type before the tail.
void FinishReference(const Spatial& k, const std::vector<double>& sums,
                     absl::Span<const ir::Tensor> in, ir::Tensor& out);

// ---- expressions

// The indices of a tensor in `layout` put together from those of its letters: `spatial` are D H W.
te::Axes InLayout(std::string_view layout, ir::Expr n, ir::Expr c,
                  const std::vector<ir::Expr>& spatial);
// The index at the letter.
ir::Expr Letter(std::string_view layout, const te::Axes& indices, char letter);
// Those of D H W as far as `layout` has them.
std::vector<ir::Expr> SpatialLetters(std::string_view layout, const te::Axes& indices);
// "n", "c", "h", "w": names of loops.
std::vector<std::string> AxisNames(std::string_view layout);

// The inputs of a graph.
struct SpatialInputs {
  te::Tensor data, weight, bias, scale, shift;
};
SpatialInputs Placeholders(te::Graph& g, const Spatial& k);

// pad_temp: `data` with zeros around it; `data` itself if there are none.
te::Tensor Pad(te::Graph& g, const Spatial& k, const te::Tensor& data);
// One reduce axis per spatial axis of the filter: rd, rh, rw.
std::vector<te::ReduceAxis> KernelAxes(te::Graph& g, const Spatial& k);
// The tail applied to a value (of the output's type) of channel c.
ir::Expr ApplyTail(const Spatial& k, const SpatialInputs& t, ir::Expr value, ir::Expr c);

}  // namespace polynao::kernels

#endif  // KERNELS_TOPI_SPATIAL_H_
