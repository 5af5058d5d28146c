// Random tensors: the inputs of tests and of `nao run`.
#ifndef COMPILER_IR_RANDOM_TENSOR_H_
#define COMPILER_IR_RANDOM_TENSOR_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/tensor.h"
#include "compiler/ir/type.h"

namespace polynao::ir {

// Small random values (integers of a few bits, floats that are exact in f16), so that sums and
// products of a few of them are exact in every type. Same seed, same values.
Tensor RandomTensor(Type type, std::vector<int64_t> shape, uint64_t seed);

}  // namespace polynao::ir

#endif  // COMPILER_IR_RANDOM_TENSOR_H_
