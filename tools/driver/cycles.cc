#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <thread>

#include "CLI/CLI.hpp"
#include "base/files.h"
#include "base/status.h"
#include "benchmarks/cycles.h"
#include "benchmarks/model_check.h"
#include "benchmarks/nest_cycles.h"
#include "benchmarks/suites.h"
#include "tools/command_line/command_line.h"
#include "tools/driver/commands.h"

namespace polynao::driver {
namespace {

struct CyclesFlags {
  std::vector<std::string> suites;
  benchmarks::CyclesSettings settings;
  bool untuned = false;
  std::vector<std::string> compared;  // two files
  int model = 0;                      // how many schedules of each case; 0: cycles alone
  std::vector<std::string> schedule;
  std::string json;
};

absl::StatusOr<std::vector<benchmarks::CaseCycles>> ReadCycles(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::StatusOr<std::vector<benchmarks::CaseCycles>> cases = benchmarks::ParseCycles(text);
  if (!cases.ok()) return InvalidInput(path, ": ", cases.status().message());
  return cases;
}

absl::StatusOr<bool> Cycles(CyclesFlags flags) {
  if (!flags.compared.empty()) {
    ASSIGN_OR_RETURN(const auto before, ReadCycles(flags.compared[0]));
    ASSIGN_OR_RETURN(const auto after, ReadCycles(flags.compared[1]));
    const benchmarks::CyclesComparison comparison = benchmarks::CompareCycles(before, after);
    std::cout << comparison.report;
    for (const std::string& line : comparison.worse) std::cout << "worse: " << line << "\n";
    std::cout << std::flush;
    return comparison.worse.empty();
  }
  if (flags.model == 0 && !flags.schedule.empty()) {
    return InvalidInput("--schedule: it says which schedules --model simulates");
  }
  if (flags.suites.empty()) return InvalidInput("cycles: expected suites, or --compare");
  if (flags.settings.values && flags.suites != std::vector<std::string>{benchmarks::kTopiSuite}) {
    return InvalidInput("--values: expected ", benchmarks::kTopiSuite, " alone");
  }
  RETURN_IF_ERROR(command_line::CheckWritable("--json", flags.json));
  flags.settings.use_tuned = !flags.untuned;
  if (isatty(fileno(stderr)) != 0) {
    flags.settings.on_case = [](int done, int total, const benchmarks::CaseCycles& c) {
      std::fprintf(stderr, "%d of %d: %s\n", done, total, c.Key().c_str());
    };
  }
  std::vector<benchmarks::ModelCheck> checks;
  std::vector<benchmarks::CaseCycles> all;
  for (const std::string& name : flags.suites) {
    if (name == benchmarks::kTopiSuite && flags.model == 0) {
      ASSIGN_OR_RETURN(const auto cases, benchmarks::MeasureTopiCycles(flags.settings));
      std::fprintf(stderr, "%s: %s\n", name.c_str(), benchmarks::SummaryText(cases).c_str());
      all.insert(all.end(), cases.begin(), cases.end());
      continue;
    }
    if (name == benchmarks::kNestSuite && flags.model == 0) {
      ASSIGN_OR_RETURN(const auto cases, benchmarks::MeasureNestCycles(flags.settings));
      all.insert(all.end(), cases.begin(), cases.end());
      continue;
    }
    ASSIGN_OR_RETURN(const benchmarks::Suite* suite, benchmarks::FindSuite(name));
    if (flags.model > 0) {
      ASSIGN_OR_RETURN(const auto of_suite,
                       benchmarks::CheckModel(*suite, flags.schedule, flags.model, flags.settings));
      checks.insert(checks.end(), of_suite.begin(), of_suite.end());
      continue;
    }
    ASSIGN_OR_RETURN(auto cases, benchmarks::MeasureCycles(*suite, flags.settings));
    all.insert(all.end(), cases.begin(), cases.end());
  }
  const std::string text =
      flags.model > 0 ? benchmarks::ModelText(checks) : benchmarks::CyclesText(all);
  if (flags.json.empty()) {
    std::cout << text << std::flush;
  } else {
    RETURN_IF_ERROR(WriteFile(flags.json, text));
  }
  return true;
}

}  // namespace

void AddCyclesCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<CyclesFlags>();
  flags->settings.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  CLI::App* command = app.add_subcommand(
      "cycles", "simulated cycles and bounds of suites, as a file; or compare two such files");
  CLI::Option* suites = command->add_option(
      "SUITE", flags->suites, "suites of compiled programs (nao list suites), topi511, or nests");
  command
      ->add_option("--compare", flags->compared,
                   "two files, the older one first: means, sums, what changed; exit code 1 if a "
                   "case is slower by more than 1 %")
      ->expected(2)
      ->excludes(suites);
  command
      ->add_option("--model", flags->model,
                   "compare the cost model with the simulator on so many schedules of each case, "
                   "drawn at random")
      ->check(CLI::Range(2, 1'000'000))
      ->excludes("--compare");
  command->add_option("--schedule", flags->schedule,
                      "--model: only schedules with these sizes: stream=1");
  command->add_option("--filter", flags->settings.filter, "only cases with this in their names");
  command
      ->add_flag("--values", flags->settings.values,
                 "topi511: compare values, too, at shapes that a simulation with values can take")
      ->excludes("--compare")
      ->excludes("--model");
  command->add_flag("--untuned", flags->untuned,
                    "choose schedules by the cost model even if a search has found some");
  AddMachineOptions(*command, flags->settings.config, flags->settings.overrides);
  command
      ->add_option("--jobs", flags->settings.jobs,
                   "cases at a time (default: the hardware's threads)")
      ->check(CLI::Range(1, 4096));
  command->add_option("--json", flags->json, "write the file here instead of stdout");
  command->callback([&action, flags] { action = [flags] { return OutcomeOf(Cycles(*flags)); }; });
}

}  // namespace polynao::driver
