// Uniform values: inputs of programs that run for their time, or that repeat sums and products many times.
#ifndef COMPILER_IR_UNIFORM_TENSOR_H_
#define COMPILER_IR_UNIFORM_TENSOR_H_

#include <cstdint>

#include "compiler/ir/tensor.h"

namespace polynao::ir {

// Gives all elements the values of UniformFloat or UniformInt (random_value.h).
void FillUniform(Tensor& tensor, uint64_t seed);

}  // namespace polynao::ir

#endif  // COMPILER_IR_UNIFORM_TENSOR_H_
