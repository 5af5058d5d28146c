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

// What became of one loop with double buffers.
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
// whose body allocates on chip and then only runs queued instructions becomes
//
//   step s:  sync;  store(s - 2);  load(s);  compute(s - 1);  prepare(s + 1)
//
// for all s for which one of the iterations exists. The first and last steps stand alone; the steady
// ones are a loop over groups, as long as there are copies of a buffer, so that copies are buffers
// of their own and no index depends on a parity. The schedule is that of hand-written kernels
// ("three stages"; Cambricon's mlu-ops, binary_op).
//
// The stage of an instruction follows from what it touches. Loads and stores run in the io or move
// queue and bring data from GMEM or SMEM outside the body to its buffers, or back. Computation is
// what runs in the compute queue; it is `prepare` if a load of the same iteration writes behind it
// to what it wrote (the fill of a tile whose border is not loaded).
//
// Each buffer gets the fewest copies with which no step touches it from two queues: one, if only
// computation uses it; two as a rule; three, if it is loaded and stored by different queues. With
// `pragma "double_buffer" (3)`, for which there may be three, loads are issued before the stores of
// the same step. All that has more than one copy then has as many as the one that has most.
//
// A buffer under `pragma "sliding_window" (ahead)`, allocated outside of the loop, is one of which no
// iteration stores what it or one before it uses; it has no copies. With ahead >= 1 its loads are for
// later iterations, and if all loads are, they run in the step of their iteration's computation.
//
// Ifs, lets and inner loops around instructions are repeated in each stage that needs them, buffers
// of inner loops then live as long as the body's; conditions, bounds and scalar arguments must not
// read memory. Where the number of iterations is known only at run
// time, the steps outside the steady loop stand under conditions.
//
// A loop over blocks inside a cluster, but outside its cores, whose body loads SMEM by the cluster's
// memory core and then runs loops over the cores (tid), is pipelined alike: a step starts with a
// barrier over the cluster, the memory core loads, the cores compute on the block before. Loops in
// the cores' code are pipelined first.
//
// Left alone, with the pragma in place: one iteration, scalar code or waiting instructions in the
// body, instructions whose order within an iteration the stages would turn round, memory outside the
// body that two stages share, memories too small for the copies, bodies of one queue. Runs after
// tensorize and before storage.
absl::StatusOr<bool> Pipeline(ir::Function& function, const Target& target,
                              std::vector<PipelineDecision>* decisions = nullptr);

// The pass by name (registry.h).
PassInfo PipelinePass();

}  // namespace polynao

#endif  // COMPILER_PASSES_PIPELINE_H_
