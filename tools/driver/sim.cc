#include <memory>

#include "CLI/CLI.hpp"
#include "tools/driver/commands.h"
#include "tools/simulate/simulate.h"

namespace polynao::driver {

void AddSimCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<simulate::Flags>();
  CLI::App* command = app.add_subcommand("sim", "simulate a tensor-ISA program on random inputs");
  simulate::AddOptions(*command, *flags);
  command->callback(
      [&action, flags] { action = [flags] { return Outcome{simulate::Simulate(*flags)}; }; });
}

}  // namespace polynao::driver
