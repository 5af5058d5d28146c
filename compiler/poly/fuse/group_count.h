// How often the stages of a group run, exactly.
#ifndef COMPILER_POLY_FUSE_GROUP_COUNT_H_
#define COMPILER_POLY_FUSE_GROUP_COUNT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "compiler/poly/arrange/options.h"
#include "compiler/poly/fuse/group_tree.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// Counts what the tree of a group runs: instances of the root, each once, and those that the extensions add, summed
// over all tiles. Without a tree: stages that run each instance once.
//
//   tiles of 32 of  b[i] = a[i] + a[i + 1], 0 <= i < 64:   64 instances of b and 2 * 33 of a run; 64 + 65 exist
//
// `part`: these stages alone. Parameters that it leaves open are about `extent` (assumed.h). isl may do `operations`
// steps for it (0: no limit). Errors: FailedPrecondition for infinitely many; ResourceExhausted.
absl::StatusOr<InstanceCount> CountInstances(const Scop& part, const GroupTree* tree,
                                             int64_t extent, unsigned long operations);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_GROUP_COUNT_H_
