// Normalisations of rows, as expressions.
#ifndef KERNELS_TE_NORMALIZATION_H_
#define KERNELS_TE_NORMALIZATION_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

// softmax, layer_norm, rms_norm, group_norm, instance_norm.
std::vector<Operator> NormalizationOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TE_NORMALIZATION_H_
