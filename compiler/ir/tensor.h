// The contents of a buffer: what programs are run on.
#ifndef COMPILER_IR_TENSOR_H_
#define COMPILER_IR_TENSOR_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/type.h"

namespace polynao::ir {

// The contents of one buffer: dense, row-major, little-endian elements of `type`.
struct Tensor {
  Type type = Type::kF32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;

  Tensor() = default;
  // All zero.
  Tensor(Type type, std::vector<int64_t> shape);
  int64_t element_count() const;
  // Element i in row-major order, as the wide value of its type.
  double Float(int64_t i) const;
  int64_t Int(int64_t i) const;
  // The same for either kind of type.
  double Value(int64_t i) const;
  // An integer type gets `value` truncated towards zero and wrapped around, 0 for NaN and infinities.
  void SetValue(int64_t i, double value);
  // Wraps around to the type.
  void SetInt(int64_t i, int64_t value);
};

}  // namespace polynao::ir

#endif  // COMPILER_IR_TENSOR_H_
