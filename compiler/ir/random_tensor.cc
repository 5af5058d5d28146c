#include "compiler/ir/random_tensor.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/ir/random_value.h"

namespace polynao::ir {

Tensor RandomTensor(Type type, std::vector<int64_t> shape, uint64_t seed) {
  Tensor tensor(type, std::move(shape));
  const int64_t count = tensor.element_count();
  for (int64_t i = 0; i < count; ++i) {
    if (IsFloat(type)) {
      tensor.SetValue(i, RandomFloat(seed, static_cast<uint64_t>(i)));
    } else {
      tensor.SetInt(i, RandomInt(type, seed, static_cast<uint64_t>(i)));
    }
  }
  return tensor;
}

}  // namespace polynao::ir
