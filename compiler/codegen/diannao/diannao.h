// Loop IR to a tensor-ISA program.
#ifndef COMPILER_CODEGEN_DIANNAO_DIANNAO_H_
#define COMPILER_CODEGEN_DIANNAO_DIANNAO_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"
#include "isa/program.h"

namespace polynao {

// The program of `function`, which has been through the passes of PipelineFor(diannao): flat
// buffers, tensor instructions as calls, addresses from storage, syncs. What is no instruction runs
// on the scalar unit. Parameters of the program are the function's, in order.
//
// A loop over the thread axis "cid" or "tid" runs on the clusters or the cores of a cluster,
// iteration v on number v % how many there are. An axis that the function does not use runs on
// number 0 alone. All registers are the function's own, so a program needs no stack.
//
// The memory core of a cluster runs what stands in a loop over cid but outside of the loops over
// tid in it:
//
//   thread (cid, 4) {
//     memcpy.i8.smem.gmem.async(&S[0], &A[0], 4096, 1, 0, 0)      the memory core
//     barrier.cluster()                                           all cores of the cluster
//     thread (tid, 4) { memcpy.i8.nmem.smem(&L[0], &S[0], ...) }  the cores
//   }
//
// Loops, branches and lets around tid loops and barriers are run by all of them; so are barriers.
// The memory core has gmem, smem, and the io and move queue.
//
// Errors: a memory scope that the card lacks, an allocation without address, a loop over another
// thread axis, a statement outside the thread loops of a function that has some (but for the memory
// core), what the memory core can not do, a barrier that not all its members reach, more live
// values than registers.
absl::StatusOr<isa::Program> GenerateDianNao(const ir::Function& function, const Target& target);

}  // namespace polynao

#endif  // COMPILER_CODEGEN_DIANNAO_DIANNAO_H_
