// Allocations inside loops as one in front of them.
#ifndef COMPILER_POLY_CARD_EXPANDED_ALLOCATIONS_H_
#define COMPILER_POLY_CARD_EXPANDED_ALLOCATIONS_H_

#include <optional>

#include "compiler/ir/ir.h"

namespace polynao::poly {

// Allocations in loops, moved out of them: each iteration has its own part. None if there are none to move.
//
//   for (i, 0, n) { allocate t: f32[m]  .. t[j] .. }   -->   allocate t: f32[n, m]  for (i, 0, n) { .. t[i, j] .. }
std::optional<ir::Stmt> WithExpandedAllocations(ir::Stmt s);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_EXPANDED_ALLOCATIONS_H_
