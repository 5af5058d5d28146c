// dense, batch_matmul.
#ifndef KERNELS_TOPI_LINEAR_H_
#define KERNELS_TOPI_LINEAR_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

std::vector<Operator> TopiLinearOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TOPI_LINEAR_H_
