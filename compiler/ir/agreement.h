// Compares whether two runs of a function left the same values, where the order of sums may differ.
#ifndef COMPILER_IR_AGREEMENT_H_
#define COMPILER_IR_AGREEMENT_H_

#include <string>

#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"

namespace polynao::ir {

// "" if all tensors of the arguments agree; else the buffer of `function` and the element that differs most.
//
// With `tolerance` 0 all bits must be equal (FirstDifference of compare.h). Otherwise the largest |a - b| in a tensor
// may be `tolerance` times the largest finite |b|, or `tolerance` itself where all |b| are below 1. A NaN agrees with a
// NaN only, an infinity with itself only.
std::string FindDisagreement(const Function& function, const RandomArguments& actual,
                             const RandomArguments& expected, double tolerance);

}  // namespace polynao::ir

#endif  // COMPILER_IR_AGREEMENT_H_
