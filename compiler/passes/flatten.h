// flatten: every buffer becomes one-dimensional.
#ifndef COMPILER_PASSES_FLATTEN_H_
#define COMPILER_PASSES_FLATTEN_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao {

struct PassInfo;

struct FlattenOptions {
  // This is true if allocations inside thread loops, except those in scope shared, keep their dimensions: on a GPU the
  // dimensions say which elements are private to one thread.
  bool keep_private = false;
};

// Gives every buffer, parameters too, one dimension in row-major order:
//
//   A: f32[4, 14]  A[i, j]   -->   A: f32[56]  A[i * 14 + j]
//
// An index is i32 unless the buffer has 2^31 elements or more, or an extent that is not constant
// and i64. Runs before the passes that reason about addresses (tensorize, storage).
absl::StatusOr<bool> Flatten(ir::Function& function, const FlattenOptions& options = {});

// The pass by name (registry.h).
PassInfo FlattenPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_FLATTEN_H_
