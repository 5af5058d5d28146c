#include "compiler/ir/random_tensor.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace polynao::ir {

Tensor RandomTensor(Type type, std::vector<int64_t> shape, uint64_t seed, Values values) {
  Tensor tensor(type, std::move(shape));
  const int64_t count = tensor.element_count();
  constexpr auto kPeriod = static_cast<int64_t>(kRandomPeriod);
  const int64_t drawn = std::min(count, 2 * kPeriod);
  for (int64_t i = 0; i < drawn; ++i) {
    const auto place = static_cast<uint64_t>(i);
    if (IsFloat(type)) {
      tensor.SetValue(i, RandomFloat(type, seed, place, values));
    } else {
      tensor.SetInt(i, RandomInt(type, seed, place, values));
    }
  }
  // The second period repeats.
  const int64_t size = ByteSize(type);
  for (int64_t i = drawn; i < count; i += kPeriod) {
    std::memcpy(&tensor.bytes[static_cast<size_t>(i * size)],
                &tensor.bytes[static_cast<size_t>(kPeriod * size)],
                static_cast<size_t>(std::min(kPeriod, count - i) * size));
  }
  return tensor;
}

}  // namespace polynao::ir
