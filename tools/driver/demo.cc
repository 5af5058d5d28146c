#include <unistd.h>

#include <cstdio>
#include <memory>

#include "CLI/CLI.hpp"
#include "base/files.h"
#include "base/status.h"
#include "cases/run_case.h"
#include "compiler/target/target.h"
#include "simulator/timeline.h"
#include "simulator/trace.h"
#include "tools/command_line/command_line.h"
#include "tools/driver/commands.h"

namespace polynao::driver {
namespace {

struct DemoRow {
  const char* label;
  const char* target;
  const char* impl;
};

constexpr DemoRow kRows[] = {
    {"compiled for the card", "diannao", "compiled"},
    {"hand-written for the card", "diannao", "library"},
    {"compiled by LLVM", "cpu", "compiled"},
    {"compiled by way of C", "c", "compiled"},
    {"interpreted", "interp", "compiled"},
};

absl::StatusOr<bool> Demo(const std::string& directory) {
  RETURN_IF_ERROR(command_line::CheckFolder("-o", directory));
  RETURN_IF_ERROR(MakeDirectory(directory));
  const bool show_progress = isatty(STDERR_FILENO) != 0;
  bool all_agree = true;
  std::string picture;
  std::string trace;
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{255, 27, 27}, {127, 55, 55}, {255, 55, 55, 7}}) {
    const kernels::OperatorCase c = {.op = "add", .shape = shape, .dtype = ir::Type::kF16};
    std::printf("\nadd of f16 %s: a shape that nothing divides\n\n",
                kernels::ShapeText(shape).c_str());
    std::printf("  %-26s %10s %10s %10s %12s  %s\n", "implementation", "cycles", "bound",
                "efficiency", "time", "values");
    for (const DemoRow& row : kRows) {
      if (show_progress) std::fprintf(stderr, "  %s ...\r", row.label);
      cases::CaseSettings settings;
      settings.target = row.target;
      settings.impl = row.impl;
      const bool draw = picture.empty() && IsCard(settings.target);
      settings.trace.enabled = draw;
      ASSIGN_OR_RETURN(cases::CaseReport report, cases::RunCase(c, settings));
      all_agree = all_agree && report.ok;
      const char* values = report.ok ? "agree" : "DIFFER";
      if (report.simulated) {
        const double microseconds =
            static_cast<double>(report.simulated->cycles) / report.machine->clock_ghz() / 1000;
        std::printf("  %-26s %10lld %10lld %10.3f %9.1f us  %s\n", row.label,
                    static_cast<long long>(report.simulated->cycles),
                    static_cast<long long>(report.bound_cycles), report.efficiency(), microseconds,
                    values);
      } else {
        std::printf("  %-26s %10s %10s %10s %9.1f us  %s\n", row.label, "", "", "",
                    *report.time_ns / 1000, values);
      }
      std::fflush(stdout);
      if (draw) {
        picture = StrCat(directory, "/timeline.html");
        trace = StrCat(directory, "/trace.json");
        for (const std::string& path : {picture, StrCat(directory, "/timeline.svg")}) {
          RETURN_IF_ERROR(WriteFile(path, simulator::TimelineFile(*report.simulated, path)));
        }
        RETURN_IF_ERROR(WriteFile(trace, simulator::TraceJson(*report.simulated)));
      }
    }
  }
  std::printf(
      "\nCard times are simulated at the card's clock; the others are this machine's.\n"
      "The first run's timeline: %s (and timeline.svg); its trace, for ui.perfetto.dev: %s\n",
      picture.c_str(), trace.c_str());
  return all_agree;
}

}  // namespace

void AddDemoCommand(CLI::App& app, Action& action) {
  auto directory = std::make_shared<std::string>("nao-demo");
  CLI::App* command = app.add_subcommand(
      "demo", "one operator on every target: a table, a trace and a picture of the timeline");
  command->add_option("-o", *directory, "directory for trace and picture")->capture_default_str();
  command->callback(
      [&action, directory] { action = [directory] { return OutcomeOf(Demo(*directory)); }; });
}

}  // namespace polynao::driver
