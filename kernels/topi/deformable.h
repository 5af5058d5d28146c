// deformable_conv2d.
#ifndef KERNELS_TOPI_DEFORMABLE_H_
#define KERNELS_TOPI_DEFORMABLE_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

std::vector<Operator> TopiDeformableOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TOPI_DEFORMABLE_H_
