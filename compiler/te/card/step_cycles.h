// Cycles of the vector unit for steps, as the choice of their instructions counts them.
#ifndef COMPILER_TE_CARD_STEP_CYCLES_H_
#define COMPILER_TE_CARD_STEP_CYCLES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/te/card/lane_instructions.h"
#include "compiler/te/card/steps.h"

namespace polynao::te {

// What varies along these dimensions of a domain, as (rows, elements of a row) of its last dimension; none of them is
// 0.
std::pair<int64_t, int64_t> RowsOf(const Shape& domain, const std::vector<bool>& varies);

// All steps, one after another, over the whole domain.
double CyclesOf(const Steps& steps, const LaneInstructions& instructions);

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_STEP_CYCLES_H_
