#include "CLI/CLI.hpp"
#include "base/text.h"
#include "tools/command_line/command_line.h"
#include "tools/driver/commands.h"

namespace polynao::driver {

int Main(int argc, char** argv) {
  CLI::App app(
      "Polynao: a tensor compiler and the cycle-accurate model of a DianNao-class accelerator.\n"
      "`./nao test` runs all tests; the other commands:",
      "nao");
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  Action action;
  AddDemoCommand(app, action);
  AddRunCommand(app, action);
  AddBenchCommand(app, action);
  AddTuneCommand(app, action);
  AddCompileCommand(app, action);
  AddOptCommand(app, action);
  AddPolyCommand(app, action);
  AddSimCommand(app, action);
  AddCheckCommand(app, action);
  AddCompareCommand(app, action);
  AddCyclesCommand(app, action);
  AddSweepCommand(app, action);
  AddAsmCommand(app, action);
  AddDisasmCommand(app, action);
  AddListCommand(app, action);
  if (const auto code = command_line::Parse(app, {argv + 1, argv + argc})) return *code;
  const Outcome outcome = action();
  if (!outcome.status.ok()) {
    command_line::PrintError("nao", ToStd(outcome.status.message()));
    return 1;
  }
  return outcome.values_agree ? 0 : 1;
}

}  // namespace polynao::driver
