// preprocess: gives the nests of complex tensor instructions the form that the instructions ask for.
#ifndef COMPILER_PASSES_PREPROCESS_H_
#define COMPILER_PASSES_PREPROCESS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/preprocess_plan.h"
#include "compiler/target/target.h"

namespace polynao {

struct PassInfo;

// Algorithm 1 of "Tensor instruction generation optimization fusing with loop partitioning" (section
// IV-B), on buffers that still have their dimensions. A *marked* nest stands under a pragma whose
// key is a family of instructions ("conv", "cast", "memcpy") or "pad". Nothing happens in functions
// without a marked nest that reduces (its family's meaning accumulates: conv, matmul, reduce_sum)
// or pads, or a pragma "ragged" (a schedule's wish to keep a loop over unequal tiles in one piece):
// elementwise guards are loop_partition's. What is asked for comes from the table: an
// instruction whose meaning reads weights in WMEM as [l, c * pitch + k] beside results
// [..., c * lanes + l] wants channels in groups of `lanes`, and a pitch that its @require allows.
//
// LAYOUT  weights Ww: i8[100, 3, 3, 16] @wmem  -->  Ww: i8[64, 2 * 192]: filter co is number co / 64 of
//         bank co % 64. In nests the loop over channels becomes `for (c) for (l, 0, 64)`; a copy of the
//         weights becomes one nest for full groups and one for what is left.
//         P = select(inside, load, constant) under "pad"  -->
//           if (some element is not inside) { pragma "fill" { all of P = constant } }
//           pragma "memcpy" { the part inside }
//         The fill of a buffer under "sliding_window", whatever nests store there, stands at its
//         allocation.
// ALIGN   Channels that are no multiple of the lanes are rounded up: in the result's allocation, and in
//         all marked elementwise nests that it is connected with by their innermost loop, so that
//         these run through memory without gaps. Copies keep their width.
// COM     Guards of marked nests that compute go, and the nests compute elements that nobody uses; but
//         a nest that reduces has fewer iterations of its outermost loop where that is all that the
//         guard says and some are left: `for (y, 0, min(4, n - t * 4))` is the instruction's count.
//         Guards of marked copies become bounds of their loops, computed at run time,
//           for (y, 0, 4) { if (t * 4 + y < n) S }  -->  for (y, 0, min(4, n - t * 4)) S
//         (under an if, where there may be no iteration: an instruction's address must be one even if
//         it moves nothing) and pragma "no_partition", so that loop_partition leaves the loops around
//         whole. A guard `y < 3` becomes a bound in any nest.
//
// When COM is allowed. A guard g of a nest that stores to B may go if
//   - B is allocated on chip in the function, and each guarded loop is one dimension of the store's
//     index (plus what does not change in the nest), so each element is computed once;
//   - every statement that stores to B, written as a condition on B's indices, has g too, and g does not
//     change while B lives: so the further elements are never stored before, and what a program
//     computes from them it does not use (ir.h);
//   - all indices stay inside their buffers. On-chip buffers are enlarged if that helps.
// A guard on a loop that is summed over does not go. The same argument serves ALIGN, where no other
// statement may store to the further channels.
//
// Left alone: nests that are not perfect (loops, ifs without else, one store or an initialisation and
// an update of the same element), guards that are not affine or read memory, marked "tensorize".
// Each statement is looked at a constant number of times.
absl::StatusOr<bool> Preprocess(ir::Function& function, const Target& target,
                                std::vector<PreprocessDecision>* decisions = nullptr);

// The pass by name (registry.h).
PassInfo PreprocessPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_PREPROCESS_H_
