// How much two tensors differ.
#ifndef COMPILER_IR_COMPARE_H_
#define COMPILER_IR_COMPARE_H_

#include <cstdint>

#include "compiler/ir/tensor.h"

namespace polynao::ir {

// The largest |a - b| and |a - b| / max(|a|, |b|, 1e-30) over all elements; NaN equals NaN.
struct Difference {
  double max_abs = 0;
  double max_rel = 0;
  int64_t where = -1;  // element of the largest |a - b|; -1 if all are equal
};
// Shapes and types must agree.
Difference Compare(const Tensor& a, const Tensor& b);

}  // namespace polynao::ir

#endif  // COMPILER_IR_COMPARE_H_
