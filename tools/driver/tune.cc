#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>

#include "CLI/CLI.hpp"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/suites.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "cases/run_case.h"
#include "compiler/target/target.h"
#include "kernels/te/tuned.h"
#include "nlohmann/json.hpp"
#include "tools/command_line/command_line.h"
#include "tools/driver/commands.h"
#include "tools/driver/tune.h"

namespace polynao::driver {
namespace {

struct Trial {
  kernels::RankedSchedule schedule;
  size_t rank = 0;  // by the cost model, from 1
  cases::CaseReport report;
};

struct Search {
  kernels::OperatorCase operator_case;
  size_t candidates = 0;
  std::vector<Trial> trials;  // the fastest first
  // What the line of the fastest schedule says, if lines are asked for.
  kernels::TunedSchedule tuned;
  bool ok() const {
    return std::all_of(trials.begin(), trials.end(),
                       [](const Trial& trial) { return trial.report.ok; });
  }
};

// The fastest trial with its limit, for which the cost model's first choice among all schedules is simulated
// if it is not among the trials (--schedule).
absl::StatusOr<kernels::TunedSchedule> Tuned(const TuneFlags& flags, const kernels::Operator& op,
                                             const Search& search, const Target& target) {
  kernels::OperatorCase c = search.operator_case;
  c.schedule.clear();
  ASSIGN_OR_RETURN(const std::vector<kernels::RankedSchedule> all, op.schedules(c, target));
  c.schedule = all[0].choice;
  ASSIGN_OR_RETURN(const cases::CaseReport first, cases::RunCase(c, flags.settings));
  const Trial& best = search.trials[0];
  return kernels::TunedSchedule{
      .choice = best.schedule.choice,
      .within = kernels::TuningLimit(static_cast<double>(best.report.simulated->cycles),
                                     best.schedule.cycles,
                                     static_cast<double>(first.simulated->cycles), all[0].cycles)};
}

absl::StatusOr<Search> SearchSchedules(const TuneFlags& flags, const cases::CaseText& text,
                                       const Target& target) {
  Search search;
  ASSIGN_OR_RETURN(search.operator_case, cases::ParseCase(text, target));
  kernels::OperatorCase c = search.operator_case;
  ASSIGN_OR_RETURN(const kernels::Operator* op, kernels::FindOperator(c));
  if (!op->schedules) {
    return InvalidInput("tune: the schedule of operator ", op->name, " has nothing to choose");
  }
  ASSIGN_OR_RETURN(std::vector<kernels::RankedSchedule> schedules, op->schedules(c, target));
  search.candidates = schedules.size();
  const size_t count = std::min(schedules.size(), static_cast<size_t>(flags.top));
  for (size_t i = 0; i < count; ++i) {
    c.schedule = schedules[i].choice;
    Trial trial = {.schedule = schedules[i], .rank = i + 1, .report = {}};
    ASSIGN_OR_RETURN(trial.report, cases::RunCase(c, flags.settings));
    if (isatty(STDERR_FILENO) != 0) {
      std::fprintf(stderr, "[%zu/%zu] %s %s %s: %lld cycles\n", i + 1, count, c.op.c_str(),
                   kernels::ShapesText(c).c_str(),
                   kernels::ChoiceText(trial.schedule.choice).c_str(),
                   static_cast<long long>(trial.report.simulated->cycles));
    }
    search.trials.push_back(std::move(trial));
  }
  std::sort(search.trials.begin(), search.trials.end(), [](const Trial& a, const Trial& b) {
    return std::pair(a.report.simulated->cycles, a.rank) <
           std::pair(b.report.simulated->cycles, b.rank);
  });
  if (!flags.save.empty()) {
    ASSIGN_OR_RETURN(search.tuned, Tuned(flags, *op, search, target));
  }
  return search;
}

nlohmann::ordered_json ToJson(const Search& search) {
  const kernels::OperatorCase& c = search.operator_case;
  nlohmann::ordered_json json;
  json["op"] = c.op;
  json["shapes"] = kernels::ShapesText(c);
  json["dtype"] = std::string(ir::TypeName(c.dtype));
  json["candidates"] = search.candidates;
  json["trials"] = nlohmann::ordered_json::array();
  for (const Trial& trial : search.trials) {
    json["trials"].push_back({{"schedule", trial.schedule.choice},
                              {"rank_by_model", trial.rank},
                              {"modelled_cycles", trial.schedule.cycles},
                              {"ok", trial.report.ok},
                              {"cycles", trial.report.simulated->cycles},
                              {"bound_cycles", trial.report.bound_cycles},
                              {"dram_bound_cycles", trial.report.dram_bound_cycles},
                              {"efficiency", trial.report.efficiency()}});
  }
  return json;
}

void Print(const Search& search) {
  const kernels::OperatorCase& c = search.operator_case;
  std::printf("%s %s: %zu of %zu schedules simulated; the cost model chooses number 1\n",
              c.op.c_str(), kernels::ShapesText(c).c_str(), search.trials.size(),
              search.candidates);
  std::printf("%8s %10s %10s  %s\n", "model", "cycles", "efficiency", "schedule");
  for (const Trial& trial : search.trials) {
    std::printf("%8zu %10lld %10.3f  %s%s\n", trial.rank,
                static_cast<long long>(trial.report.simulated->cycles), trial.report.efficiency(),
                kernels::ChoiceText(trial.schedule.choice).c_str(),
                trial.report.ok ? "" : "  VALUES DIFFER");
  }
}

// The cases of a suite, or the one of the command line.
std::vector<cases::CaseText> Cases(const cases::CaseText& text) {
  const absl::StatusOr<const benchmarks::Suite*> suite = benchmarks::FindSuite(text.op);
  if (!suite.ok()) return {text};
  std::vector<cases::CaseText> cases;
  for (const benchmarks::SuiteCase& c : (*suite)->cases) {
    cases.push_back({.op = c.op, .shape = c.shape, .dtype = c.dtype, .attributes = c.attributes});
  }
  return cases;
}

absl::StatusOr<bool> Tune(const TuneFlags& flags) {
  RETURN_IF_ERROR(command_line::CheckWritable("--save", flags.save));
  if (const kernels::Pipeline* pipeline = kernels::FindPipeline(flags.text.op))
    return TunePipeline(*pipeline, flags);
  constexpr std::string_view kOfAll = "--top --config --set --seed --save --json";
  RETURN_IF_ERROR(
      benchmarks::FindSuite(flags.text.op).ok()
          ? command_line::CheckRead(*flags.command, flags.text.op, "a suite", kOfAll)
          : command_line::CheckRead(*flags.command, flags.text.op, "an operator",
                                    StrCat(kOfAll, " --shape --dtype --scalar --attr --schedule")));
  ASSIGN_OR_RETURN(isa::Machine machine,
                   cases::LoadMachine(flags.settings.config, flags.settings.overrides));
  ASSIGN_OR_RETURN(Target target, MakeTarget("diannao", &machine));
  const std::vector<cases::CaseText> cases = Cases(flags.text);
  bool ok = true;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  std::vector<std::string> lines;
  for (const cases::CaseText& text : cases) {
    ASSIGN_OR_RETURN(Search search, SearchSchedules(flags, text, target));
    ok = ok && search.ok();
    if (flags.json) {
      json.push_back(ToJson(search));
    } else {
      Print(search);
    }
    lines.push_back(kernels::TuningLine(search.operator_case, machine, search.tuned));
  }
  if (flags.json) std::cout << (cases.size() == 1 ? json[0] : json).dump(2) << std::endl;
  if (!flags.save.empty() && ok) {
    const absl::StatusOr<std::string> before = ReadFile(flags.save);
    RETURN_IF_ERROR(WriteFile(flags.save, kernels::WithScheduleLines(before.value_or(""), lines)));
  }
  return ok;
}

}  // namespace

void AddTuneCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<TuneFlags>();
  CLI::App* command = app.add_subcommand(
      "tune",
      "simulate the schedules that an operator may choose from, or time the tiles of a pipeline "
      "on this machine, and compare them");
  command
      ->add_option("OP", flags->text.op,
                   "an operator or a pipeline (nao list ops), or a suite: all its cases")
      ->required();
  AddCaseOptions(*command, flags->text);
  command->add_option("--top", flags->top, "how many, the cheapest by the cost model first")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--threads", flags->threads, "of a pipeline; default: as many as run at once")
      ->check(CLI::Range(1, 4096));
  AddMachineOptions(*command, flags->settings.config, flags->settings.overrides);
  command->add_option("--seed", flags->settings.seed, "of the inputs")->capture_default_str();
  command->add_option("--save", flags->save,
                      "write the fastest choices as a file like kernels/te/tuned.txt; of a "
                      "pipeline the fastest schedule, for nao run --schedule=FILE");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->callback([&action, flags, command] {
    flags->command = command;
    action = [flags] { return OutcomeOf(Tune(*flags)); };
  });
}

}  // namespace polynao::driver
