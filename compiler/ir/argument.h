// The arguments of a function, for whoever runs it.
#ifndef COMPILER_IR_ARGUMENT_H_
#define COMPILER_IR_ARGUMENT_H_

#include <cstdint>

#include "compiler/ir/tensor.h"

namespace polynao::ir {

// One argument of a call: a scalar or the tensor of a buffer parameter (kept by the caller; its
// shape must equal the parameter's extents).
struct Argument {
  int64_t int_value = 0;
  double float_value = 0;
  Tensor* tensor = nullptr;
  static Argument Int(int64_t value) { return {.int_value = value}; }
  static Argument Float(double value) { return {.float_value = value}; }
  static Argument Of(Tensor* tensor) { return {.tensor = tensor}; }
};

}  // namespace polynao::ir

#endif  // COMPILER_IR_ARGUMENT_H_
