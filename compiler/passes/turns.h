// Loops around loops over the cores of a cluster.
#ifndef COMPILER_PASSES_TURNS_H_
#define COMPILER_PASSES_TURNS_H_

#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// A cluster may take its rows in turns, between which images come and results leave by way of SMEM: then the loop over
// turns stands around the one over cores, and what a core keeps (weights, vectors of channels) is allocated inside
// both. It is the same in each turn, so it goes before their loop. What a core only copies from the turn's SMEM to
// memory that may have several copies becomes a loop of its own, margins that are filled included, which the pass
// pipeline gives a stage (`fetch`).
//
//   for (t, 0, 7) {                                  allocate W: i8[64] @wmem
//     allocate S: i8[64] @smem                       thread (tid, 4) { load W from F[tid * 64] }
//     load S                                         for (t, 0, 7) {
//     thread (tid, 4) {                                allocate S: i8[64] @smem
//       allocate W: i8[64] @wmem                       load S
//       load W from F[tid * 64]                 -->    pragma "double_buffer" {
//       pragma "double_buffer" {                         allocate X: i8[64] @nmem
//         allocate X: i8[64] @nmem                       thread (tid, 4) { copy X from S }
//         copy X from S                                  thread (tid, 4) { compute with X and W }
//         compute with X and W                         }
//       }                                            }
//     }
//   }
//
// A statement goes before the loop if it writes nothing but memory of a core that no other statement writes in a turn,
// or that it allocates itself, and reads nothing that changes in the loop. Loops whose body does anything else than
// allocate and run statements before and behind the loops over cores stay as they are. Runs behind tensorize, which
// says what instructions read and write.
//
// A cluster's only turn begins with the last load in front of its only loop over cores. What cores make of SMEM that
// comes before goes in front of that load, so that they need not wait for both; and memory that cores fill with a
// constant is filled first of all, as the cores wait anyway.
//
//   load X to S; load F to G                         load X to S
//   thread (tid, 4) {                                thread (tid, 4) { fill Y; copy P from S; convert P }
//     copy P from S; convert P                  -->  load F to G
//     copy Q from G                                  thread (tid, 4) {
//     fill Y; add products of P and Q to Y             copy Q from G; add products of P and Q to Y
//   }                                                }
//
// In turns, cores fill such memory while they copy what has come from SMEM.
//
// Returns the statement `s`, changed or not.
ir::Stmt ArrangeTurns(ir::Stmt s, const Target& target);

}  // namespace polynao

#endif  // COMPILER_PASSES_TURNS_H_
