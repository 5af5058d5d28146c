#include "tools/command_line/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <limits>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text.h"

namespace polynao::command_line {
namespace {

// "" if `text` is a number of the type that CLI11 names so, else what was expected.
std::string ExpectedNumber(std::string_view type, const std::string& text) {
  type = type.substr(0, type.find(':'));  // without the name of a validator
  // SimpleAtoi and SimpleAtod skip blanks around the number.
  const bool is_plain =
      !text.empty() &&
      std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::isspace(c) != 0; });
  uint64_t whole = 0;
  int64_t integer = 0;
  double number = 0;
  if (type == "UINT") {
    if (is_plain && absl::SimpleAtoi(text, &whole)) return "";
    return StrCat("an integer from 0 to ", std::numeric_limits<uint64_t>::max());
  }
  if (type == "INT") return is_plain && absl::SimpleAtoi(text, &integer) ? "" : "an integer";
  if (type == "FLOAT") {
    return is_plain && absl::SimpleAtod(text, &number) && std::isfinite(number) ? "" : "a number";
  }
  return "";
}

// CLI11 reads "-1" as a large number without sign, and "5x" of some types.
absl::Status CheckNumbers(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& text : option->results()) {
      const std::string expected = ExpectedNumber(option->get_type_name(), text);
      if (!expected.empty()) {
        return InvalidInput(option->get_name(), ": expected ", expected, ", found '", text, "'");
      }
    }
  }
  return absl::OkStatus();
}

// Null if there is none of that name.
const CLI::App* FindCommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

std::string CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return absl::StrJoin(names, ", ");
}

}  // namespace

void PrintError(std::string_view name, std::string_view message) {
  std::string line(message);
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) {
    line.pop_back();
  }
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
  std::cerr << name << ": " << line << std::endl;
}

std::optional<int> Parse(CLI::App& app, std::vector<std::string> arguments) {
  const bool has_commands = !app.get_subcommands({}).empty();
  const std::string first = arguments.empty() ? "" : arguments[0];
  if (has_commands && !first.starts_with('-')) {
    if (first.empty()) {
      PrintError(app.get_name(), StrCat("expected a command; there are: ", CommandNames(app)));
      return 1;
    }
    if (FindCommand(app, first) == nullptr) {
      PrintError(app.get_name(),
                 StrCat("no command is named '", first, "'; there are: ", CommandNames(app)));
      return 1;
    }
  }
  const auto fail = [&](const CLI::App* command, std::string_view message) {
    PrintError(app.get_name(), command == nullptr ? std::string(message)
                                                  : StrCat(command->get_name(), ": ", message));
    return 1;
  };
  const CLI::App* command = FindCommand(app, first);
  // CLI11 takes them from the back.
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(arguments);
  } catch (const CLI::Success& help) {
    return app.exit(help) == 0 ? 0 : 1;
  } catch (const CLI::ParseError& error) {
    // A value that is no number has an error of CLI11's words.
    const absl::Status numbers = CheckNumbers(command == nullptr ? app : *command);
    return fail(command, numbers.ok() ? std::string_view(error.what()) : ToStd(numbers.message()));
  }
  const absl::Status numbers = CheckNumbers(command == nullptr ? app : *command);
  if (!numbers.ok()) return fail(command, ToStd(numbers.message()));
  return std::nullopt;
}

std::set<std::string> Given(const CLI::App& command) {
  std::set<std::string> given;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() > 0) given.insert(option->get_name());
  }
  return given;
}

absl::Status CheckRead(const CLI::App& command, std::string_view what, std::string_view use,
                       std::string_view options) {
  const std::set<std::string> read = absl::StrSplit(ToAbsl(options), ' ', absl::SkipEmpty());
  for (const std::string& option : Given(command)) {
    if (!option.starts_with('-') || read.contains(option)) continue;
    return InvalidInput(command.get_name(), " ", what, ": ", option, " is not for ", use,
                        ", which has ", absl::StrJoin(read, ", "));
  }
  return absl::OkStatus();
}

absl::Status CheckWritable(std::string_view option, const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::error_code error;
  const std::filesystem::path file(path);
  if (std::filesystem::is_directory(file, error)) {
    return InvalidInput(option, ": ", path, " can not be written: it is a folder");
  }
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  if (!std::filesystem::is_directory(folder, error)) {
    return InvalidInput(option, ": ", path, " can not be written: there is no folder ", folder);
  }
  const bool exists = std::filesystem::exists(file, error);
  const bool is_special = exists && !std::filesystem::is_regular_file(file, error);
  // A regular file is replaced by another one, so its folder counts.
  if (access(is_special ? path.c_str() : folder.c_str(), W_OK) != 0) {
    return InvalidInput(option, ": ", path, " can not be written: no permission");
  }
  return absl::OkStatus();
}

absl::Status CheckFolder(std::string_view option, const std::string& path) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(path, error).lexically_normal();
  while (!std::filesystem::exists(folder, error) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  if (!path.empty() && std::filesystem::is_directory(folder, error) &&
      access(folder.c_str(), W_OK) == 0) {
    return absl::OkStatus();
  }
  return InvalidInput(option, ": ", path, " can not be made: ", folder.string(),
                      " is no folder that can be written");
}

absl::Status CheckPicture(std::string_view option, const std::string& path) {
  if (path.empty() || path.ends_with(".svg") || path.ends_with(".html")) {
    return CheckWritable(option, path);
  }
  return InvalidInput(option, ": expected a name that ends in .svg or .html, found '", path, "'");
}

}  // namespace polynao::command_line
