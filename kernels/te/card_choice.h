// Which of an operator's schedules a case gets on a card, and for how many of its clusters.
#ifndef KERNELS_TE_CARD_CHOICE_H_
#define KERNELS_TE_CARD_CHOICE_H_

#include "kernels/te/operator.h"

namespace polynao::kernels {

// Adds the choice `clusters` (mapping::ClusterCounts) to an operator that has Operator::schedules: its schedules become
// those for machines of fewer clusters too, which leave the others idle, and `build` takes the one that
//   OperatorCase::schedule names; else a tuned one (tuned.h); else the cost model's first.
// Of equals that for more clusters. Gives it `choose`, and `estimate` for all numbers of clusters. Errors of a schedule
// that the case names say which name or number there is not, or which memory lacks how much.
void ChooseOnCard(Operator& op);

}  // namespace polynao::kernels

#endif  // KERNELS_TE_CARD_CHOICE_H_
