// Runs a user's function of loop IR on random inputs, compares it with the interpreter unless told otherwise, and takes
// its time.
#ifndef CASES_RUN_NEST_H_
#define CASES_RUN_NEST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cases/card_run.h"
#include "cases/executable.h"
#include "cases/nest_on_card.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"
#include "isa/instruction_set.h"
#include "isa/machine.h"
#include "nlohmann/json_fwd.hpp"
#include "simulator/energy/energy.h"
#include "simulator/report.h"
#include "simulator/simulator.h"

namespace polynao::cases {

struct NestSettings {
  ExecutableOptions executable;
  // Of target diannao: the machine.
  std::string config = "mlu270";
  std::vector<std::string> overrides = {};
  // Its instructions, null: the built-in table; what its simulation records and checks (CaseSettings has the same); an
  // energy table (simulator/energy/table.h) or "".
  std::shared_ptr<const isa::InstructionSet> instructions = nullptr;
  simulator::TraceOptions trace = {};
  bool profile = false;
  bool check_hazards = true;
  std::string energy = {};
  std::string schedule = "auto";       // ScheduleFunction (schedule.h)
  std::vector<std::string> arguments;  // of all scalar parameters: "n=1000", "alpha=0.5"
  // Elements of tensors: "uniform" (uniform_tensor.h), or "exact", "finite", "all" (ir::Values).
  std::string values = "uniform";
  uint64_t seed = 1;
  // Compare the values with those of the interpreter, or of the caller's reference. Without this an index beyond its
  // buffer or a division by zero may spoil values or end the process (with a line on stderr and exit code 1), since
  // nothing has looked for them first.
  bool check_values = true;
  // Called before such a run, when all else is found to be right.
  std::function<void()> on_unchecked = [] {};
  TimingOptions timing;
};

struct NestReport {
  std::string function;
  std::vector<std::pair<std::string, std::string>> arguments;
  NestSettings settings;
  double schedule_ms = 0;
  double compile_ms = 0;
  // Nothing for cuda: the shim executes, it does not measure.
  std::optional<RunTimes> times;
  // On the card: cycles, and those that GMEM needs at least to move each tensor once.
  std::optional<int64_t> cycles, bound_cycles;
  // The run itself, and DRAM's bound besides.
  std::optional<isa::Machine> machine;
  std::optional<simulator::RunResult> simulated;
  CardBounds bounds;
  double simulate_ms = 0;
  std::optional<simulator::EnergyReport> energy;  // if a table was asked for
  // The values were compared with this: "the interpreter", "checked code on cpu". Empty if with nothing; then there is
  // a reason, "since ...".
  std::string compared_with;
  std::string not_compared_because;
  double tolerance = 0;    // of that comparison (ir::FindDisagreement)
  std::string difference;  // "" if all values agree
  std::optional<RunTimes>
      unscheduled_times;           // of --schedule=none, where interpreting would take too long
  std::vector<std::string> notes;  // what the schedule did, line by line

  bool ok() const { return difference.empty(); }
  // The object that `nao run FILE.nir --json` prints.
  nlohmann::ordered_json ToJson() const;
  std::string ToText() const;
};

// Arguments and expected values of the caller's, for a function without scalar parameters.
struct NestReference {
  ir::RandomArguments* arguments;  // at the end they hold what the function has stored
  std::string name;                // "plain loops": what NestReport::compared_with says
  std::function<void(absl::Span<const ir::Argument>)> run;
  // Within which values agree where no rule for floats is relaxed.
  double tolerance = 0;
};

// The function of `module` that is called `name`; "" finds the only one. Errors name the functions that there are;
// `file` is the module's.
absl::StatusOr<ir::Function> FindFunction(const ir::Module& module, const std::string& name,
                                          const std::string& file);

// The arguments that RunNest makes for `function`. Errors: those of RunNest about scalars, values and memory.
absl::StatusOr<ir::RandomArguments> NestArguments(const ir::Function& function,
                                                  const NestSettings& settings);

// One argument for each parameter of `function`: those of scalars have the values of `texts` ("n=1000"), those of
// buffers are empty. Errors: those of RunNest about scalars.
absl::StatusOr<std::vector<ir::Argument>> ScalarArguments(const ir::Function& function,
                                                          const std::vector<std::string>& texts);

// A function as `nao compile` and `nao opt` have it for the card: a plain nest (nest_on_card.h) by ScheduleNest, its
// scalar parameters having the values of `texts`; others as they are. So is, with a note, a nest with scalars of which
// none has a value: its loops are scalar code, for any values. `schedule`: "auto", or "none" for what stays as it is.
// Errors: another schedule; those of ScalarArguments.
absl::StatusOr<NestSchedule> ScheduleOnCard(const ir::Function& function,
                                            const std::string& schedule,
                                            const std::vector<std::string>& texts,
                                            const Target& target);

// Values that differ are no error but !ok(). Errors: a scalar parameter without a value, a value for something that is
// none or that its type does not hold, tensors that take more than half of the machine's memory, an unknown target,
// schedule or kind of values, and what stops the function.
absl::StatusOr<NestReport> RunNest(const ir::Function& function, const NestSettings& settings);

// The same on the reference's arguments, compared with the reference.
absl::StatusOr<NestReport> RunNest(const ir::Function& function, const NestReference& reference,
                                   const NestSettings& settings);

}  // namespace polynao::cases

#endif  // CASES_RUN_NEST_H_
