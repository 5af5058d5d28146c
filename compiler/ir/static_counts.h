// Counting what a program executes without executing it.
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
  // Whether they are what the interpreter counts. If not, some condition depends on values in
  // memory, and was taken to be true; a bound that does was taken to be 1.
  bool exact = true;
};

// What the interpreter would count (Counts) for `function` with the scalar parameters `scalars`.
//
// In a kernel for a GPU (a loop over "blockIdx..", or what has none) it is what all its threads would
// count: what stands around loops over "threadIdx.." is executed by each thread of the block, what
// stands beside them by one; those loops and the ones over blocks are none.
//
// A loop whose variable no condition or bound in its body depends on takes the time of one
// iteration, any other that of all of them: a convolution takes its padded rows, columns and taps,
// but not its channels. Errors: a scalar without a value; more than `max_steps` statements and
// conditions would have to be looked at.
absl::StatusOr<StaticCounts> CountStatically(const Function& function,
                                             const IntValues& scalars = {},
                                             int64_t max_steps = 200'000'000);

}  // namespace polynao::ir

#endif  // COMPILER_IR_STATIC_COUNTS_H_
