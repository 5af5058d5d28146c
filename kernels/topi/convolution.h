// conv1d, conv2d, conv3d and their transposed, grouped and depthwise forms in the layouts of TOPI's
// tests.
#ifndef KERNELS_TOPI_CONVOLUTION_H_
#define KERNELS_TOPI_CONVOLUTION_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

// conv1d, conv2d_nchw, conv2d_nhwc, conv2d_hwcn, conv3d_ncdhw, conv3d_ndhwc, group_conv2d, conv2d_int8,
// group_conv2d_int8, depthwise_conv2d, conv1d_transpose_ncw, conv2d_transpose_nchw, conv3d_transpose_ncdhw.
std::vector<Operator> TopiConvolutionOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TOPI_CONVOLUTION_H_
