// Rows of a table by their numbers, as an expression.
#ifndef KERNELS_TE_GATHER_H_
#define KERNELS_TE_GATHER_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

// gather.
std::vector<Operator> GatherOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TE_GATHER_H_
