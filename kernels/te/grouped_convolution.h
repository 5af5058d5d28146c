// Convolutions in groups of channels, on the card.
#ifndef KERNELS_TE_GROUPED_CONVOLUTION_H_
#define KERNELS_TE_GROUPED_CONVOLUTION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "kernels/reference/convolution.h"
#include "kernels/te/epilogue.h"
#include "kernels/te/operators.h"

namespace polynao::kernels {

// The function for a card of a convolution of more than one group. Each channel by itself (depthwise)
// is work for the vector unit: for each place of the window one row of products, which are added up.
// Groups of several channels are convolutions by the tensor unit, one after the other, of a part of a
// tile's channels each.
absl::StatusOr<ir::Function> BuildGroupedConvolution(const ConvLayer& layer, const Epilogue& e,
                                                     const OperatorCase& c, const Target& target);

// What its schedule chooses from, the cheapest first.
absl::StatusOr<std::vector<RankedSchedule>> GroupedConvolutionSchedules(const ConvLayer& layer,
                                                                        const Epilogue& e,
                                                                        const OperatorCase& c,
                                                                        const Target& target);

}  // namespace polynao::kernels

#endif  // KERNELS_TE_GROUPED_CONVOLUTION_H_
