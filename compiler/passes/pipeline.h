// pipeline: loads, computation and stores of neighbouring iterations run at the same time.
#ifndef COMPILER_PASSES_PIPELINE_H_
#define COMPILER_PASSES_PIPELINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

struct PassInfo;

// Says what the pass did with one loop that has double buffers.
struct PipelineDecision {
  std::string loop;
  bool pipelined;
  std::string reason;  // why not
  std::string form;    // "stages load, compute, store; copies X 2, Y 2, T 1"
};

// Software pipelining over the queues of a core. A loop
//
//   for (t, 0, n) { pragma "double_buffer" { allocate X ... prepare; load into X; compute; store } }
//
// whose body allocates on chip and then runs nothing but queued instructions becomes
//
//   step s:  sync;  store(s - 2);  load(s);  compute(s - 1);  prepare(s + 1)
//
// for every s for which one of these iterations exists. The first and last steps stand alone. The
// steady steps form a loop over groups of as many steps as a buffer has copies, so that every copy is a
// buffer of its own and no index depends on a parity. The schedule is that of hand-written kernels
// ("three stages"; Cambricon's mlu-ops, binary_op).
//
// The memory that an instruction accesses gives its stage. A load or a store runs in the io or move
// queue and copies between a buffer of the body and GMEM or SMEM outside of it. Computation runs in the
// compute queue. It is `prepare` if a load behind it in the same iteration writes a buffer that it has
// written (the fill of a tile whose border is not loaded).
//
// Each buffer gets the fewest copies with which no step accesses a copy from two queues: one, if only
// computation uses it; two as a rule; three, if different queues load and store it. With
// `pragma "double_buffer" (3)`, which allows three, a step issues its loads before its stores. Every
// multi-buffered allocation gets the same number of copies: the largest one needed.
//
// A buffer under `pragma "sliding_window" (ahead)`, allocated outside the loop, has one copy: no
// iteration stores bytes that it or an earlier iteration uses. With ahead >= 1 its loads are for later
// iterations; if all loads are, they run in the step of their iteration's computation.
//
// Ifs, lets and inner loops around instructions are repeated in each stage that needs them. Buffers of
// inner loops then live as long as those of the body. Conditions, bounds and scalar arguments must not
// read memory. Where the number of iterations is known only at run time, the steps outside the steady
// loop stand under conditions.
//
// A step waits for a queue if one of its instructions depends on one of another queue that an earlier
// step has issued (pipeline_emit.cc). Steady steps wait for all queues of the loop. What the loop
// depends on from outside is left to sync.
//
// A loop over blocks inside a cluster, but outside its cores, whose body loads SMEM by the cluster's
// memory core and then runs loops over the cores (tid), is pipelined alike: a step starts with a
// barrier of the cluster, the memory core loads, and the cores compute on the block before. A loop over
// cores that only copies from the body's SMEM to its other buffers, or only loads these, is a stage of its own between
// the two (`fetch`; cluster_regions makes such loops; fills of margins belong to it), and one that only stores the
// body's SMEM to GMEM is of the stage `store`. Loops in the cores' code are pipelined first.
//
// Behind that, loads that nobody needs for long go behind others (late_loads.h).
//
// Left alone, with the pragma in place: a loop of one iteration, a body with scalar code or waiting
// instructions, instructions whose order within an iteration the stages would reverse, memory outside
// the body that two stages share, memories too small for the copies, a body that uses one queue only.
// Runs after tensorize and before storage.
absl::StatusOr<bool> Pipeline(ir::Function& function, const Target& target,
                              std::vector<PipelineDecision>* decisions = nullptr);

// The pass by name (registry.h).
PassInfo PipelinePass();

}  // namespace polynao

#endif  // COMPILER_PASSES_PIPELINE_H_
