// How much two tensors differ.
#ifndef COMPILER_IR_COMPARE_H_
#define COMPILER_IR_COMPARE_H_

#include <cstdint>

#include "compiler/ir/tensor.h"

namespace polynao::ir {

// The largest |a - b| and |a - b| / max(|a|, |b|, 1e-30) over all elements, as numbers: every NaN
// equals every other, an infinity equals itself and is infinitely far from all else, and -0 equals 0.
// Integers are compared in all their bits. For operators with a tolerance.
struct Difference {
  double max_abs = 0;
  double max_rel = 0;
  int64_t where = -1;  // element of the largest |a - b|; -1 if all are equal
};
// Shapes and types must agree.
Difference Compare(const Tensor& a, const Tensor& b);

// The first element whose bits differ, -1 if none: -0 differs from 0. One NaN equals every other,
// since the IR leaves a NaN's sign and payload open. With `max_ulps`, floats that are at most so many
// steps between neighbouring values apart are equal too (an infinity follows the greatest value, and
// -0 is 0). For programs of one meaning. Types and element counts must agree.
int64_t FirstDifference(const Tensor& a, const Tensor& b, int64_t max_ulps = 0);

}  // namespace polynao::ir

#endif  // COMPILER_IR_COMPARE_H_
