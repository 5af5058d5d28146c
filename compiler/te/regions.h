// Which part of a tensor a stage computes, where in its storage that lies, and what sliding windows
// compute anew.
#ifndef COMPILER_TE_REGIONS_H_
#define COMPILER_TE_REGIONS_H_

#include "absl/status/status.h"
#include "compiler/te/plan.h"

namespace polynao::te {

// Sets start, size, limits, place, store_size, below and above of `plan`, and the parts (`head`,
// `steps`) of a sliding window. The loops of all readers must be planned. Errors: a sliding window that
// does not move along one dimension by a constant step.
absl::Status FindRegion(StagePlan& plan, Plans& plans);

}  // namespace polynao::te

#endif  // COMPILER_TE_REGIONS_H_
