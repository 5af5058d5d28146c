// A user's function of loop IR on the simulated card.
#ifndef CASES_NEST_ON_CARD_H_
#define CASES_NEST_ON_CARD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"
#include "isa/instruction_set.h"
#include "isa/machine.h"
#include "isa/program.h"
#include "simulator/simulator.h"

namespace polynao::cases {

struct NestSchedule {
  ir::Function function;  // before the passes
  // The stages of each group, or why there are none.
  std::vector<std::string> notes;
  // Sums of floats are added up in another order.
  bool reassociates = false;
};

struct NestOnCard {
  std::unique_ptr<isa::Machine> machine;
  const isa::InstructionSet* instructions = nullptr;  // of the target
  ir::Function function;                              // after the passes
  isa::Program program;
  double schedule_ms = 0, compile_ms = 0;
  // NestSchedule's, and how many stores the scalar unit executes.
  std::vector<std::string> notes;
  bool reassociates = false;
};

// Stores of a function after the passes: those that are left to the scalar unit.
int64_t ScalarStores(const ir::Function& function);
// About how many elements a core's scalar unit stores: those of all stores in their loops, of which a loop whose count
// is known only at run time has eight iterations.
double StoredElements(ir::Stmt s);

// Returns true if the function says nothing of the card: no loop over threads, no pragma, no memory on chip.
bool IsPlainNest(const ir::Function& function);

// A plain nest without scalar parameters as instructions of the card, by way of poly::ScheduleForCard. What has no such
// form stays as it is, for one core's scalar unit, and a note says why. `target` is an accelerator.
absl::StatusOr<NestSchedule> ScheduleNest(const ir::Function& function, const Target& target);

// Compiles a function for the card of a machine file and its instructions (null: the built-in table), its scalar
// parameters having the values of `arguments`, one for each parameter. A function that says itself what the cores do
// stays as it is, others go through ScheduleNest.
absl::StatusOr<NestOnCard> CompileForCard(const ir::Function& function,
                                          absl::Span<const ir::Argument> arguments,
                                          const std::string& config,
                                          const std::vector<std::string>& overrides,
                                          const isa::InstructionSet* instructions = nullptr);

// The same for `target`, an accelerator, which has the machine and the instructions; NestOnCard::machine is null.
absl::StatusOr<NestOnCard> CompileForCard(const ir::Function& function,
                                          absl::Span<const ir::Argument> arguments,
                                          const Target& target);

// Simulates it as `options` say; the tensors among `arguments` hold what it has stored.
absl::StatusOr<simulator::RunResult> Simulate(const NestOnCard& nest,
                                              absl::Span<const ir::Argument> arguments,
                                              const simulator::RunOptions& options);

}  // namespace polynao::cases

#endif  // CASES_NEST_ON_CARD_H_
