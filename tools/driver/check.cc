// nao check: what will go wrong with a program's waits and barriers, without running it.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "CLI/CLI.hpp"
#include "base/files.h"
#include "base/status.h"
#include "cases/build.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "cases/nest_on_card.h"
#include "cases/run_nest.h"
#include "compiler/ir/text.h"
#include "compiler/target/target.h"
#include "isa/check/check.h"
#include "isa/program.h"
#include "kernels/te/operator.h"
#include "tools/command_line/command_line.h"
#include "tools/driver/commands.h"
#include "tools/simulate/simulate.h"

namespace polynao::driver {
namespace {

struct CheckFlags {
  const CLI::App* command = nullptr;
  cases::CaseText what;  // a program, FILE.nir, or an operator
  std::string function;
  std::string impl = "compiled";
  std::string config = "mlu270";
  std::vector<std::string> overrides;
  std::vector<std::string> arguments;
};

struct Checked {
  isa::Program program;
  isa::CheckedArguments arguments;
};

// What --arg says of a program's parameters; those that it leaves out may have any value.
absl::StatusOr<isa::CheckedArguments> ArgumentsOf(const CheckFlags& flags,
                                                  const isa::Program& program) {
  ASSIGN_OR_RETURN(auto values, simulate::ParseArguments(flags.arguments));
  isa::CheckedArguments arguments;
  for (const isa::ProgramParam& param : program.params) {
    std::optional<int64_t>& scalar = arguments.scalars.emplace_back();
    std::optional<int64_t>& bytes = arguments.tensor_bytes.emplace_back();
    const auto it = values.find(param.name);
    if (it == values.end() || param.is_temporary) continue;
    if (param.is_tensor) {
      ASSIGN_OR_RETURN(const std::vector<int64_t> shape, kernels::ParseShape(it->second));
      if (!param.any_shape && shape != param.shape) {
        return InvalidInput("--arg ", param.name, ": the program gives the tensor its shape");
      }
      bytes = ir::ByteSize(param.type);
      for (const int64_t extent : shape) *bytes *= extent;
    } else {
      ASSIGN_OR_RETURN(scalar, simulate::ScalarValue(param, it->second));
    }
    values.erase(it);
  }
  if (!values.empty()) {
    return InvalidInput(flags.what.op, ": the program has no parameter '", values.begin()->first,
                        "'");
  }
  std::vector<int64_t> scalars;
  bool has_all = true;
  for (size_t i = 0; i < program.params.size(); ++i) {
    has_all = has_all && (program.params[i].is_tensor || arguments.scalars[i]);
    scalars.push_back(arguments.scalars[i].value_or(0));
  }
  if (has_all) RETURN_IF_ERROR(isa::CheckAssertions(program, scalars));
  return arguments;
}

absl::StatusOr<Checked> OfProgram(const CheckFlags& flags) {
  RETURN_IF_ERROR(
      command_line::CheckRead(*flags.command, flags.what.op, "a program", "--arg --config --set"));
  Checked checked;
  ASSIGN_OR_RETURN(checked.program, simulate::LoadProgram(flags.what.op));
  ASSIGN_OR_RETURN(checked.arguments, ArgumentsOf(flags, checked.program));
  return checked;
}

absl::StatusOr<Checked> OfFunction(const CheckFlags& flags) {
  const std::string& file = flags.what.op;
  RETURN_IF_ERROR(command_line::CheckRead(*flags.command, file, "a function",
                                          "--function --arg --config --set"));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  ASSIGN_OR_RETURN(const ir::Module module, ir::ParseModule(text, file));
  ASSIGN_OR_RETURN(const ir::Function function, cases::FindFunction(module, flags.function, file));
  cases::NestSettings settings;
  settings.arguments = flags.arguments;
  const absl::StatusOr<ir::RandomArguments> arguments = cases::NestArguments(function, settings);
  if (!arguments.ok()) return WithContext(file, arguments.status());
  absl::StatusOr<cases::NestOnCard> nest =
      cases::CompileForCard(function, arguments->arguments(), flags.config, flags.overrides);
  if (!nest.ok()) return WithContext(file, nest.status());
  return Checked{.program = std::move(nest->program), .arguments = {}};
}

absl::StatusOr<Checked> OfOperator(const CheckFlags& flags, const Target& target) {
  RETURN_IF_ERROR(
      CheckOperatorOptions(*flags.command, flags.what.op, "diannao", flags.impl, "--impl"));
  ASSIGN_OR_RETURN(const kernels::OperatorCase c, cases::ParseCase(flags.what, target));
  ASSIGN_OR_RETURN(cases::BuiltProgram built, cases::BuildProgram(c, target, flags.impl));
  return Checked{.program = std::move(built.program),
                 .arguments = {.scalars = {built.scalars.begin(), built.scalars.end()}}};
}

// False: something will go wrong.
absl::StatusOr<bool> Check(const CheckFlags& flags) {
  ASSIGN_OR_RETURN(const isa::Machine machine, cases::LoadMachine(flags.config, flags.overrides));
  ASSIGN_OR_RETURN(const Target target, MakeTarget("diannao", &machine));
  const std::string& what = flags.what.op;
  const bool is_program =
      what.find('.') != std::string::npos || std::filesystem::is_regular_file(what);
  ASSIGN_OR_RETURN(const Checked checked, what.ends_with(".nir") ? OfFunction(flags)
                                          : is_program           ? OfProgram(flags)
                                                                 : OfOperator(flags, target));
  const auto start = std::chrono::steady_clock::now();
  const isa::ProgramCheck check =
      isa::CheckProgram(*target.instructions, checked.program, machine, checked.arguments);
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  for (const isa::ProgramFinding& finding : check.findings) {
    const bool is_undecided = finding.kind == isa::ProgramFinding::Kind::kUndecided;
    std::printf("%s%s\n", is_undecided ? "cannot decide: " : "", finding.text.c_str());
  }
  if (check.holds()) {
    std::printf(
        "program %s on %s: no missing wait, no missed barrier, no deadlock; %lld instructions "
        "followed in %.2f ms\n",
        checked.program.name.c_str(), machine.name.c_str(), static_cast<long long>(check.steps),
        ms);
  }
  return check.ToStatus(checked.program).ok();
}

}  // namespace

void AddCheckCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* command = app.add_subcommand(
      "check", "say what will go wrong with a program's waits and barriers, without running it");
  command
      ->add_option("WHAT", flags->what.op,
                   "a program, assembly in a .nasm file, a function in a .nir file, or an operator")
      ->required();
  AddCaseOptions(*command, flags->what);
  AddMachineOptions(*command, flags->config, flags->overrides);
  command->add_option("--arg", flags->arguments,
                      "name=value of a scalar (of a program: else any value), name=5x7 of a "
                      "program's tensor of any shape");
  command->add_option("--function", flags->function, "of a .nir file with several");
  command->add_option("--impl", flags->impl, "of an operator: compiled, library or expert")
      ->capture_default_str();
  command->callback([&action, flags, command] {
    flags->command = command;
    action = [flags] { return OutcomeOf(Check(*flags)); };
  });
}

}  // namespace polynao::driver
