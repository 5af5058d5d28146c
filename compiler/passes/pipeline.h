// pipeline: loads, computation and stores of neighbouring iterations run at the same time.
#ifndef COMPILER_PASSES_PIPELINE_H_
#define COMPILER_PASSES_PIPELINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// What became of one loop with double buffers.
struct PipelineDecision {
  std::string loop;
  bool pipelined;
  std::string reason;  // why not
};

// Software pipelining over the IO and compute queues, with two copies of each buffer. A serial loop
//
//   for (t, 0, n) { pragma "double_buffer" { allocate X ... load(t) into X; compute(t); store(t) } }
//
// whose body allocates on chip and then only calls instructions (loads from GMEM, then computation,
// then stores to GMEM) becomes, with step s's copy of each buffer X being X0 for even s, else X1,
//
//   step s = 0 .. n + 1:  sync;  store(s - 2) if s >= 2;  load(s) if s < n;  compute(s - 1) if 1 <= s <= n
//
// The first and last steps stand alone; the steady ones are a loop over pairs, so that copies are
// buffers of their own and no index depends on a parity. A store precedes the load into the same copy
// in one in-order queue; one sync of all queues per step orders everything else.
// The schedule is that of hand-written kernels ("three stages"; Cambricon's mlu-ops, binary_op).
//
// Left alone, with the pragma in place: loops whose iteration count is not a constant of 2 or more,
// bodies with anything but such calls, tensors that are both loaded and stored, memories too small for
// two copies. Runs after tensorize and before storage.
absl::StatusOr<bool> Pipeline(ir::Function& function, const Target& target,
                              std::vector<PipelineDecision>* decisions = nullptr);

}  // namespace polynao

#endif  // COMPILER_PASSES_PIPELINE_H_
