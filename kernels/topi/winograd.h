// conv2d_winograd, conv2d_nhwc_winograd, conv3d_winograd: F(m, r) by Lavin and Gray, as TOPI does them.
#ifndef KERNELS_TOPI_WINOGRAD_H_
#define KERNELS_TOPI_WINOGRAD_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

std::vector<Operator> TopiWinogradOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TOPI_WINOGRAD_H_
