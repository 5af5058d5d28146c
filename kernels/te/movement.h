// Operators that move elements to other places, as expressions.
#ifndef KERNELS_TE_MOVEMENT_H_
#define KERNELS_TE_MOVEMENT_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

// transpose, slice, flip, concat, resize_nearest, resize_bilinear, rotary.
std::vector<Operator> MovementOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TE_MOVEMENT_H_
