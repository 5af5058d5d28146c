// Convolutions in groups of channels, on the card.
#ifndef KERNELS_TE_GROUPED_CONVOLUTION_H_
#define KERNELS_TE_GROUPED_CONVOLUTION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/mapping/estimate.h"
#include "kernels/reference/convolution.h"
#include "kernels/te/epilogue.h"
#include "kernels/te/operator.h"

namespace polynao::kernels {

// The function that computes a convolution of more than one group on a card. The tensor unit computes groups one after
// the other, each on its part of the image's channels; of integers so many at once as fill its lanes, with filters that
// have zeros where a channel is of another group. Cores share rows, or the groups of a cluster's rows, whose image and
// results then go by way of SMEM. The vector unit computes depthwise convolutions, too: one row of products for each
// position in the window, added up. The cost model chooses.
absl::StatusOr<ir::Function> BuildGroupedConvolution(const ConvLayer& layer, const Epilogue& e,
                                                     const OperatorCase& c, const Target& target);

// The schedules to choose from, the cheapest first.
absl::StatusOr<std::vector<RankedSchedule>> GroupedConvolutionSchedules(const ConvLayer& layer,
                                                                        const Epilogue& e,
                                                                        const OperatorCase& c,
                                                                        const Target& target);

// Of a case that names all choices of one of them: what the cost model says of it.
absl::StatusOr<mapping::Estimate> GroupedConvolutionEstimate(const ConvLayer& layer,
                                                             const Epilogue& e,
                                                             const OperatorCase& c,
                                                             const Target& target);

}  // namespace polynao::kernels

#endif  // KERNELS_TE_GROUPED_CONVOLUTION_H_
