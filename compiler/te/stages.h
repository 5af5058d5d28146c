// The stages that a schedule's outputs need, in the order in which they are computed.
#ifndef COMPILER_TE_STAGES_H_
#define COMPILER_TE_STAGES_H_

#include "absl/status/status.h"
#include "compiler/te/plan.h"
#include "compiler/te/schedule.h"

namespace polynao::te {

// Inlines what is to be inlined, makes a plan in `plans` (empty so far) for each stage that an output
// still needs, and resolves ComputeAt, StoreAt and InPlace. Errors: a place that is not inside of all
// readers' loops, or is no leaf axis; an in-place computation that would read what it overwrites.
absl::Status PlanStages(const Schedule& schedule, Plans& plans);

}  // namespace polynao::te

#endif  // COMPILER_TE_STAGES_H_
