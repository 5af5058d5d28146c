#include "sweep/arguments.h"

#include <algorithm>
#include <iostream>
#include <sstream>

#include "base/files.h"

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
    // CLI11 takes them from the back.
    std::reverse(arguments.begin(), arguments.end());
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? 0 : 1;
    }
    status = run();
  }
  if (status.ok()) return 0;
  std::cerr << app.get_name() << ": " << status.message() << std::endl;
  return 1;
}

}  // namespace polynao::sweep
