// Fusion after tiling for a GPU (fuse/fuse.h): each group of stages is one kernel.
#ifndef COMPILER_POLY_GPU_FUSE_H_
#define COMPILER_POLY_GPU_FUSE_H_

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/arrange/options.h"
#include "compiler/poly/fuse/fuse.h"
#include "compiler/poly/gpu/gpu.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// The kernels of a part, and its report. Groups and tile sizes by the cost model (gpu_group_cost.h), or as the options
// say. A tile whose boxes turn out to need more shared memory than a block has is halved. `alone` makes the code of
// stages without tiles: contractions, those of which all elements depend on each other, and stages alone that read or
// store columns along threads; and of parts without a group. Errors: those of `alone`. Throws isl::exception.
absl::StatusOr<ir::Stmt> FuseForGpu(const Scop& scop, const GpuOptions& options, StageCode& alone,
                                    PartReport* report);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_GPU_FUSE_H_
