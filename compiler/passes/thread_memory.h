// The memories of what a program for the card allocates without saying where.
#ifndef COMPILER_PASSES_THREAD_MEMORY_H_
#define COMPILER_PASSES_THREAD_MEMORY_H_

#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/passes/preprocess_plan.h"
#include "isa/instruction_set.h"

namespace polynao {

// Two rules about allocations, with which programs need to name no memory and may count the elements
// of a thread's part in the whole tensor, as the listings of "Tensor instruction generation
// optimization fusing with loop partitioning" do:
//
//   thread (tid, 4) {                             thread (tid, 4) {
//     allocate A: f32[56] @local           -->      allocate A: f32[56] @nmem
//     for (i, 0, 56) { A[tid * 56 + i] = 1.0 }      for (i, 0, 56) { A[i] = 1.0 }
//   }                                             }
//
// 1. Memory. An allocation in "local", or in "gmem" where the card has no allocations in GMEM, is one
//    of the level of the card that the thread loops around it name (isa/levels.h): in a loop over
//    tid of NMEM, in one over cid alone of SMEM. Outside of thread loops it is in GMEM if thread
//    loops use it, otherwise the only core's. Of a core's memories it is WMEM instead of NMEM
//    if the nest of a pragma such as "conv" loads it as weights: its family's instructions load a
//    factor from WMEM that moves along with the result's innermost dimension, and so does the nest.
// 2. Elements. Each thread has a buffer of its own, so a multiple of the thread's number that is
//    part of all indices of the buffer goes away, if the indices are then proven to be inside. A
//    program in which they were not inside before stops in the interpreter: it is the program that
//    the listing means.
//
// Returns whether anything changed.
bool PlaceThreadMemory(ir::Function& function, const isa::InstructionSet& set,
                       std::vector<PreprocessDecision>* decisions = nullptr);

}  // namespace polynao

#endif  // COMPILER_PASSES_THREAD_MEMORY_H_
