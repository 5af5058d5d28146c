// unroll: copies the bodies of short unroll loops.
#ifndef DOCS_EXAMPLE_PASS_UNROLL_H_
#define DOCS_EXAMPLE_PASS_UNROLL_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao {

struct PassInfo;

struct UnrollOptions {
  int max_extent = 16;  // iterations of a loop that is copied
};

// Replaces unroll loops of constant bounds and at most `max_extent` iterations by their bodies:
//
//   unroll (i, 2, 2) { A[i] = B[i + 1] }   -->   A[2] = B[2 + 1]  A[3] = B[3 + 1]
//
// Here and not in a back end: the tensor ISA's code generator emits loops as they are, and simplify
// can use what it knows of each copy. Other loops stay; unroll is only a wish. The code grows by
// the product of the extents of nested loops. Returns whether anything changed; if not, the body is
// the same node.
absl::StatusOr<bool> Unroll(ir::Function& function, const UnrollOptions& options = {});

// The pass by name.
PassInfo UnrollPass();

}  // namespace polynao

#endif  // DOCS_EXAMPLE_PASS_UNROLL_H_
