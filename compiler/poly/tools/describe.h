// The parts of a function as text, for people and for `nao poly`.
#ifndef COMPILER_POLY_TOOLS_DESCRIBE_H_
#define COMPILER_POLY_TOOLS_DESCRIBE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/poly.h"

namespace polynao::poly {

// Returns the words that Describe knows: those below.
const std::vector<std::string_view>& Descriptions();

// For each static control part of `function`, in isl's notation:
//
//   context   what is known of the parameters, and what code would have to test
//   domain    { S0[i, j] : 0 <= i < n and 0 <= j < i }, and the statement's code
//   accesses  { S0[i, j] -> A[i, j] }: reads and writes, must and may
//   deps      flow, anti, output, reductions, live-in and live-out elements
//   schedule  the order that `options` ask for, with tiles: { S0[i, j] -> [i, 0, j] }
//   tree      the same as a schedule tree, with marks of parallel and vector loops
//   ast       loops that run the instances in this order, as isl makes them
//   loops     the function with these loops, as Schedule makes it
//   report    what Schedule says about them
//   remarks   what is not affine, where, and what that costs
//
// The strategy "none", the default, is the order in which the function is written. Errors: `what` is none of these,
// options that Schedule refuses, isl exceeds its operations.
absl::StatusOr<std::string> Describe(const ir::Function& function, std::string_view what,
                                     const ScheduleOptions& options = {.strategy = "none"});

}  // namespace polynao::poly

#endif  // COMPILER_POLY_TOOLS_DESCRIBE_H_
