// A function with the values of its scalar parameters written into it.
#ifndef COMPILER_IR_FIX_SCALARS_H_
#define COMPILER_IR_FIX_SCALARS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/ir.h"

namespace polynao::ir {

//   func f(A: f32[n] in, n: i32, x: f32) { .. A[i] * x .. }   n = 8, x = 0.5   -->   func f(A: f32[8] in) { .. A[i] * 0.5 .. }
//
// `arguments` has one for each parameter; those of buffers are not looked at. Attributes are dropped. Errors: an extent
// that cannot be evaluated, or does not fit.
absl::StatusOr<Function> FixScalars(const Function& function, absl::Span<const Argument> arguments);

}  // namespace polynao::ir

#endif  // COMPILER_IR_FIX_SCALARS_H_
