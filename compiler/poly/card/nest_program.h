// One program for the card of a nest's stages: stages that only one later stage reads are computed with it, on chip; the
// others are groups one after the other, whose results cross GMEM.
#ifndef COMPILER_POLY_CARD_NEST_PROGRAM_H_
#define COMPILER_POLY_CARD_NEST_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao::poly {

struct NestProgram {
  // Computes what the nest computes; parameters are the nest's, of one dimension each.
  ir::Function function;
  double cycles = 0;  // by the cost models
  bool reassociates = false;  // sums of floats are added up in another order
  // What was computed together: "S0 S1 -> x".
  std::vector<std::string> notes;
};

// `function` has no scalar parameters; `target` is an accelerator. Errors: those of FindStages and of te::CardProgram.
absl::StatusOr<NestProgram> ScheduleForCard(const ir::Function& function, const Target& target);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_NEST_PROGRAM_H_
