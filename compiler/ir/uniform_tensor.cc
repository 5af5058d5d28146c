#include "compiler/ir/uniform_tensor.h"

#include "compiler/ir/random_value.h"

namespace polynao::ir {

void FillUniform(Tensor& tensor, uint64_t seed) {
  const int64_t count = tensor.element_count();
  for (int64_t i = 0; i < count; ++i) {
    if (IsFloat(tensor.type)) {
      tensor.SetValue(i, UniformFloat(seed, static_cast<uint64_t>(i)));
    } else {
      tensor.SetInt(i, UniformInt(tensor.type, seed, static_cast<uint64_t>(i)));
    }
  }
}

}  // namespace polynao::ir
