#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>

#include "base/status.h"
#include "tools/driver/case.h"
#include "tools/driver/commands.h"

namespace polynao::driver {
namespace {

struct TuneFlags {
  CaseText text;
  CaseSettings settings;
  int top = 16;
  bool json = false;
};

struct Trial {
  kernels::ScheduleChoice choice;
  size_t rank = 0;  // by the cost model, from 1
  CaseReport report;
};

absl::StatusOr<bool> Tune(const TuneFlags& flags) {
  if (flags.top < 1) return InvalidInput("--top: expected 1 or more, found ", flags.top);
  ASSIGN_OR_RETURN(kernels::OperatorCase c, ParseCase(flags.text));
  ASSIGN_OR_RETURN(const kernels::Operator* op, kernels::FindOperator(c));
  ASSIGN_OR_RETURN(isa::Machine machine,
                   LoadMachine(flags.settings.config, flags.settings.overrides));
  ASSIGN_OR_RETURN(Target target, MakeTarget("diannao", &machine));
  if (!op->schedules) {
    return InvalidInput("tune: the schedule of operator ", op->name, " has nothing to choose");
  }
  ASSIGN_OR_RETURN(std::vector<kernels::ScheduleChoice> choices, op->schedules(c, target));
  const size_t count = std::min(choices.size(), static_cast<size_t>(flags.top));
  std::vector<Trial> trials;
  bool ok = true;
  for (size_t i = 0; i < count; ++i) {
    c.schedule = choices[i];
    Trial trial = {.choice = choices[i], .rank = i + 1, .report = {}};
    ASSIGN_OR_RETURN(trial.report, RunCase(c, flags.settings));
    ok = ok && trial.report.ok;
    if (isatty(STDERR_FILENO) != 0) {
      std::fprintf(stderr, "[%zu/%zu] %s: %lld cycles\n", i + 1, count,
                   kernels::ChoiceText(trial.choice).c_str(),
                   static_cast<long long>(trial.report.simulated->cycles));
    }
    trials.push_back(std::move(trial));
  }
  std::sort(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) {
    return std::pair(a.report.simulated->cycles, a.rank) <
           std::pair(b.report.simulated->cycles, b.rank);
  });
  if (flags.json) {
    nlohmann::ordered_json json;
    json["op"] = c.op;
    json["shapes"] = kernels::ShapesText(c);
    json["dtype"] = std::string(ir::TypeName(c.dtype));
    json["config"] = machine.name;
    json["candidates"] = choices.size();
    json["trials"] = nlohmann::ordered_json::array();
    for (const Trial& trial : trials) {
      json["trials"].push_back({{"schedule", trial.choice},
                                {"rank_by_model", trial.rank},
                                {"ok", trial.report.ok},
                                {"cycles", trial.report.simulated->cycles},
                                {"bound_cycles", trial.report.bound_cycles},
                                {"efficiency", trial.report.efficiency()}});
    }
    std::cout << json.dump(2) << std::endl;
    return ok;
  }
  std::printf("%s %s: %zu of %zu schedules simulated; the cost model chooses number 1\n",
              c.op.c_str(), kernels::ShapesText(c).c_str(), trials.size(), choices.size());
  std::printf("%8s %10s %10s  %s\n", "model", "cycles", "efficiency", "schedule");
  for (const Trial& trial : trials) {
    std::printf("%8zu %10lld %10.3f  %s%s\n", trial.rank,
                static_cast<long long>(trial.report.simulated->cycles), trial.report.efficiency(),
                kernels::ChoiceText(trial.choice).c_str(),
                trial.report.ok ? "" : "  VALUES DIFFER");
  }
  return ok;
}

}  // namespace

void AddTuneCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<TuneFlags>();
  CLI::App* command = app.add_subcommand(
      "tune", "simulate the schedules that an operator may choose from, and compare them");
  command->add_option("OP", flags->text.op, "an operator (nao list ops)")->required();
  AddCaseOptions(*command, flags->text)->required();
  command->add_option("--top", flags->top, "how many, the cheapest by the cost model first")
      ->capture_default_str();
  command->add_option("--config", flags->settings.config, "the machine: a name or a .toml file")
      ->capture_default_str();
  command->add_option("--set", flags->settings.overrides,
                      "machine parameters: core.nmem_kib=256 ...");
  command->add_option("--seed", flags->settings.seed, "of the inputs")->capture_default_str();
  command->add_flag("--json", flags->json, "print one JSON object");
  command->callback([&action, flags] {
    action = [flags] {
      const absl::StatusOr<bool> ok = Tune(*flags);
      return Outcome{.status = ok.status(), .values_agree = ok.ok() && *ok};
    };
  });
}

}  // namespace polynao::driver
