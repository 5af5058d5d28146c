// Depthwise convolutions on the card's vector unit, and what they share with convolutions of other groups.
#ifndef KERNELS_TE_DEPTHWISE_H_
#define KERNELS_TE_DEPTHWISE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/te/graph.h"
#include "isa/granularity.h"
#include "isa/machine.h"
#include "kernels/reference/convolution.h"
#include "kernels/te/epilogue.h"
#include "kernels/te/operator.h"
#include "kernels/te/schedule_util.h"

namespace polynao::kernels {

// A convolution of groups with what follows it.
struct GroupedConv : ConvLayer, Epilogue {
  using Epilogue::bias;
  using Epilogue::relu;
  using Epilogue::scale;

  GroupedConv(const ConvLayer& layer, const Epilogue& e) : ConvLayer(layer), Epilogue(e) {}

  int64_t group_co() const { return co / groups; }
  int64_t InputRows(int64_t rows) const { return (rows - 1) * stride + (kh - 1) * dilation + 1; }
  int64_t InputColumns(int64_t n) const { return (n - 1) * stride + (kw - 1) * dilation + 1; }
  bool is_depthwise() const { return groups == ci && groups == co; }
  // Whether the products of whole rows of pixels are contiguous and start at an aligned address.
  bool has_whole_rows() const { return ci % isa::kVectorGroup == 0; }
  bool runs_through() const { return has_whole_rows() && stride == 1; }
};

// The image with zeros around it.
te::Tensor Padded(te::Graph& g, const GroupedConv& k, const te::Tensor& x);

// Bytes, moved segments and cycles that every kind of tile of rows x columns x channels has.
TileNeeds ImageNeeds(const GroupedConv& k, int64_t rows, int64_t columns, int64_t channels);

// The tilings of a depthwise convolution, the cheapest first. Errors: those of GridTilings.
absl::StatusOr<std::vector<GridTiling>> DepthwiseTilings(const GroupedConv& k,
                                                         const OperatorCase& c,
                                                         const isa::Machine& m);

// The function of a tiling. Clusters share rows, cores share rows and channels. For each position (r, s) in the window,
// the elements of all windows at this position are multiplied by the filters' element and added to the sums. The host
// lays filters out position by position: they are constants.
absl::StatusOr<ir::Function> Depthwise(const GroupedConv& k, const GridTiling& tiling);

}  // namespace polynao::kernels

#endif  // KERNELS_TE_DEPTHWISE_H_
