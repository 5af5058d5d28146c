// Spreads what all clusters read over the channels of GMEM.
#ifndef COMPILER_PASSES_STAGGER_H_
#define COMPILER_PASSES_STAGGER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// Clusters that load the same data (a convolution's filters) at the same time all read from one
// channel, then all from the next one, while the others wait for work. A contiguous copy from GMEM to
// SMEM in a loop over clusters (cid), of which nothing depends on the cluster, starts for cluster i of n
// at the i-th n-th of the data instead, and takes the part before it afterwards:
//
//   for (cid, 0, 4) thread { memcpy(&S[0], &A[0], 4096) }
//   -->  for (cid, 0, 4) thread { memcpy(&S[cid * 1024], &A[cid * 1024], 4096 - cid * 1024)
//                                 memcpy(&S[0], &A[0], cid * 1024) }
//
// Only for data of as many blocks of gmem.interleave as there are channels, or more: the second copy
// costs a latency of its own. After tensorize. Returns whether the function changed; `decisions`, if
// not null, takes a line for each copy.
absl::StatusOr<bool> Stagger(ir::Function& function, const Target& target,
                             std::vector<std::string>* decisions = nullptr);

}  // namespace polynao

#endif  // COMPILER_PASSES_STAGGER_H_
