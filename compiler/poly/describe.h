// The parts of a function as text, for people and for `nao poly`.
#ifndef COMPILER_POLY_DESCRIBE_H_
#define COMPILER_POLY_DESCRIBE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao::poly {

// What Describe knows: "context", "domain", "accesses", "deps", "schedule", "tree", "ast", "remarks".
const std::vector<std::string_view>& Descriptions();

// For each static control part of `function`, in isl's notation:
//
//   context   what is known of the parameters, and what code would have to test
//   domain    { S0[i, j] : 0 <= i < n and 0 <= j < i }, and the statement's code
//   accesses  { S0[i, j] -> A[i, j] }: reads and writes, must and may
//   deps      flow, anti, output, reductions, live-in and live-out elements
//   schedule  the original order, { S0[i, j] -> [i, 0, j] }
//   tree      the same as a schedule tree
//   ast       loops that run the instances in this order, as isl makes them
//   remarks   what is not affine, where, and what that costs
//
// An error if `what` is none of these, or if isl exceeds its operations.
absl::StatusOr<std::string> Describe(const ir::Function& function, std::string_view what);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_DESCRIBE_H_
