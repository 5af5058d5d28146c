// Which of an operator's schedules a case gets on a card, and for how many of its clusters.
#ifndef KERNELS_TE_CARD_CHOICE_H_
#define KERNELS_TE_CARD_CHOICE_H_

#include <cstdint>
#include <vector>

#include "isa/machine.h"
#include "kernels/te/operator.h"

namespace polynao::kernels {

// How many clusters schedules may use: all, and those below of 1 to 8, 12, 16, 24, 32, ... Each cluster loads the
// weights of its own rows, and the smaller its share is, the more of its loads other clusters make too: where GMEM is
// the limit, fewer clusters are faster. A larger card has the counts of a smaller one, so that it is no slower.
std::vector<int64_t> ClusterCounts(const isa::Machine& machine);

// Adds the choice `clusters` to an operator that has Operator::schedules: its schedules become those for machines of
// fewer clusters too, which leave the others idle, and `build` takes the one that
//   OperatorCase::schedule names; else a tuned one (tuned.h); else the cost model's first.
// Of equals that for more clusters. Gives it `choose`, and `estimate` for all numbers of clusters. Errors of a schedule
// that the case names say which name or number there is not, or which memory lacks how much.
void ChooseOnCard(Operator& op);

}  // namespace polynao::kernels

#endif  // KERNELS_TE_CARD_CHOICE_H_
