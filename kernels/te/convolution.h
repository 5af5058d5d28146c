// Convolutions of an image (H, W, CI) with filters (CO, KH, KW, CI).
#ifndef KERNELS_TE_CONVOLUTION_H_
#define KERNELS_TE_CONVOLUTION_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

std::vector<Operator> ConvolutionOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TE_CONVOLUTION_H_
