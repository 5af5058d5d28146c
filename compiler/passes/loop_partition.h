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

// The attribute of a function whose loops have been split; with the value "pragmas", only those in
// pragmas. Another run leaves the function alone: pieces are loops like others, and guards that were over
// the limit, or too long a question for a whole loop, would split the pieces again.
inline constexpr std::string_view kPartitionedAttribute = "partitioned";

struct LoopPartitionOptions {
  // Into how many pieces one loop may be split, and how many more pieces than loops one outermost nest
  // may get in all. (They limit the growth of the code: a piece is at most a copy of a loop's body.)
  // Guards are taken in the order of the program, outer loops first. A guard whose pieces do not fit
  // beside those of the guards before stays in all pieces, and the next one is tried.
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
// A guard is a condition of an if or of a select (through lets), or the comparison that decides a min or
// max of integers in a loop bound, an index or a stored value. For each loop, from the outermost
// inwards, and each guard below it that uses its variable, three sets of values of the variable are
// computed: the guard is true whatever the inner variables are, it is false, and the rest.
// Intervals are used where they are exact, else isl. Conditions of ifs around the guard (and their negation in
// else branches), lets and `@assert` are facts there, unless they read memory.
// The loop becomes consecutive loops of the same kind, with copies of the pragmas inside, without the
// guard where it is constant; pieces left without a body are dropped. A compound guard that is
// constant nowhere is split by its parts.
//
// Where the bounds of a loop are not constant, its pieces end at a min or start at a max, and may
// have no iteration. Such a loop is also split where a linear guard changes at a value known before
// the loop:
//
//   for (i, 0, n) if (i < 14) A                -->  for (i, 0, min(n, 14)) A
//   for (i, 0, n) if (i < m) A else B          -->  for (i, 0, min(n, m)) A  for (i, max(m, 0), ..) B
//
// A loop bound to a thread axis stays one loop over all its threads; the loop nests inside become
// `if (tid < 3) { piece } else { piece }`.
//
// A changed function gets kPartitionedAttribute, and another run changes nothing. docs/passes.md lists
// what stays as it is. Other expressions stay, too; `simplify` is meant to run afterwards. Returns
// whether anything changed; if not, the body is the same node.
absl::StatusOr<bool> LoopPartition(ir::Function& function, const LoopPartitionOptions& options = {},
                                   LoopPartitionStats* stats = nullptr);

// The pass by name (registry.h).
PassInfo LoopPartitionPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_LOOP_PARTITION_H_
