// Counts the operations that a program would execute, without executing it.
#ifndef COMPILER_IR_STATIC_COUNTS_H_
#define COMPILER_IR_STATIC_COUNTS_H_

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/ir/counts.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/shapes.h"

namespace polynao::ir {

// Adds `more`, taken `times` times.
void Add(Counts& sum, const Counts& more, int64_t times = 1);

struct StaticCounts {
  Counts counts;
  // This is true if the interpreter counts the same. If not, some condition or bound depends on
  // values in memory: such a condition counts as true, such a bound as 1.
  bool exact = true;
};

// The counts of the interpreter for `function` with the scalar parameters `scalars`.
//
// For a GPU kernel (a loop over "blockIdx..", or a function without such loops) it adds up the counts of
// all threads. Every thread of a block executes the statements around loops over "threadIdx..", one
// thread executes the statements beside them. Loops over threads and blocks themselves count nothing.
//
// A loop is counted by looking at one iteration if no condition or bound in its body depends on its
// variable, and at every iteration otherwise. For a convolution this means all padded rows, columns and
// taps, but one channel. Errors: a scalar without a value; more than `max_steps` statements and
// conditions to look at.
absl::StatusOr<StaticCounts> CountStatically(const Function& function,
                                             const IntValues& scalars = {},
                                             int64_t max_steps = 200'000'000);

}  // namespace polynao::ir

#endif  // COMPILER_IR_STATIC_COUNTS_H_
