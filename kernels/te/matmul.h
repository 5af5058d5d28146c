// Matrix products with weights: dense layers.
#ifndef KERNELS_TE_MATMUL_H_
#define KERNELS_TE_MATMUL_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

// matmul.
std::vector<Operator> MatmulOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TE_MATMUL_H_
