// The statements of a function that one core of the card runs.
#ifndef COMPILER_PASSES_CORE_PROGRAM_H_
#define COMPILER_PASSES_CORE_PROGRAM_H_

#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// A core of a cluster. The memory core has the number after the last core.
struct CoreId {
  int cluster = 0;
  int core = 0;
};

// All cores of the target's machine, those of cluster 0 first, each cluster's memory core last.
std::vector<CoreId> AllCores(const Target& target);

// Returns the part of `function` that `core` runs, which has been through sync, as a function without thread loops.
// Target's rule (compiler/target/core_roles.h) says who runs which statement.
//
//   thread (cid, 2) {                          core 1 of cluster 0:         its memory core:
//     memcpy.f16.smem.gmem.async(&S[0], ...)   let cid = 0                  let cid = 0
//     barrier.cluster()                        barrier.cluster()            memcpy...(&S[0], ...)
//     thread (tid, 2) { ... &S[tid * 32] }     let tid = 1  ... &S[...]     barrier.cluster()
//   }
ir::Function CoreProgram(const ir::Function& function, const Target& target, CoreId core);

}  // namespace polynao

#endif  // COMPILER_PASSES_CORE_PROGRAM_H_
