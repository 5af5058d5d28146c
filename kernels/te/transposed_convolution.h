// The transpose of a convolution with a stride: what makes images larger.
#ifndef KERNELS_TE_TRANSPOSED_CONVOLUTION_H_
#define KERNELS_TE_TRANSPOSED_CONVOLUTION_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

// conv2d_transpose.
std::vector<Operator> TransposedConvolutionOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TE_TRANSPOSED_CONVOLUTION_H_
