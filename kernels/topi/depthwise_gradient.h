// depthwise_conv2d_back_input, depthwise_conv2d_back_weight.
#ifndef KERNELS_TOPI_DEPTHWISE_GRADIENT_H_
#define KERNELS_TOPI_DEPTHWISE_GRADIENT_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

std::vector<Operator> TopiDepthwiseGradientOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TOPI_DEPTHWISE_GRADIENT_H_
