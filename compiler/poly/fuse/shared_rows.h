// Loops one behind the other that read the same rows.
#ifndef COMPILER_POLY_FUSE_SHARED_ROWS_H_
#define COMPILER_POLY_FUSE_SHARED_ROWS_H_

#include "compiler/ir/ir.h"

namespace polynao::poly {

// Vectors of stages that read the same rows become one, with the loops around them, so that each element is loaded
// once:
//
//   vectorize (x, 0, n) { u[x] = A[y - 1, x] + A[y + 1, x] }   vectorize (x, 0, n) { v[x] = A[y + 1, x + 2] }
//   -->  vectorize (x, 0, n) { u[x] = A[y - 1, x] + A[y + 1, x]   v[x] = A[y + 1, x + 2] }
//
// where both have the same bounds, store arrays that are allocated in `s`, and neither stores what the other one uses.
ir::Stmt WithSharedRows(ir::Stmt s);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_SHARED_ROWS_H_
