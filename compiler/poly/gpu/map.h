// Maps a schedule tree to a GPU: which bands become blocks and threads, what is copied to shared memory, and what
// threads keep in registers. gpu_emit.h writes the loops.
#ifndef COMPILER_POLY_GPU_MAP_H_
#define COMPILER_POLY_GPU_MAP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/poly/arrange/local_copies.h"
#include "compiler/poly/gpu/gpu.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// The threads of a block, outermost axis first: "y", "x".
struct ThreadShape {
  std::vector<std::string> axes;
  std::vector<int64_t> sizes;
};

// A box of elements in shared memory.
struct SharedCopy {
  ReferenceGroup group;
  std::vector<int64_t>
      extents;  // the box, the last one longer by 1 where threads of a warp would meet in one bank
  int64_t bytes() const;
};

// Says what a mark of the new tree means.
struct GpuMark {
  enum class Kind {
    kBlocks,     // the members of the band below are blocks
    kInBlocks,   // below that band
    kOwn,        // each thread keeps elements of `own` in registers below
    kShared,     // boxes are in shared memory below
    kThreads,    // the members of the band below are threads
    kInThreads,  // below that band
  };
  Kind kind = Kind::kBlocks;
  std::optional<isl::union_map> loops =
      {};         // { S[i] -> [t0, t1, ..] }: the loops around; nothing if there is none
  int depth = 0;  // of the first loop of blocks or threads: how many loops are around it
  ThreadShape shape = {};
  // kBlocks: the first and the last number of a block along each axis, functions on the loops around.
  std::vector<isl::pw_aff> first = {}, last = {};
  std::vector<OwnElement> own = {};
  std::vector<SharedCopy> shared = {};
  std::vector<ir::Buffer> copies = {};  // kThreads: private buffers that each thread gets a copy of
};

struct GpuMapping {
  isl::schedule schedule = {};
  std::map<std::string, GpuMark> marks = {};
  int kernels = 0;
  int wavefronts = 0;
  std::vector<std::string> lines = {};  // one per kernel and per band of the host
};

// The order of `schedule`, which is legal, for a GPU. Each outermost band with parallel members becomes a kernel. Up
// to three of these members are cut into tiles: tile loops are blocks, the loops inside are threads, that of the
// member with most accesses of stride one along threadIdx.x. Bands around stay loops of the host. A permutable band
// without a parallel member becomes diagonals: the host goes along the sum of its members, and the others are parallel.
//
// Serial loops of a kernel are cut into tiles where that lets blocks copy what threads share to shared memory. A copy
// is made of what several instances of a tile read, or what the threads of a warp read with a stride. In such a kernel
// threads keep the elements that they alone store in registers. Copies and registers load nothing that may be
// undefined, except of `given` buffers, where all is defined.
//
// Throws isl::exception.
GpuMapping MapToGpu(const Scop& scop, const Dependences& dependences, const isl::schedule& schedule,
                    const GpuOptions& options, const Given& given);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_GPU_MAP_H_
