// Executes what a core does in a cycle: scalar instructions, issue to queues, syncs and barriers.
#ifndef SIMULATOR_REFERENCE_ISSUE_H_
#define SIMULATOR_REFERENCE_ISSUE_H_

#include "absl/status/statusor.h"
#include "simulator/reference/card.h"

namespace polynao::simulator::reference {

// Lets the core take the next step that it can take in this cycle. False: there is none. Errors: what is wrong with the
// program.
absl::StatusOr<bool> Act(Card& card, Core& core);

// Adds a span to the report, unless it is empty.
void Record(Card& card, const Span& span);

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_ISSUE_H_
