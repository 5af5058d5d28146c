// From an operator case to a function or a program.
#ifndef CASES_BUILD_H_
#define CASES_BUILD_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cases/case_text.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"
#include "kernels/library/kernel.h"
#include "kernels/operators.h"
#include "simulator/simulator.h"

namespace polynao::cases {

// The functions of a .nir file, checked; or, if what.op does not end in .nir, the operator of that
// name as its tensor expression is lowered for `target`, before any pass, with the schedule that it is run with.
absl::StatusOr<ir::Module> LoadFunctions(const CaseText& what, const Target& target);

// The DianNao program of a case: compiled from its tensor expression, leaving out the passes named
// `without`, or from kernels/library; `expert` tries some on the simulator. NotFound: there is no such
// implementation of this operator.
using BuiltProgram = kernels::HandWrittenKernel;
absl::StatusOr<BuiltProgram> BuildProgram(const kernels::OperatorCase& c, const Target& target,
                                          const std::string& impl,
                                          const std::vector<std::string>& without = {});

// The case with the schedule that takes fewest cycles on the simulated card: of the one that it gets without a search
// and `count` others, the cheapest by the cost model, those first to which it gives different cycles. The case as it
// is if its operator has no choice or `count` is 0.
absl::StatusOr<kernels::OperatorCase> SearchSchedule(const kernels::OperatorCase& c,
                                                     const Target& target, int count);

// The function of a case on `target`, after the target's passes except those named `without`. A schedule that leaves
// scalar code in place of instructions is refused on a card: of some others, the cheapest by the cost model, the first
// that leaves none is taken, or the one that leaves least.
absl::StatusOr<ir::Function> BuildFunction(const kernels::Operator& op,
                                           const kernels::OperatorCase& c, const Target& target,
                                           const std::vector<std::string>& without);

// The schedule that BuildFunction takes without `without`: the case with all choices, nothing to choose if it has none.
struct TakenSchedule {
  kernels::OperatorCase operator_case;
  kernels::ChosenSchedule::By by = kernels::ChosenSchedule::By::kModel;
  // The schedule that would have been taken, and is refused for its scalar code; empty if none is.
  kernels::ScheduleChoice refused = {};
};
absl::StatusOr<TakenSchedule> TakeSchedule(const kernels::OperatorCase& c, const Target& target);

// What the host does before the case's compiled program runs, besides `parts`; none if that is nothing.
std::optional<kernels::HostLayout> HostLayoutOf(const kernels::OperatorCase& c,
                                                const Target& target);
// Lays out inputs as the program takes them: what the host does before each run, or once if they are constants.
void PrepareTensors(const BuiltProgram& built, std::vector<ir::Tensor>& tensors);
// The part of that which the program's parameters say (isa::ProgramParam::parts).
void LayOutInParts(const isa::Program& program, std::vector<ir::Tensor>& tensors);
// What that is: "lays out F in 3 parts"; empty if nothing.
std::string HostStep(const BuiltProgram& built);

// Returns the simulator's arguments for the parameters of a program: `tensors` in their order,
// which get the shapes that the program declares, and the program's own scalars.
std::vector<simulator::Argument> ProgramArguments(const BuiltProgram& built,
                                                  std::vector<ir::Tensor>& tensors);

}  // namespace polynao::cases

#endif  // CASES_BUILD_H_
