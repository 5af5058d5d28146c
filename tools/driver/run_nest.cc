#include "cases/run_nest.h"

#include <iostream>

#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "cases/machines.h"
#include "compiler/ir/text.h"
#include "compiler/target/target.h"
#include "nlohmann/json.hpp"
#include "simulator/page/report_page.h"
#include "simulator/timeline.h"
#include "simulator/trace.h"
#include "tools/command_line/command_line.h"
#include "tools/driver/commands.h"
#include "tools/driver/run.h"

namespace polynao::driver {

absl::Status CheckThreads(const RunFlags& flags) {
  const std::string& target = flags.nest.executable.target;
  const TargetFacts* facts = FindTarget(target);
  if (flags.nest.executable.threads == 0 || (facts != nullptr && facts->has_threads)) {
    return absl::OkStatus();
  }
  return InvalidInput(
      "--threads is of parallel loops on the CPU: expected --target=cpu, found --target=", target);
}

absl::Status ReadCardFlags(const RunFlags& flags, cases::NestSettings& nest) {
  nest.config = flags.settings.config;
  nest.overrides = flags.settings.overrides;
  nest.energy = flags.settings.energy;
  nest.check_hazards = !flags.no_hazards;
  nest.profile = !flags.report.empty();
  nest.trace.enabled = !flags.trace.empty() || !flags.timeline.empty() || nest.profile;
  const std::string& target = nest.executable.target;
  const char* option = !flags.trace.empty()      ? "--trace"
                       : !flags.timeline.empty() ? "--timeline"
                       : !flags.report.empty()   ? "--report"
                       : !nest.energy.empty()    ? "--energy"
                       : flags.no_hazards        ? "--no-hazards"
                                                 : nullptr;
  if (option != nullptr && !IsCard(target)) {
    return InvalidInput(
        option, " is of a simulated card: expected --target=diannao, found --target=", target);
  }
  RETURN_IF_ERROR(command_line::CheckPicture("--timeline", flags.timeline));
  RETURN_IF_ERROR(command_line::CheckWritable("--trace", flags.trace));
  RETURN_IF_ERROR(command_line::CheckWritable("--report", flags.report));
  if (flags.instructions.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const isa::Machine machine, cases::LoadMachine(nest.config, nest.overrides));
  ASSIGN_OR_RETURN(Target card, MakeTarget(target, &machine));
  ASSIGN_OR_RETURN(nest.instructions, UseInstructions(flags.instructions, card));
  return absl::OkStatus();
}

absl::Status WritePictures(const RunFlags& flags, const simulator::RunResult& run) {
  if (!flags.trace.empty()) {
    RETURN_IF_ERROR(WriteFile(flags.trace, simulator::TraceJson(run)));
  }
  if (!flags.timeline.empty()) {
    RETURN_IF_ERROR(WriteFile(flags.timeline, simulator::TimelineFile(run, flags.timeline)));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> WriteAndPrint(const cases::NestReport& report, const RunFlags& flags) {
  if (report.simulated) {
    RETURN_IF_ERROR(WritePictures(flags, *report.simulated));
    if (!flags.report.empty()) {
      const std::string title = StrCat(report.function, " on ", report.machine->name);
      RETURN_IF_ERROR(WriteFile(
          flags.report, simulator::ReportPage(title, report.ToJson(),
                                              {simulator::TimelineSvg(*report.simulated)})));
    }
  }
  return Print(report, flags);
}

bool Print(const cases::NestReport& report, const RunFlags& flags) {
  if (flags.json) {
    std::cout << report.ToJson().dump(2) << std::endl;
  } else {
    std::cout << report.ToText() << std::flush;
  }
  return report.ok();
}

absl::StatusOr<bool> RunFile(RunFlags& flags) {
  const std::string& file = flags.text.op;
  RETURN_IF_ERROR(command_line::CheckRead(
      *flags.command, file, "a function",
      "--function --arg --values --target --config --set --schedule --threads "
      "--contract --reassociate --reciprocal --dots "
      "--instructions --trace --timeline --report --energy --no-hazards "
      "--seed --no-check --json"));
  RETURN_IF_ERROR(CheckThreads(flags));
  if (flags.text.schedule.size() > 1) {
    return InvalidInput("run ", file, ": expected one --schedule, found ",
                        absl::StrJoin(flags.text.schedule, ", "));
  }
  if (!flags.text.schedule.empty()) flags.nest.schedule = flags.text.schedule[0];
  RETURN_IF_ERROR(ReadCardFlags(flags, flags.nest));
  flags.nest.check_values = !flags.no_check;
  flags.nest.seed = flags.settings.seed;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  ASSIGN_OR_RETURN(const ir::Module module, ir::ParseModule(text, file));
  ASSIGN_OR_RETURN(const ir::Function function, cases::FindFunction(module, flags.function, file));
  flags.nest.on_unchecked = [&] {
    std::cerr << "nao: " << file << ": --no-check: no index and no divisor of '" << function.name
              << "' is checked" << std::endl;
  };
  absl::StatusOr<cases::NestReport> report = cases::RunNest(function, flags.nest);
  if (!report.ok()) return WithContext(file, report.status());
  return WriteAndPrint(*report, flags);
}

}  // namespace polynao::driver
