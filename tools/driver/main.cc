#include <iostream>

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
  AddCompareCommand(app, action);
  AddSweepCommand(app, action);
  AddAsmCommand(app, action);
  AddDisasmCommand(app, action);
  AddListCommand(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help goes to stdout with code 0; a wrong command line is wrong input.
    return app.exit(error) == 0 ? 0 : 1;
  }
  const Outcome outcome = action();
  if (!outcome.status.ok()) {
    std::cerr << "nao: " << outcome.status.message() << std::endl;
    return 1;
  }
  return outcome.values_agree ? 0 : 1;
}

}  // namespace polynao::driver
