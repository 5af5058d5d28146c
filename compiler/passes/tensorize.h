// tensorize: loop nests become tensor instructions.
#ifndef COMPILER_PASSES_TENSORIZE_H_
#define COMPILER_PASSES_TENSORIZE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

struct PassInfo;

// Says what became of one nest, for --stats and --explain.
struct TensorizeDecision {
  std::string nest;         // the first line of its text
  std::string instruction;  // empty: none
  std::string reason;       // one line: the nearest pattern and why it differs
  // Lines: which node of the program differs from which node of the nearest pattern. Empty if an
  // instruction was found.
  std::string explanation;
};

// Instruction selection by tree matching ("Tensor instruction generation optimization fusing with
// loop partitioning", section IV-D):
//
//   pragma "add" {                                add.f16(&C[0], &A[0], &B[0], 128)
//     for (i, 0, 2) { for (j, 0, 64) {      -->
//       C[i*64 + j] = A[i*64 + j] + B[i*64 + j] } } }
//
// The pattern of an instruction is its meaning: loops around one store, or around an initialising
// store and further loops that update the same element (tensor_pattern.h); all instructions that
// wait in a queue have that form. A nest matches if
//   - its value has the same operators (operands of commutative ones in either order), loads from
//     memories of the same kind and element type, and loop-invariant values where the pattern has
//     scalars,
//   - its loops can be laid over the pattern's: loops of one iteration may be missing on either
//     side, neighbours that run through memory without a gap count as one, outer loops may stay
//     around the instruction,
//   - the strides give the instruction's parameters (tensor_parameters.h), and
//   - the instruction's @require conditions are provable. A count that has to be a multiple is
//     rounded up where that is harmless: a lanewise instruction on buffers on chip whose further
//     elements nothing else defines; the allocations are expanded to hold them (section IV-B,
//     ALIGN).
// An initialisation may also be a nest of its own right before the update. Where every iteration stores
// an element of its own, loops may stand in any order and run backwards. Where the loops may have no
// iteration and an address might then be outside its buffer, an if stands around the instruction.
// Of several matches the one with the fewest loops around it wins, then the cheapest; what the
// machine lacks is not chosen.
// A pragma whose key is an instruction family ("conv", "memcpy") restricts the choice to that
// family and to the instructions that the table declares as forms of it (@form: conv_acc,
// memcpy3d). The pragma goes away when the nest matches. "tensorize" allows any family; nests
// without a pragma are tried too. A nest that matches nothing stays a scalar loop. A guard prevents
// a match: loop_partition and preprocess remove guards first. Buffers must be one-dimensional
// (flatten). Time: nests times the instructions that store the same type to the same memory.
absl::StatusOr<bool> Tensorize(ir::Function& function, const Target& target,
                               std::vector<TensorizeDecision>* decisions = nullptr);

// The pass by name (registry.h).
PassInfo TensorizePass();

}  // namespace polynao

#endif  // COMPILER_PASSES_TENSORIZE_H_
