// Command lines of the small tools that rules run.
#ifndef SWEEP_ARGUMENTS_H_
#define SWEEP_ARGUMENTS_H_

#include <functional>

#include "absl/status/status.h"

namespace CLI {
class App;
}  // namespace CLI

namespace polynao::sweep {

// Parses the command line, in which a single @FILE stands for the lines of that file, and runs the tool. Returns the
// exit code; an error is one line on stderr that begins with the tool's name.
int RunTool(CLI::App& app, int argc, char** argv, const std::function<absl::Status()>& run);

}  // namespace polynao::sweep

#endif  // SWEEP_ARGUMENTS_H_
