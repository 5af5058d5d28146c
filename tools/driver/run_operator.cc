#include <cstdio>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "cases/build.h"
#include "cases/case_text.h"
#include "cases/explain.h"
#include "cases/machines.h"
#include "cases/run_case.h"
#include "compiler/target/target.h"
#include "kernels/te/tuned.h"
#include "nlohmann/json.hpp"
#include "simulator/energy/energy_json.h"
#include "simulator/page/report_page.h"
#include "simulator/timeline.h"
#include "tools/command_line/command_line.h"
#include "tools/driver/commands.h"
#include "tools/driver/run.h"

namespace polynao::driver {
namespace {

std::string ValuesText(const cases::CaseReport& report) {
  if (!report.settings.check_values) return "values not checked";
  if (report.ok) return "values agree";
  return StrCat("VALUES DIFFER, by up to ", report.max_abs_error, ": ", report.difference);
}

void PrintReport(const cases::CaseReport& report) {
  std::printf("%s %s %s on %s (%s): %s\n", report.operator_case.op.c_str(),
              kernels::ShapesText(report.operator_case).c_str(),
              std::string(ir::TypeName(report.operator_case.dtype)).c_str(),
              report.settings.target.c_str(), report.settings.impl.c_str(),
              ValuesText(report).c_str());
  if (report.simulated) {
    const std::string dram =
        report.machine->has_dram() ? StrCat(", bound of DRAM ", report.dram_bound_cycles) : "";
    const std::string by = report.bound_by.empty() ? "" : StrCat(" (", report.bound_by, ")");
    std::printf("  cycles %lld, bound %lld%s%s, efficiency %.3f, instructions %lld\n",
                static_cast<long long>(report.simulated->cycles),
                static_cast<long long>(report.bound_cycles), by.c_str(), dram.c_str(),
                report.efficiency(), static_cast<long long>(report.simulated->instruction_count()));
    if (!report.host_step.empty()) {
      std::printf("  before it, not in the cycles, the host %s\n", report.host_step.c_str());
    }
    std::printf("  compiled in %.2f ms, simulated in %.2f ms\n", report.compile_ms,
                report.simulate_ms);
    if (report.energy) std::printf("%s", simulator::EnergyText(*report.energy).c_str());
  } else if (report.by_shim) {
    std::printf(
        "  executed on this CPU, by the shim of CUDA's execution model, in %.2f ms (no time of "
        "a GPU); compiled in %.2f ms\n",
        report.simulate_ms, report.compile_ms);
  } else if (report.time_ns) {
    std::printf("  time %.0f ns, compiled in %.2f ms\n", *report.time_ns, report.compile_ms);
  }
}

std::string PageTitle(const RunFlags& flags, const cases::CaseReport& report) {
  const kernels::OperatorCase& c = report.operator_case;
  const std::string what = flags.text.table_case ? StrCat("case ", *flags.text.table_case)
                                                 : StrCat(kernels::ShapesText(c), " ",
                                                          std::string(ir::TypeName(c.dtype)));
  return StrCat(c.op, " ", what, " on ", report.machine->name, " (", report.settings.impl, ")");
}

// Errors: --explain or --save-schedule for what has no schedule of the card.
absl::Status CheckScheduleOptions(const RunFlags& flags) {
  const char* option = flags.explain                 ? "--explain"
                       : flags.save_schedule.empty() ? nullptr
                                                     : "--save-schedule";
  if (option == nullptr) return absl::OkStatus();
  if (!IsCard(flags.settings.target)) {
    return InvalidInput(
        "run ", flags.text.op, ": ", option,
        " is of the card: expected --target=diannao, found --target=", flags.settings.target);
  }
  if (flags.settings.impl == "compiled") return absl::OkStatus();
  return InvalidInput(
      "run ", flags.text.op, ": ", option,
      " is of compiled programs: expected --impl=compiled, found --impl=", flags.settings.impl);
}

absl::Status SaveSchedule(const std::string& file, const kernels::OperatorCase& c,
                          const isa::Machine& machine) {
  if (file.empty()) return absl::OkStatus();
  if (c.schedule.empty()) {
    return InvalidInput("--save-schedule: operator ", c.op, " ", kernels::ShapesText(c),
                        " has no schedule to choose");
  }
  const absl::StatusOr<std::string> before = ReadFile(file);
  return WriteFile(file, kernels::WithScheduleLines(
                             before.value_or(""), {kernels::ScheduleLine(c, machine, c.schedule)}));
}

}  // namespace

absl::StatusOr<bool> RunOperator(RunFlags& flags) {
  RETURN_IF_ERROR(CheckOperatorOptions(
      *flags.command, flags.text.op, flags.settings.target, flags.settings.impl,
      "--target --impl --seed --no-check --timing-only --json --trace "
      "--timeline --report --no-hazards --energy --explain --save-schedule --instructions"));
  RETURN_IF_ERROR(CheckScheduleOptions(flags));
  if (!flags.has_shape && !flags.text.table_case) {
    return InvalidInput("run: expected --shape or --case");
  }
  ASSIGN_OR_RETURN(const isa::Machine machine,
                   cases::LoadMachine(flags.settings.config, flags.settings.overrides));
  ASSIGN_OR_RETURN(Target target, MakeTarget(flags.settings.target, &machine));
  ASSIGN_OR_RETURN(flags.settings.instructions, UseInstructions(flags.instructions, target));
  ASSIGN_OR_RETURN(const std::vector<kernels::OperatorCase> cases,
                   cases::ParseCases(flags.text, target));
  RETURN_IF_ERROR(command_line::CheckPicture("--timeline", flags.timeline));
  RETURN_IF_ERROR(command_line::CheckWritable("--trace", flags.trace));
  RETURN_IF_ERROR(command_line::CheckWritable("--report", flags.report));
  RETURN_IF_ERROR(command_line::CheckWritable("--save-schedule", flags.save_schedule));
  if (cases.size() > 1 && (!flags.trace.empty() || !flags.timeline.empty())) {
    return InvalidInput(
        "run ", flags.text.op, ": --trace and --timeline show one program, and case ",
        *flags.text.table_case, " has ", cases.size(), ": expected --report, which shows all");
  }
  RETURN_IF_ERROR(CheckSearch(flags.text, flags.settings.target, flags.settings.impl));
  flags.settings.profile = !flags.report.empty();
  flags.settings.trace.enabled =
      !flags.trace.empty() || !flags.timeline.empty() || flags.settings.profile;
  flags.settings.check_hazards = !flags.no_hazards;
  flags.settings.check_values = !flags.no_check;
  bool ok = true;
  nlohmann::ordered_json functions = nlohmann::ordered_json::array();
  std::string title;
  std::vector<std::string> timelines;  // for the page
  std::vector<cases::CaseReport> reports;
  std::vector<std::string> explanations;  // of each, or none
  for (const kernels::OperatorCase& c : cases) {
    ASSIGN_OR_RETURN(kernels::OperatorCase chosen,
                     cases::SearchSchedule(c, target, flags.text.search));
    std::optional<cases::Explanation> explanation;
    if (flags.explain || !flags.save_schedule.empty()) {
      // What is explained is what is run: the case names all choices from here on.
      ASSIGN_OR_RETURN(cases::TakenSchedule taken, cases::TakeSchedule(chosen, target));
      if (flags.text.search > 0) taken.by = kernels::ChosenSchedule::By::kSearch;
      chosen = taken.operator_case;
      if (flags.explain) {
        ASSIGN_OR_RETURN(explanation, cases::Explain(taken, target));
      }
    }
    ASSIGN_OR_RETURN(cases::CaseReport report, cases::RunCase(chosen, flags.settings));
    if (report.simulated) RETURN_IF_ERROR(WritePictures(flags, *report.simulated));
    RETURN_IF_ERROR(SaveSchedule(flags.save_schedule, chosen, machine));
    functions.push_back(report.ToJson());
    if (explanation) {
      explanation->simulated = report.simulated->cycles;
      functions.back()["explanation"] = explanation->ToJson();
      explanations.push_back(explanation->ToText());
    }
    if (!flags.report.empty()) {
      title = PageTitle(flags, report);
      timelines.push_back(simulator::TimelineSvg(*report.simulated));
    }
    ok = ok && report.ok;
    reports.push_back(std::move(report));
  }
  // A case of the table is one object, whose functions have one each.
  nlohmann::ordered_json json = functions[0];
  if (flags.text.table_case) {
    json = {{"op", cases[0].op},
            {"case", *flags.text.table_case},
            {"ok", !reports[0].settings.check_values ? nlohmann::ordered_json()
                                                     : nlohmann::ordered_json(ok)},
            {"values_checked", reports[0].settings.check_values},
            {"functions", functions}};
  }
  if (!flags.report.empty()) {
    RETURN_IF_ERROR(WriteFile(flags.report, simulator::ReportPage(title, json, timelines)));
  }
  if (flags.json) {
    std::cout << json.dump(2) << std::endl;
  } else {
    for (const cases::CaseReport& report : reports) PrintReport(report);
    for (const std::string& text : explanations) std::printf("\n%s", text.c_str());
  }
  return ok;
}

}  // namespace polynao::driver
