// The commands of `nao`. Each one adds itself to the command line; its function runs after parsing.
#ifndef TOOLS_DRIVER_COMMANDS_H_
#define TOOLS_DRIVER_COMMANDS_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cases/case_text.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "isa/instruction_set.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace polynao::driver {

// An outcome is what a command found: an error, or whether its values agree with the reference
// (exit code 0 or 1).
struct Outcome {
  absl::Status status;
  bool values_agree = true;
};
// Of a command that returns whether its values agree.
inline Outcome OutcomeOf(const absl::StatusOr<bool>& agree) {
  return {.status = agree.status(), .values_agree = agree.ok() && *agree};
}
// The function of the command that was chosen.
using Action = std::function<Outcome()>;

// Adds the options --shape, --dtype, --scalar, --attr and --schedule; returns the first.
CLI::Option* AddCaseOptions(CLI::App& command, cases::CaseText& text);
// Adds --config and --set.
void AddMachineOptions(CLI::App& command, std::string& config, std::vector<std::string>& overrides);
// Adds --instructions, the file of an instruction table in place of the built-in one.
void AddInstructionsOption(CLI::App& command, std::string& file);
// Loads it into `target`, if `file` is not empty; the table is null else and must outlive the target.
absl::StatusOr<std::shared_ptr<const isa::InstructionSet>> UseInstructions(const std::string& file,
                                                                           Target& target);
// An error if an option was given that an operator's case on `target`, by `impl` ("compiled", "library", "expert" or
// "assembly"), has no use for; `others` are the command's own options that it has.
absl::Status CheckOperatorOptions(const CLI::App& command, const std::string& op,
                                  const std::string& target, const std::string& impl,
                                  const std::string& others);

// The suites that `nao bench` runs (bench.cc).
struct SuiteText {
  std::string_view name;
  std::string_view doc;  // one line
};
std::vector<SuiteText> SuiteTexts();

// An error if one of `names`, the passes to leave out that `option` gives, is none of `passes`.
absl::Status CheckPassNames(std::string_view option, const std::vector<std::string>& names,
                            absl::Span<const PassSpec> passes);

// Adds --search, and checks that it was given for what it is for, if it was.
void AddSearchOption(CLI::App& command, cases::CaseText& text);
absl::Status CheckSearch(const cases::CaseText& text, std::string_view target,
                         std::string_view impl);

// One of these adds a command.
using AddCommand = void (*)(CLI::App& app, Action& action);
void AddListCommand(CLI::App& app, Action& action);
void AddOptCommand(CLI::App& app, Action& action);
void AddRunCommand(CLI::App& app, Action& action);
void AddCompileCommand(CLI::App& app, Action& action);
void AddSimCommand(CLI::App& app, Action& action);
void AddCheckCommand(CLI::App& app, Action& action);
void AddAsmCommand(CLI::App& app, Action& action);
void AddDisasmCommand(CLI::App& app, Action& action);
void AddDemoCommand(CLI::App& app, Action& action);
void AddBenchCommand(CLI::App& app, Action& action);
void AddPolyCommand(CLI::App& app, Action& action);
void AddCompareCommand(CLI::App& app, Action& action);
void AddCyclesCommand(CLI::App& app, Action& action);
void AddSweepCommand(CLI::App& app, Action& action);
void AddTuneCommand(CLI::App& app, Action& action);
void AddCalibrateCommand(CLI::App& app, Action& action);

// A whole program that has these commands: parses the command line, runs the command, prints "nao: MESSAGE" for an
// error. Returns the exit code: 0 only if all went well and values agree, else 1.
int Main(int argc, char** argv, absl::Span<const AddCommand> commands);

}  // namespace polynao::driver

#endif  // TOOLS_DRIVER_COMMANDS_H_
