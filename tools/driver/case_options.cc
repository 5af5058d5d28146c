#include <algorithm>
#include <set>

#include "CLI/CLI.hpp"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "cases/case_text.h"
#include "compiler/target/target.h"
#include "isa/table_file.h"
#include "tools/command_line/command_line.h"
#include "tools/driver/commands.h"

namespace polynao::driver {

void AddMachineOptions(CLI::App& command, std::string& config,
                       std::vector<std::string>& overrides) {
  command.add_option("--config", config, "the machine: a name or a .toml file")
      ->capture_default_str();
  command.add_option("--set", overrides, "machine parameters: core.nmem_kib=256 ...");
}

void AddInstructionsOption(CLI::App& command, std::string& file) {
  command.add_option("--instructions", file,
                     "of the card: a file with rows for the built-in instruction table, or with a "
                     "table of its own");
}

absl::StatusOr<std::shared_ptr<const isa::InstructionSet>> UseInstructions(const std::string& file,
                                                                           Target& target) {
  if (file.empty()) return nullptr;
  if (!IsCard(target.name)) {
    return InvalidInput("--instructions is of the card: expected --target=diannao, found --target=",
                        target.name);
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const isa::InstructionSet> set, isa::LoadTableFile(file));
  target.instructions = set.get();
  return set;
}

CLI::Option* AddCaseOptions(CLI::App& command, cases::CaseText& text) {
  CLI::Option* shape = command.add_option(
      "--shape", text.shape, "of an operator's inputs: 255x27x27, or 56x56x256,128x3x3x256");
  command.add_option("--dtype", text.dtype,
                     "element type of the inputs; default: the first of f16, f32, .. that operator "
                     "and target have");
  command.add_option("--scalar", text.scalar,
                     "the number that an operator takes (adds, ..., leaky_relu, clip)");
  command
      .add_option("--attr", text.attributes,
                  "attributes of an operator (nao list ops): --attr stride=2 --attr pad=0")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      .add_option(
          "--schedule", text.schedule,
          "choices taken out of the compiler's hands, 'rows=7 columns=14', or a file with a line "
          "for the case (nao run --save-schedule, nao tune --save)")
      ->expected(1)
      ->allow_extra_args(false)  // or else a text in [ ] would be a list
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--case", text.table_case,
                     "a case of the TOPI table by its number, instead of a shape (nao list cases)");
  command.add_flag("--untuned", text.untuned,
                   "choose the schedule by the cost model even if a search has found one");
  return shape;
}

absl::Status CheckOperatorOptions(const CLI::App& command, const std::string& op,
                                  const std::string& target, const std::string& impl,
                                  const std::string& others) {
  constexpr std::string_view kOfCases = " --shape --dtype --scalar --attr --case --schedule";
  constexpr std::string_view kOfCard = " --config --set --untuned --search";
  RETURN_IF_ERROR(
      command_line::CheckRead(command, op, "an operator", StrCat(others, kOfCases, kOfCard)));
  const std::set<std::string> given = command_line::Given(command);
  for (const char* option : {"--config", "--set", "--untuned", "--search", "--schedule", "--impl",
                             "--asm", "--record-error", "--trace", "--timeline", "--report",
                             "--no-hazards", "--energy", "--instructions"}) {
    if (!given.contains(option)) continue;
    if (!IsCard(target)) {
      return InvalidInput(command.get_name(), " ", op, ": ", option,
                          " is of the card: expected --target=diannao, found --target=", target);
    }
    const std::string_view name = option;
    const bool is_of_compiler = name == "--untuned" || name == "--schedule" || name == "--search";
    if (is_of_compiler && impl != "compiled") {
      return InvalidInput(
          command.get_name(), " ", op, ": ", option,
          " is of compiled programs: expected --impl=compiled, found --impl=", impl);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPassNames(std::string_view option, const std::vector<std::string>& names,
                            absl::Span<const PassSpec> passes) {
  for (const std::string& name : names) {
    const bool is_known = std::any_of(passes.begin(), passes.end(),
                                      [&](const PassSpec& pass) { return pass.name == name; });
    if (is_known) continue;
    return InvalidInput(option, ": no pass that runs is named '", name, "'; there are: ",
                        absl::StrJoin(passes, ", ", [](std::string* out, const PassSpec& pass) {
                          out->append(pass.name);
                        }));
  }
  return absl::OkStatus();
}

absl::Status CheckSearch(const cases::CaseText& text, std::string_view target,
                         std::string_view impl) {
  if (text.search == 0) return absl::OkStatus();
  if (!IsCard(target)) {
    return InvalidInput(
        "--search simulates programs of the card: expected --target=diannao, found --target=",
        target);
  }
  if (impl != "compiled") {
    return InvalidInput(
        "--search is among compiled programs: expected --impl=compiled, found --impl=", impl);
  }
  if (text.op.find('.') != std::string::npos) {
    return InvalidInput("--search is among the schedules of an operator: expected its name, found ",
                        text.op);
  }
  return absl::OkStatus();
}

void AddSearchOption(CLI::App& command, cases::CaseText& text) {
  command
      .add_option("--search", text.search,
                  "of an operator on the card: simulate as many schedules, the cheapest by the "
                  "cost model, and take the fastest")
      ->check(CLI::Range(1, 1'000'000));
}

}  // namespace polynao::driver
