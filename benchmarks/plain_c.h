// Loop IR as C that a person would write, for the compilers that a benchmark compares with.
#ifndef BENCHMARKS_PLAIN_C_H_
#define BENCHMARKS_PLAIN_C_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/shapes.h"

namespace polynao::benchmarks {

struct PlainCOptions {
  // Above 1: iterations of each outermost loop in which they are independent (compiler/codegen/c) run on so many
  // threads (OpenMP).
  int threads = 1;
};

// One C file with `function` for the sizes `integers`, in the form of PolyBench/C: parameters are arrays of constant
// extents (`double A[restrict 1000][1200]`), bounds are constants, loops count in int. Nothing is linearized, so that
// analyses of affine programs see what they look for; a function that has its own file has no other hint. The file also
// has the raw entry NAME_entry (RawEntry in compiler/codegen/arguments.h).
//
// Integers do not wrap: the C says nothing where loop IR does. Allocations that a stack does not hold are static. For
// plain nests of the types i8, u8, i16, u16, i32, i64, f32, f64. Errors name what is outside of this: other types,
// divisions of integers by anything but powers of two, buffers that overlap, thread loops, instructions; an integer
// parameter without a value; allocations whose size is not constant.
absl::StatusOr<std::string> PlainC(const ir::Function& function, const ir::IntValues& integers,
                                   const PlainCOptions& options = {});

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_PLAIN_C_H_
