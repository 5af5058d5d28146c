// reduce: sums, largest and smallest elements, truths and indices along any axes.
#ifndef KERNELS_TOPI_REDUCTION_H_
#define KERNELS_TOPI_REDUCTION_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

std::vector<Operator> TopiReductionOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TOPI_REDUCTION_H_
