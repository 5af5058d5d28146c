// batch_to_space_nd.
#ifndef KERNELS_TOPI_BATCH_TO_SPACE_H_
#define KERNELS_TOPI_BATCH_TO_SPACE_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

std::vector<Operator> TopiBatchToSpaceOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TOPI_BATCH_TO_SPACE_H_
