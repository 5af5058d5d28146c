// Depthwise convolutions on the card's vector unit, and what they share with convolutions of other groups.
#ifndef KERNELS_TE_DEPTHWISE_H_
#define KERNELS_TE_DEPTHWISE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"
#include "compiler/te/card/card_program.h"
#include "compiler/te/card/card_schedule.h"
#include "compiler/te/graph.h"
#include "kernels/reference/convolution.h"
#include "kernels/te/epilogue.h"

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
};

// The image with zeros around it.
te::Tensor Padded(te::Graph& g, const GroupedConv& k, const te::Tensor& x);

// A depthwise convolution by the vector unit.
absl::StatusOr<te::CardProgram> Depthwise(const GroupedConv& k, const Target& target);
// The function of one of its schedules.
absl::StatusOr<ir::Function> BuildDepthwise(const GroupedConv& k, const te::CardProgram& program,
                                            const te::CardChoice& choice);

}  // namespace polynao::kernels

#endif  // KERNELS_TE_DEPTHWISE_H_
