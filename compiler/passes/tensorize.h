// tensorize: loop nests become tensor instructions.
#ifndef COMPILER_PASSES_TENSORIZE_H_
#define COMPILER_PASSES_TENSORIZE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// What became of one nest, for --stats: the first line of its text, and the instruction chosen or
// why none matched.
struct TensorizeDecision {
  std::string nest;
  std::string instruction;  // empty: none
  std::string reason;       // why the nearest pattern differs
};

// Instruction selection by tree matching ("Tensor instruction generation optimization fusing with
// loop partitioning", section IV-D):
//
//   pragma "add" {                                add.f16(&C[0], &A[0], &B[0], 128)
//     for (i, 0, 2) { for (j, 0, 64) {      -->
//       C[i*64 + j] = A[i*64 + j] + B[i*64 + j] } } }
//
// The pattern of an instruction is its meaning: a perfect nest of loops over one store whose value
// is a tree over loads and scalar parameters. A nest matches if, after loops that run through
// memory without a gap are joined and loops of one iteration dropped,
//   - its innermost loops have the pattern's index strides (parameters take the nest's strides,
//   missing
//     loops count as one iteration; further outer loops stay around the instruction),
//   - its value has the same operators (operands of commutative ones in either order), loads from
//     memories of the same kind and element type, and loop-invariant values where the pattern has
//     scalars, and
//   - the instruction's @require conditions are provable. A count that has to be a multiple is
//   rounded
//     up where that is harmless: a lanewise instruction on buffers on chip whose further elements
//     nothing else defines; the allocations are expanded to hold them (section IV-B, ALIGN).
// Of several matches the one with the fewest loops around it wins, then the cheapest.
// A pragma whose key is an instruction's family ("add", "memcpy") restricts the choice to that
// family and goes away when the nest matches; "tensorize" allows any. Nests without a pragma are
// tried too. What matches nothing stays a scalar loop. Guards are loop_partition's and stop a
// match. Buffers must be one-dimensional (flatten). Time: nests times patterns.
absl::StatusOr<bool> Tensorize(ir::Function& function, const Target& target,
                               std::vector<TensorizeDecision>* decisions = nullptr);

}  // namespace polynao

#endif  // COMPILER_PASSES_TENSORIZE_H_
