// preprocess: brings the nests of complex tensor instructions into the form that these need.
#ifndef COMPILER_PASSES_PREPROCESS_H_
#define COMPILER_PASSES_PREPROCESS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/preprocess_plan.h"
#include "compiler/target/target.h"

namespace polynao {

struct PassInfo;

// Algorithm 1 of "Tensor instruction generation optimization fusing with loop partitioning"
// (section IV-B), on buffers that still have their dimensions. A *marked* nest stands under a
// pragma whose key is an instruction family ("conv", "cast", "memcpy") or "pad". A function is
// left alone unless it has a marked nest that reduces (its family's meaning accumulates: conv,
// matmul, reduce_sum) or pads, or a pragma "ragged" (a schedule's wish to keep a loop over unequal
// tiles in one piece); the guards of elementwise nests are for loop_partition. The requirements
// come from the instruction table: an instruction that reads weights in WMEM as [l, c * pitch + k]
// and stores results to [..., c * lanes + l] needs channels in groups of `lanes` and a pitch that
// its @require allows.
//
// LAYOUT  Weights Ww: i8[100, 3, 3, 16] @wmem  -->  Ww: i8[64, 2 * 192]: filter co is number
//         co / 64 of bank co % 64. In nests the loop over channels becomes
//         `for (c) for (l, 0, 64)`; a copy of the weights becomes one nest for the full groups and
//         one for the rest. Dimensions in front of the channels in which a sum stays at one place count sets of
//         filters, each of which begins at a multiple of the pitch: i8[4, 30, 5, 5, 30] --> i8[64, 4 * 768].
//         P = select(inside, load, constant) under "pad"  -->
//           if (some element is not inside) { pragma "fill" { all of P = constant } }
//           pragma "memcpy" { the part inside }
//         Where the part inside is a diagonal (i == j, two loops over one range), the copy has one loop for both. If
//         the buffer gets the same diagonal in each iteration of the loop that allocates it, it is allocated and filled
//         in front of that loop: what is off the diagonal stays.
//         A buffer under "sliding_window" is filled once, at its allocation, for all nests that
//         store to it.
// ALIGN   A number of channels that is no multiple of the lanes is rounded up: in the result's
//         allocation, and in all marked elementwise nests that are connected with the result by
//         their innermost loop, so that these run through memory without gaps. Copies keep their
//         width.
// COM     Guards of marked nests that compute go away, and the nests compute elements that nobody
//         uses. A nest that reduces gets fewer iterations of its outermost loop instead if its
//         guard bounds only that loop and leaves some iteration: the instruction's count becomes
//         `min(4, n - t * 4)`. Guards of marked copies become bounds of their loops, computed at
//         run time,
//           for (y, 0, 4) { if (t * 4 + y < n) S }  -->  for (y, 0, min(4, n - t * 4)) S
//         under pragma "no_partition", so that loop_partition leaves the loops around whole, and
//         under an if where the loops may be empty: the address of an instruction must be valid
//         even if the instruction moves nothing. A guard `y < 3` becomes a bound in any nest.
//
// When COM is allowed. A guard g of a nest that stores to B may go if
//   - B is allocated on chip in the function, and each guarded loop is one dimension of the store's
//     index (plus a value that does not change in the nest), so each element is computed once;
//   - every statement that stores to B has g too, as a condition on B's indices, and g does not
//     change while B lives: so the further elements are never stored before, and values computed
//     from them are not used by the program (ir.h);
//   - all indices stay inside their buffers. On-chip buffers are enlarged if that helps.
// A guard on a loop that is summed over stays. The same argument allows ALIGN, where no other
// statement may store to the further channels.
//
// Left alone: nests that are not perfect (loops, ifs without else, one store or an initialisation
// and an update of the same element), guards that are not affine or read memory, nests marked
// "tensorize". Time: each statement is visited a constant number of times.
//
// instruction_layout.h reads the table, guarded_nest.h and preprocess_facts.h the function;
// channel_layout.h plans LAYOUT and ALIGN, guard_removal.h COM; preprocess_rewrite.h carries the
// plan out.
absl::StatusOr<bool> Preprocess(ir::Function& function, const Target& target,
                                std::vector<PreprocessDecision>* decisions = nullptr);

// The pass by name (registry.h).
PassInfo PreprocessPass();

}  // namespace polynao

#endif  // COMPILER_PASSES_PREPROCESS_H_
