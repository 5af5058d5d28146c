// Loop IR to a tensor-ISA program.
#ifndef COMPILER_CODEGEN_DIANNAO_DIANNAO_H_
#define COMPILER_CODEGEN_DIANNAO_DIANNAO_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"
#include "isa/program.h"

namespace polynao {

// The program of `function`, which has been through the passes of PipelineFor(diannao): flat
// buffers, tensor instructions as calls, addresses from storage, syncs. All other statements run on
// the scalar unit. The parameters of the program are those of the function, in order,
// then a temporary for each allocation in gmem around the whole body.
//
// A loop over the thread axis "cid" runs on the clusters, one over "tid" on the cores of a cluster:
// of n units, number v % n runs iteration v. If the function has no loop over an axis, only unit
// number 0 runs it. All registers belong to the function, so a program needs no stack.
//
// The memory core of a cluster runs the statements inside a loop over cid but outside of the loops
// over tid:
//
//   thread (cid, 4) {
//     memcpy.i8.smem.gmem.async(&S[0], &A[0], 4096, 1, 0, 0)      the memory core
//     barrier.cluster()                                           all cores of the cluster
//     thread (tid, 4) { memcpy.i8.nmem.smem(&L[0], &S[0], ...) }  the cores
//   }
//
// The cores and the memory core all run the loops, branches and lets around tid loops and barriers,
// and the barriers. The memory core has gmem, smem, and the io and move queues.
//
// Program::machine is left empty: who has chosen the function's schedule knows what else of the machine was read.
//
// Errors: a memory scope that the card lacks, an allocation without address, a loop over another
// thread axis, a statement outside the function's thread loops (unless the memory core runs it), an
// instruction that the memory core lacks, a barrier that not all its members reach, more live
// values than registers.
absl::StatusOr<isa::Program> GenerateDianNao(const ir::Function& function, const Target& target);

}  // namespace polynao

#endif  // COMPILER_CODEGEN_DIANNAO_DIANNAO_H_
