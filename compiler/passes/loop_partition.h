// Splitting loops where a condition inside changes, so that what is left inside has no conditions.
#ifndef COMPILER_PASSES_LOOP_PARTITION_H_
#define COMPILER_PASSES_LOOP_PARTITION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/arith/integer_set.h"
#include "compiler/ir/ir.h"

namespace polynao {

struct PassInfo;
struct Target;

struct LoopPartitionOptions {
  // Into how many pieces one loop may be split, and how many pieces more than loops one outermost
  // nest may get in all (code growth: each is a copy of a loop's body at most). Guards are taken in
  // the order of the program, outer loops first; one whose pieces do not fit beside those of the
  // guards before stays as it is, in all pieces, and the next one is tried.
  int max_pieces = 16;
  int max_nest_pieces = 64;
  // Only split for guards inside a pragma's body.
  bool only_in_pragmas = false;
  // Its instruction table says which calls wait for other threads. Null: none does.
  const Target* target = nullptr;
};

struct LoopPartitionStats {
  struct Guard {
    std::string condition;
    // Values of the loop variable for which the condition holds throughout, and for which it never
    // holds. Empty if they are not constant; the texts below tell them all the same.
    arith::Intervals always = {};
    arith::Intervals never = {};
    // The paper's T, F and B: always, never, and the rest, where it depends on other variables.
    // "[0, 3]" holds 3, "[0, n)" does not hold n, and ".." is the loop's own bound.
    std::string true_set, false_set, both_set;
    bool taken = true;  // false if its pieces did not fit a limit
  };
  struct Loop {
    std::string variable;
    std::string bounds;  // "[0, 3]"; "[0, n)"
    std::vector<Guard> guards = {};
    // In order; adjacent ones differ in some guard. Intervals only where constant.
    arith::Intervals pieces = {};
    std::vector<std::string> piece_bounds = {};
  };
  std::vector<Loop> loops;  // with at least one guard that is constant somewhere
  int64_t isl_questions = 0;

  // One line per loop and guard:
  //   tid in [0, 3]: tid * 4 + j < 14: T [0, 2], F none, B [3, 3]; pieces [0, 2] [3, 3]
  std::string ToString() const;
};

// Algorithm 2 of "tensor instruction generation optimization fusing with loop partitioning"
// (section IV-C), for any affine guard:
//
//   for (i, 0, 4) for (j, 0, 4)          for (i, 0, 3) for (j, 0, 4)
//     if (i * 4 + j < 14)          -->     A[i * 4 + j] = 1
//       A[i * 4 + j] = 1                 for (i, 3, 1) for (j, 0, 2)
//                                          A[i * 4 + j] = 1
//
// A guard is a condition of an if or of a select, or a min or max in the bounds of a loop. For each
// loop, from the outermost inwards, and each guard below it that uses its variable, the values of
// the variable for which the guard is true whatever the inner variables are, for which it is false,
// and the rest are computed: from intervals where that is exact, else by isl. Conditions of ifs
// around the guard (and their negation in else branches), lets, `@assert` and extents of parameters
// are facts there, as far as they read no memory. The loop becomes consecutive loops (of the same
// kind, with copies of the pragmas inside) over the intervals between those, without the guard where
// it is constant; pieces left without a body are dropped. A compound guard that is constant nowhere
// is split by its parts.
//
// Where the bounds of a loop are not constant, its pieces end at a min or start at a max, and may
// have no iteration. Such a loop is also split where a linear guard changes at a value known before
// the loop, if that value cannot leave its type:
//
//   for (i, 0, n) if (i < 14) A                -->  for (i, 0, min(n, 14)) A
//   for (i, 0, n) if (i < n - 1) A else B      -->  for (i, 0, n - 1) A  for (i, n - 1, ..) B
//
// A loop bound to a thread axis stays one loop over all its threads; the loop nests inside become
// `if (tid < 3) { piece } else { piece }`.
//
// Left alone: statements under pragma "no_partition", which goes away; guards that are not affine
// or read memory; guards of a loop of constant bounds that change at a value that is not; thread loops whose number
// is not constant; loops whose bounds read memory; serial loops around thread loops; and, for thread
// variables, nests with an instruction that only waits (unit control: waits for queues, barriers), which
// all threads must reach together.
//
// Other expressions stay as they are; `simplify` is meant to run afterwards.
absl::StatusOr<bool> LoopPartition(ir::Function& function, const LoopPartitionOptions& options = {},
                                   LoopPartitionStats* stats = nullptr);

// The pass by name (registry.h).
PassInfo LoopPartitionPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_LOOP_PARTITION_H_
