#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>

#include "base/files.h"
#include "base/status.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "cases/run_case.h"
#include "simulator/timeline.h"
#include "simulator/trace.h"
#include "tools/driver/commands.h"

namespace polynao::driver {
namespace {

struct RunFlags {
  cases::CaseText text;
  cases::CaseSettings settings;
  bool no_hazards = false;
  std::string trace;
  std::string timeline;
  bool has_shape = false;
  bool json = false;
};

void PrintReport(const cases::CaseReport& report) {
  std::printf("%s %s %s on %s (%s): %s\n", report.operator_case.op.c_str(),
              kernels::ShapesText(report.operator_case).c_str(),
              std::string(ir::TypeName(report.operator_case.dtype)).c_str(),
              report.settings.target.c_str(), report.settings.impl.c_str(),
              report.ok ? "values agree"
                        : StrCat("VALUES DIFFER, by up to ", report.max_abs_error).c_str());
  if (report.simulated) {
    std::printf("  cycles %lld, bound %lld, efficiency %.3f, instructions %lld\n",
                static_cast<long long>(report.simulated->cycles),
                static_cast<long long>(report.bound_cycles), report.efficiency(),
                static_cast<long long>(report.simulated->instruction_count()));
    if (!report.host_step.empty()) {
      std::printf("  before it, not in the cycles, the host %s\n", report.host_step.c_str());
    }
    std::printf("  compiled in %.2f ms, simulated in %.2f ms\n", report.compile_ms,
                report.simulate_ms);
  } else if (report.by_shim) {
    std::printf(
        "  executed on this CPU, by the shim of CUDA's execution model, in %.2f ms (no time of "
        "a GPU); compiled in %.2f ms\n",
        report.simulate_ms, report.compile_ms);
  } else if (report.time_ns) {
    std::printf("  time %.0f ns, compiled in %.2f ms\n", *report.time_ns, report.compile_ms);
  }
}

absl::Status WriteTraces(const RunFlags& flags, const cases::CaseReport& report) {
  if (!flags.trace.empty()) {
    RETURN_IF_ERROR(WriteFile(flags.trace, simulator::TraceJson(*report.simulated)));
  }
  if (!flags.timeline.empty()) {
    const bool html = flags.timeline.ends_with(".html");
    RETURN_IF_ERROR(WriteFile(flags.timeline, html ? simulator::TimelineHtml(*report.simulated)
                                                   : simulator::TimelineSvg(*report.simulated)));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RunAll(RunFlags& flags) {
  if (!flags.has_shape && !flags.text.table_case) {
    return InvalidInput("run: expected --shape or --case");
  }
  ASSIGN_OR_RETURN(const isa::Machine machine,
                   cases::LoadMachine(flags.settings.config, flags.settings.overrides));
  ASSIGN_OR_RETURN(const Target target, cases::MakeTarget(flags.settings.target, &machine));
  ASSIGN_OR_RETURN(const std::vector<kernels::OperatorCase> cases,
                   cases::ParseCases(flags.text, target));
  if (flags.settings.target != "diannao" && (!flags.trace.empty() || !flags.timeline.empty())) {
    return InvalidInput(
        "--trace and --timeline show a simulated card: expected --target=diannao, "
        "found --target=",
        flags.settings.target);
  }
  flags.settings.trace.enabled = !flags.trace.empty() || !flags.timeline.empty();
  flags.settings.check_hazards = !flags.no_hazards;
  bool ok = true;
  nlohmann::ordered_json functions = nlohmann::ordered_json::array();
  for (const kernels::OperatorCase& c : cases) {
    ASSIGN_OR_RETURN(const cases::CaseReport report, cases::RunCase(c, flags.settings));
    RETURN_IF_ERROR(WriteTraces(flags, report));
    if (flags.json) {
      functions.push_back(report.ToJson());
    } else {
      PrintReport(report);
    }
    ok = ok && report.ok;
  }
  if (!flags.json) return ok;
  // A case of the table is one object, whose functions have one each.
  nlohmann::ordered_json json = functions[0];
  if (flags.text.table_case) {
    json = {{"op", cases[0].op},
            {"case", *flags.text.table_case},
            {"ok", ok},
            {"functions", functions}};
  }
  std::cout << json.dump(2) << std::endl;
  return ok;
}

}  // namespace

void AddRunCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command =
      app.add_subcommand("run", "compile an operator, run it, compare it with its reference");
  command->add_option("OP", flags->text.op, "an operator (nao list ops)")->required();
  CLI::Option* shape = AddCaseOptions(*command, flags->text);
  command
      ->add_option("--target", flags->settings.target,
                   "diannao, cpu, c, cuda (by a shim, on the CPU) or interp")
      ->capture_default_str();
  command->add_option("--impl", flags->settings.impl, "compiled, or hand-written: library, expert")
      ->capture_default_str();
  command->add_option("--config", flags->settings.config, "the machine: a name or a .toml file")
      ->capture_default_str();
  command->add_option("--set", flags->settings.overrides,
                      "machine parameters: core.nmem_kib=256 ...");
  command->add_option("--seed", flags->settings.seed, "of the inputs")->capture_default_str();
  command->add_option("--trace", flags->trace, "write a Chrome/Perfetto trace (JSON)");
  command->add_option("--timeline", flags->timeline, "write a picture (.svg or .html)");
  command->add_flag("--no-hazards", flags->no_hazards,
                    "simulate without checks of hazards and definedness");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->callback([&action, flags, shape] {
    flags->has_shape = shape->count() > 0;
    action = [flags] {
      const absl::StatusOr<bool> ok = RunAll(*flags);
      return Outcome{.status = ok.status(), .values_agree = ok.ok() && *ok};
    };
  });
}

}  // namespace polynao::driver
