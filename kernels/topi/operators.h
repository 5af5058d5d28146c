// The operators of the TOPI table (cases.h) that kernels/te does not have.
#ifndef KERNELS_TOPI_OPERATORS_H_
#define KERNELS_TOPI_OPERATORS_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

std::vector<Operator> TopiOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TOPI_OPERATORS_H_
