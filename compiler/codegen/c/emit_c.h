// The C back end: loop IR as readable C11.
//
// The code agrees with the interpreter on programs that do not stop, if the compiler has two's
// complement integers and IEEE floats and rounds each operation once. All compilers for x86-64 and
// AArch64 do; the text turns contraction off with a pragma that clang obeys. f16 and bf16 are stored
// as uint16_t and computed in float by helper functions in the same file. exp, log, tanh, ... are
// those of the C library.
//
// Loops: the outermost parallel loop gets `#pragma omp parallel for`; a vectorize loop gets
// `#pragma omp simd` if its iterations are provably independent, which that pragma promises; unroll
// loops of few iterations get `#pragma GCC unroll`. Without OpenMP the pragmas have no effect.
#ifndef COMPILER_CODEGEN_C_EMIT_C_H_
#define COMPILER_CODEGEN_C_EMIT_C_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/ir.h"

namespace polynao::codegen {

// One C file with a function for each of `functions`:
//   void name(const float *restrict A, float *restrict B, int32_t n);  // parameters in their order
// (buffers of f16 and bf16 are uint16_t, of i1 uint8_t; f16 and bf16 scalars are float) and its raw
// entry (RawEntry in compiler/codegen/arguments.h), `int32_t name_entry(...)`, which returns 0.
// Names that C does not allow are changed; see CName in function_emitter.h. Errors: a function that is
// not well-formed, a call of a tensor instruction, two functions of one name.
absl::StatusOr<std::string> EmitC(absl::Span<const ir::Function> functions);
absl::StatusOr<std::string> EmitC(const ir::Function& function);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_C_EMIT_C_H_
