#include "sweep/arguments.h"

#include <sstream>

#include "CLI/CLI.hpp"
#include "base/files.h"
#include "base/text.h"
#include "tools/command_line/command_line.h"

namespace polynao::sweep {

int RunTool(CLI::App& app, int argc, char** argv, const std::function<absl::Status()>& run) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  absl::Status status;
  if (arguments.size() == 1 && arguments[0].starts_with("@")) {
    const absl::StatusOr<std::string> text = ReadFile(arguments[0].substr(1));
    status = text.status();
    arguments.clear();
    if (text.ok()) {
      std::istringstream lines(*text);
      for (std::string line; std::getline(lines, line);) arguments.push_back(line);
    }
  }
  if (status.ok()) {
    if (const auto code = command_line::Parse(app, arguments)) return *code;
    status = run();
  }
  if (status.ok()) return 0;
  command_line::PrintError(app.get_name(), ToStd(status.message()));
  return 1;
}

}  // namespace polynao::sweep
