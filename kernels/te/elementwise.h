// Elementwise operators of two tensors, of a tensor and a number, and of one tensor.
#ifndef KERNELS_TE_ELEMENTWISE_H_
#define KERNELS_TE_ELEMENTWISE_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

std::vector<Operator> ElementwiseOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TE_ELEMENTWISE_H_
