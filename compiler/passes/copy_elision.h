// Copies on chip that move nothing: elements get the places that they have.
#ifndef COMPILER_PASSES_COPY_ELISION_H_
#define COMPILER_PASSES_COPY_ELISION_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao {

struct PassInfo;

// Expressions cut into steps leave copies of which each element keeps its place: an image as one run of pixels, the
// channels that there are of more. Who reads the copy reads what it was made of:
//
//   allocate A: f16[256] @nmem                  allocate A: f16[256] @nmem
//   for (i, 0, 256) { A[i] = .. }               for (i, 0, 256) { A[i] = .. }
//   allocate B: f16[256] @nmem            -->   for (i, 0, 64) { Y[i] = A[i * 3] }
//   for (i, 0, 256) { B[i] = A[i] }
//   for (i, 0, 64) { Y[i] = B[i * 3] }
//
// Both stand in the memory of one core, A is no shorter and has the type; B is stored by this nest alone, which no
// loop around it inside of B's scope repeats; behind the nest, nothing stores to A while B lives; no instruction takes
// the address of either. A copy with several versions (double_buffer) stays if A has none: it lets A be filled anew.
// Reading an element of B that was not copied is a mistake, so that A's may stand for it.
//
// Runs on flat buffers, whose indices simplify has made equal. Linear in the program's size. Returns whether anything
// changed.
absl::StatusOr<bool> ElideCopies(ir::Function& function);

// The pass by name (registry.h).
PassInfo CopyElisionPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_COPY_ELISION_H_
