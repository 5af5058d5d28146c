#include <iostream>
#include <memory>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "cases/compare_programs.h"
#include "cases/machines.h"
#include "tools/driver/commands.h"

namespace polynao::driver {
namespace {

struct CompareFlags {
  std::string config = "mlu270";
  std::vector<std::string> overrides;
  cases::ComparisonSettings settings;
};

absl::StatusOr<bool> Compare(CompareFlags& flags) {
  ASSIGN_OR_RETURN(flags.settings.machine, cases::LoadMachine(flags.config, flags.overrides));
  ASSIGN_OR_RETURN(const cases::Comparison comparison, cases::ComparePrograms(flags.settings));
  std::cout << comparison.Text();
  return comparison.ok();
}

}  // namespace

void AddCompareCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<CompareFlags>();
  cases::ComparisonSettings& settings = flags->settings;
  CLI::App* command = app.add_subcommand(
      "compare", "compare a program of nao compile --name with others: values and cycles");
  command->add_option("PROGRAM", settings.compiled, "NAME.json, beside NAME.bin")->required();
  command->add_option("--with", settings.others, "NAME.json of another program (may be repeated)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--reference", settings.reference,
                    "compare values with the operator's reference");
  command->add_option("--source", settings.source,
                      "compare values with what the interpreter makes of this .nir file");
  command->add_option("--gpu-results", settings.gpu_results, "lines that gpu_runner wrote");
  command
      ->add_option("--max-error", settings.max_error,
                   "largest difference of a value (default: what the operator allows)")
      ->check(CLI::Range(0.0, 1e308));
  command
      ->add_option("--min-speedup", settings.min_speedup,
                   "least time of each other program / time of this one")
      ->check(CLI::Range(0.0, 1e308));
  command->add_option("--max-cycles", settings.max_cycles, "most cycles of this program")
      ->check(CLI::Range(int64_t{0}, INT64_MAX));
  AddMachineOptions(*command, flags->config, flags->overrides);
  command->add_option("--seed", settings.seed, "of the inputs")->capture_default_str();
  command->callback([&action, flags] { action = [flags] { return OutcomeOf(Compare(*flags)); }; });
}

}  // namespace polynao::driver
