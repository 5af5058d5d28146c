#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "base/files.h"
#include "base/status.h"
#include "compiler/poly/calculator.h"
#include "tools/driver/commands.h"

namespace polynao::driver {
namespace {

struct PolyFlags {
  std::string file;
  std::string eval;
  unsigned long max_operations = poly::CalculatorOptions().max_operations;
  std::string output;
};

absl::Status Poly(const PolyFlags& flags) {
  if (flags.file.empty() == flags.eval.empty()) {
    return InvalidInput("poly: expected a file or --eval EXPR, found ",
                        flags.file.empty() ? "neither" : "both");
  }
  poly::CalculatorOptions options;
  options.max_operations = flags.max_operations;
  std::string text = flags.eval;
  if (!flags.file.empty()) {
    if (!absl::EndsWith(flags.file, ".poly")) {
      return InvalidInput("poly: expected FILE.poly, found '", flags.file, "'");
    }
    ASSIGN_OR_RETURN(text, ReadFile(flags.file));
    options.name = flags.file;
  }
  ASSIGN_OR_RETURN(const std::string printed, poly::Evaluate(text, options));
  if (!flags.output.empty()) return WriteFile(flags.output, printed);
  std::cout << printed;
  return absl::OkStatus();
}

}  // namespace

void AddPolyCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<PolyFlags>();
  CLI::App* command =
      app.add_subcommand("poly", "compute with integer sets and affine maps (docs/polyhedral.md)");
  command->add_option("FILE", flags->file, "a script of statements, FILE.poly");
  command->add_option("--eval", flags->eval, "statements: 'card { S(i) : 0 <= i < n }'");
  command
      ->add_option("--max-operations", flags->max_operations,
                   "what isl may do for a statement; 0: no limit")
      ->capture_default_str();
  command->add_option("-o", flags->output, "file to write instead of stdout");
  command->callback([&action, flags] {
    action = [flags] { return Outcome{.status = Poly(*flags), .values_agree = true}; };
  });
}

}  // namespace polynao::driver
