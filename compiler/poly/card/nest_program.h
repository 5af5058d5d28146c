// One program for the card of a nest's stages: stages that only one later group reads are computed with it, on chip;
// the others are groups one after the other, whose results cross GMEM.
#ifndef COMPILER_POLY_CARD_NEST_PROGRAM_H_
#define COMPILER_POLY_CARD_NEST_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao::poly {

struct NestProgram {
  // Computes what the nest computes; parameters are the nest's, of one dimension each.
  ir::Function function;
  double cycles = 0;          // by the cost models
  bool reassociates = false;  // sums of floats are added up in another order
  bool has_scalar_stages = false;
  // What was computed together: "S0 S1 -> x".
  std::vector<std::string> notes;
};

// About how many elements a core's scalar unit stores of a function after the target's passes. Errors: it becomes no
// program.
using CountScalarStores = std::function<absl::StatusOr<int64_t>(const ir::Function&)>;

// `function` has no scalar parameters; `target` is an accelerator. A schedule of a group that leaves scalar code is
// refused: of some others, the cheapest first, the one that leaves least is taken. Errors: those of FindStages and of
// te::CardProgram.
absl::StatusOr<NestProgram> ScheduleForCard(const ir::Function& function, const Target& target,
                                            const CountScalarStores& scalar_stores);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_NEST_PROGRAM_H_
