// The command lines of all tools share these: errors of one line, exact numbers, options that something reads, outputs
// that can be written.
#ifndef TOOLS_COMMAND_LINE_COMMAND_LINE_H_
#define TOOLS_COMMAND_LINE_COMMAND_LINE_H_

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
}  // namespace CLI

namespace polynao::command_line {

// Parses the arguments after the program's name. None: go on. Otherwise the exit code to end with: 0 after help, which
// goes to standard output, 1 after an error, of which standard error has one line: "nao: run: --seed: expected an
// integer from 0 to 18446744073709551615, found '-1'".
std::optional<int> Parse(CLI::App& app, std::vector<std::string> arguments);

// Prints "NAME: MESSAGE" on standard error, as one line.
void PrintError(std::string_view name, std::string_view message);

// The options of `command` that were given ("--seed", "PROGRAM"), in alphabetical order.
std::set<std::string> Given(const CLI::App& command);

// An error if an option was given that nothing reads: "run harris: --dtype is not for a pipeline, which
// has --schedule, --shape". `what` is what was asked for ("harris"), `use` what that is ("a pipeline"); `options` are
// those of the use, separated by blanks, without positional ones.
absl::Status CheckRead(const CLI::App& command, std::string_view what, std::string_view use,
                       std::string_view options);

// An error unless WriteFile can write the file, which an empty name is not asked for; before any work is done for it.
absl::Status CheckWritable(std::string_view option, const std::string& path);

// The same of a folder that MakeDirectory makes if there is none.
absl::Status CheckFolder(std::string_view option, const std::string& path);

// A picture is .svg or .html, by its name.
absl::Status CheckPicture(std::string_view option, const std::string& path);

}  // namespace polynao::command_line

#endif  // TOOLS_COMMAND_LINE_COMMAND_LINE_H_
