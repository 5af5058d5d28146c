// Random tensors: the inputs of tests, of `nao run`, of `nao sim` and of `nao opt --check`.
#ifndef COMPILER_IR_RANDOM_TENSOR_H_
#define COMPILER_IR_RANDOM_TENSOR_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/random_value.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/type.h"

namespace polynao::ir {

// Random elements (random_value.h): the same seed gives the same values.
Tensor RandomTensor(Type type, std::vector<int64_t> shape, uint64_t seed,
                    Values values = Values::kAll);

}  // namespace polynao::ir

#endif  // COMPILER_IR_RANDOM_TENSOR_H_
