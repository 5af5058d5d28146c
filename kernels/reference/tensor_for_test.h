// Small tensors, written down and read as lists.
#ifndef KERNELS_REFERENCE_TENSOR_FOR_TEST_H_
#define KERNELS_REFERENCE_TENSOR_FOR_TEST_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/ir/tensor.h"
#include "compiler/ir/type.h"
#include "gtest/gtest.h"

namespace polynao::kernels {

// A tensor of these values, of which there must be as many as it has elements.
inline ir::Tensor Of(ir::Type type, std::vector<int64_t> shape, const std::vector<double>& values) {
  ir::Tensor tensor(type, std::move(shape));
  EXPECT_EQ(tensor.element_count(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) tensor.SetValue(static_cast<int64_t>(i), values[i]);
  return tensor;
}
inline ir::Tensor Of(std::vector<int64_t> shape, const std::vector<double>& values) {
  return Of(ir::Type::kF32, std::move(shape), values);
}

inline std::vector<double> Values(const ir::Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.element_count(); ++i) values.push_back(tensor.Value(i));
  return values;
}

}  // namespace polynao::kernels

#endif  // KERNELS_REFERENCE_TENSOR_FOR_TEST_H_
