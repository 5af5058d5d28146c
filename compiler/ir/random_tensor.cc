#include "compiler/ir/random_tensor.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace polynao::ir {

Tensor RandomTensor(Type type, std::vector<int64_t> shape, uint64_t seed, Values values) {
  Tensor tensor(type, std::move(shape));
  const int64_t count = tensor.element_count();
  for (int64_t i = 0; i < count; ++i) {
    const auto place = static_cast<uint64_t>(i);
    if (IsFloat(type)) {
      tensor.SetValue(i, RandomFloat(type, seed, place, values));
    } else {
      tensor.SetInt(i, RandomInt(type, seed, place, values));
    }
  }
  return tensor;
}

}  // namespace polynao::ir
