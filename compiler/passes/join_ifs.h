// Neighbouring ifs about one condition become one if.
#ifndef COMPILER_PASSES_JOIN_IFS_H_
#define COMPILER_PASSES_JOIN_IFS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/effects.h"
#include "compiler/target/target.h"

namespace polynao {

struct PassInfo;

// loop_partition makes one if of each nest below a thread loop. What is left of these at the end
// costs a branch each:
//
//   if (t < 3) { A } else { B }          if (t < 3) { A  C } else { B  D }
//   if (t < 3) { C } else { D }   -->
//
// Ifs are joined if they have the same condition (one node) and executing the first one can not
// change what it loads. (An if whose branches are equal is simplify's affair, and better gone before.)
// Returns whether anything changed.
absl::StatusOr<bool> JoinIfs(ir::Function& function, const Target& target);

// `children`, the statements of one sequence, with neighbours joined, in their branches too. Adds to
// `joined` the number of ifs that went into the one before.
std::vector<ir::Stmt> JoinNeighbours(absl::Span<const ir::Stmt> children, Effects& effects,
                                     int& joined);

// The pass by name (registry.h).
PassInfo JoinIfsPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_JOIN_IFS_H_
