// Reductions along neighbouring axes.
#ifndef KERNELS_TE_REDUCE_H_
#define KERNELS_TE_REDUCE_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

// reduce_sum, reduce_mean, reduce_max, reduce_min, global_avg_pool.
std::vector<Operator> ReduceOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TE_REDUCE_H_
