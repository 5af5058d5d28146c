// Pooling and padding: of an image (H, W, C), on rows of channels.
#ifndef KERNELS_TE_POOL_H_
#define KERNELS_TE_POOL_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

// max_pool2d, avg_pool2d, pad.
std::vector<Operator> PoolOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TE_POOL_H_
