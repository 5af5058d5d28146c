// Products of batches, and attention; as expressions.
#ifndef KERNELS_TE_ATTENTION_H_
#define KERNELS_TE_ATTENTION_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

// batched_matmul, attention.
std::vector<Operator> AttentionOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TE_ATTENTION_H_
