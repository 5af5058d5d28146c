#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status.h"
#include "cases/build.h"
#include "cases/case_text.h"
#include "cases/explain.h"
#include "cases/machines.h"
#include "cases/run_nest.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/scalar_text.h"
#include "compiler/ir/text.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "kernels/pipelines/pipelines.h"
#include "pages/steps_page.h"
#include "tools/command_line/command_line.h"
#include "tools/driver/commands.h"

namespace polynao::driver {
namespace {

struct OptFlags {
  const CLI::App* command = nullptr;
  cases::CaseText what;  // an operator or FILE.nir
  std::string passes;
  std::string target = "diannao";
  std::string config = "mlu270";
  std::vector<std::string> overrides;
  std::string instructions;  // a table's file, or empty
  std::vector<std::string> skip;
  int stop_after = -1;
  bool check = false;
  bool print_after_all = false;
  bool stats = false;
  bool explain = false;
  bool time = false;
  uint64_t seed = 1;
  std::vector<std::string> args;  // scalars for --check: "n=-5"
  std::string html;
  std::string output;
};

// The scalars that `args` gives, by name; `module` tells the types. Errors: no '=', no such scalar
// parameter, no number of its type.
absl::StatusOr<std::map<std::string, ir::Argument>> ParseScalars(
    const std::vector<std::string>& args, const ir::Module& module) {
  std::map<std::string, ir::Argument> scalars;
  for (const std::string& arg : args) {
    const std::vector<std::string> parts = absl::StrSplit(arg, absl::MaxSplits('=', 1));
    if (parts.size() != 2) return InvalidInput("--arg ", arg, ": expected NAME=NUMBER");
    if (scalars.contains(parts[0])) {
      return InvalidInput("--arg ", arg, ": '", parts[0], "' has a value already");
    }
    bool found = false;
    for (const ir::Function& function : module.functions) {
      for (const ir::Param& param : function.params) {
        if (!param.var || param.name() != parts[0]) continue;
        found = true;
        const absl::StatusOr<ir::Argument> value = ir::ParseScalar(param.var.type(), parts[1]);
        if (!value.ok()) return WithContext(StrCat("--arg ", arg), value.status());
        scalars[parts[0]] = *value;
      }
    }
    if (!found) {
      return InvalidInput("--arg ", arg, ": no function has a scalar parameter '", parts[0], "'");
    }
  }
  return scalars;
}

// Those of `scalars` that `function` takes.
std::map<std::string, ir::Argument> ScalarsOf(const std::map<std::string, ir::Argument>& scalars,
                                              const ir::Function& function) {
  std::map<std::string, ir::Argument> own;
  for (const ir::Param& param : function.params) {
    const auto it = scalars.find(std::string(param.name()));
    if (param.var && it != scalars.end()) own.insert(*it);
  }
  return own;
}

// Errors: an option that nothing reads.
absl::Status CheckOptions(const OptFlags& flags) {
  const std::string& what = flags.what.op;
  std::string options =
      "--passes --target --skip --stop-after --check --print-after-all --stats --explain --time "
      "--html "
      "-o";
  if (flags.check || flags.stats) options += " --arg --seed";
  if (kernels::FindPipeline(what) != nullptr) {
    return command_line::CheckRead(*flags.command, what, "a pipeline", options + " --shape");
  }
  if (what.ends_with(".nir")) {
    const bool is_card = IsCard(flags.target);
    if (is_card && !flags.what.schedule.empty() && !flags.check && !flags.stats) {
      options += " --arg";
    }
    return command_line::CheckRead(
        *flags.command, what, StrCat("a function on ", flags.target),
        options + (is_card ? " --config --set --schedule --instructions" : ""));
  }
  return CheckOperatorOptions(*flags.command, what, flags.target, "compiled",
                              options + " --instructions");
}

// What --explain says of an operator's schedule on the card; nothing of one that has no choice.
absl::Status ExplainSchedules(const OptFlags& flags, const Target& target) {
  if (!IsCard(flags.target) || flags.what.op.ends_with(".nir")) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<kernels::OperatorCase> cases,
                   cases::ParseCases(flags.what, target));
  for (const kernels::OperatorCase& c : cases) {
    ASSIGN_OR_RETURN(const cases::TakenSchedule taken, cases::TakeSchedule(c, target));
    if (taken.operator_case.schedule.empty()) continue;
    ASSIGN_OR_RETURN(const cases::Explanation explanation, cases::Explain(taken, target));
    std::fprintf(stderr, "%s\n", explanation.ToText().c_str());
  }
  return absl::OkStatus();
}

// What the flags ask for of a step, on stderr.
void PrintStep(const OptFlags& flags, const PipelineOptions::Step& step) {
  if (flags.time || flags.stats) {
    std::fprintf(stderr, "%s: %s, %.3f ms\n", step.pass->name.c_str(),
                 step.changed ? "changed" : "unchanged", step.milliseconds);
    for (const std::string& text : step.stats) {
      for (absl::string_view line : absl::StrSplit(text, '\n')) {
        std::fprintf(stderr, "  %s\n", std::string(line).c_str());
      }
    }
  }
  for (const std::string& text : step.explanations) std::fputs(text.c_str(), stderr);
  if (flags.print_after_all) {
    std::fprintf(stderr, "// after %s\n%s\n", step.pass->name.c_str(),
                 ir::Print(*step.function).c_str());
  }
}

// "tensorize", or "cse(memory=1;steps=8)" as --passes has it.
std::string PassText(const PassSpec& pass) {
  std::string text;
  for (const auto& [name, value] : pass.options) {
    StrAppend(&text, text.empty() ? "" : ";", name, "=", value);
  }
  return text.empty() ? pass.name : StrCat(pass.name, "(", text, ")");
}

// The same for the page.
pages::TextStep PageStep(const OptFlags& flags, const PipelineOptions::Step& step) {
  pages::TextStep result = {.name = PassText(*step.pass),
                            .note = StrCat(step.changed ? "changed" : "unchanged", ", ",
                                           absl::StrFormat("%.3f ms", step.milliseconds)),
                            .is_bad = !step.wrong.empty(),
                            .text = ir::Print(*step.function)};
  if (flags.check) {
    result.verdict = result.is_bad ? StrCat("the meaning changed: ", step.wrong) : "same results";
  }
  for (const std::string& text : step.stats) StrAppend(&result.details, text, "\n");
  for (const std::string& text : step.explanations) result.details += text;
  return result;
}

// Makes instructions of the plain nests of FILE.nir, and says on stderr what became of them.
absl::Status MakeInstructions(const OptFlags& flags, const Target& target, ir::Module& module) {
  if (flags.what.schedule.size() > 1) return InvalidInput("expected one --schedule");
  for (ir::Function& function : module.functions) {
    absl::StatusOr<cases::NestSchedule> scheduled =
        cases::ScheduleOnCard(function, flags.what.schedule[0], flags.args, target);
    if (!scheduled.ok()) return WithContext(flags.what.op, scheduled.status());
    function = std::move(scheduled->function);
    for (const std::string& note : scheduled->notes) {
      std::fprintf(stderr, "%s: %s\n", function.name.c_str(), note.c_str());
    }
  }
  return absl::OkStatus();
}

absl::Status Opt(const OptFlags& flags) {
  RETURN_IF_ERROR(CheckOptions(flags));
  RETURN_IF_ERROR(command_line::CheckWritable("-o", flags.output));
  RETURN_IF_ERROR(command_line::CheckWritable("--html", flags.html));
  ASSIGN_OR_RETURN(isa::Machine machine, cases::LoadMachine(flags.config, flags.overrides));
  ASSIGN_OR_RETURN(Target target, MakeTarget(flags.target, &machine));
  ASSIGN_OR_RETURN(const auto instructions, UseInstructions(flags.instructions, target));
  const bool is_nest = flags.what.op.ends_with(".nir") && !flags.what.schedule.empty();
  cases::CaseText what = flags.what;
  if (is_nest) what.schedule.clear();
  ASSIGN_OR_RETURN(ir::Module module, cases::LoadFunctions(what, target));
  if (is_nest) RETURN_IF_ERROR(MakeInstructions(flags, target, module));
  std::vector<PassSpec> passes;
  if (flags.passes.empty()) {
    ASSIGN_OR_RETURN(passes, PipelineFor(target));
  } else {
    ASSIGN_OR_RETURN(passes, ParsePasses(flags.passes));
  }
  RETURN_IF_ERROR(CheckPassNames("--skip", flags.skip, passes));
  // What is written into nests is no parameter any more.
  ASSIGN_OR_RETURN(const auto scalars,
                   ParseScalars(is_nest ? std::vector<std::string>() : flags.args, module));
  if (flags.explain) RETURN_IF_ERROR(ExplainSchedules(flags, target));
  PipelineOptions options;
  options.check = flags.check;
  options.check_seed = flags.seed;
  options.skip = flags.skip;
  options.stop_after = flags.stop_after;
  options.stats = flags.stats;
  options.explain = flags.explain;
  std::vector<pages::StepsOf> page;
  options.on_step = [&](const PipelineOptions::Step& step) {
    PrintStep(flags, step);
    if (!flags.html.empty()) page.back().steps.push_back(PageStep(flags, step));
  };
  absl::Status status;
  for (ir::Function& function : module.functions) {
    if (!flags.html.empty()) {
      page.push_back(
          {std::string(function.name), {{.name = "before", .text = ir::Print(function)}}});
    }
    options.check_scalars = ScalarsOf(scalars, function);
    status = WithContext(StrCat(flags.what.op, ": function '", function.name, "'"),
                         RunPasses(function, passes, target, options));
    if (!status.ok()) break;
  }
  if (!flags.html.empty()) {
    // A page of a pass that went wrong shows what it did, one of a pass that failed what it was given.
    if (!status.ok() && !page.back().steps.back().is_bad) {
      page.back().steps.push_back({.name = "failed",
                                   .verdict = std::string(status.message()),
                                   .is_bad = true,
                                   .text = page.back().steps.back().text});
    }
    RETURN_IF_ERROR(WriteFile(
        flags.html,
        pages::StepsPage(StrCat("Passes of ", flags.what.op, " for ", flags.target), page)));
  }
  RETURN_IF_ERROR(status);
  const std::string printed = ir::Print(module);
  if (!flags.output.empty()) return WriteFile(flags.output, printed);
  std::cout << printed;
  return absl::OkStatus();
}

}  // namespace

void AddOptCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<OptFlags>();
  CLI::App* command = app.add_subcommand("opt", "run passes on loop IR and print the result");
  command
      ->add_option("FILE", flags->what.op, "a .nir file, or an operator as lowered for the target")
      ->required();
  AddCaseOptions(*command, flags->what);
  command->get_option("--schedule")
      ->description(
          "sizes taken out of the schedule's hands; FILE.nir: auto makes instructions of the card "
          "of a plain nest first (default: none)");
  command->add_option("--passes", flags->passes,
                      "passes as a,b(c=1); default: the target's pipeline");
  command->add_option("--target", flags->target, "what the passes compile for")
      ->capture_default_str();
  AddMachineOptions(*command, flags->config, flags->overrides);
  AddInstructionsOption(*command, flags->instructions);
  command->add_option("--skip", flags->skip, "passes to leave out")->delimiter(',');
  command->add_option("--stop-after", flags->stop_after, "stop after so many passes")
      ->check(CLI::Range(0, 1'000'000));
  command->add_flag("--check", flags->check,
                    "interpret before and after each pass, on random arguments of all values that "
                    "their types have, and compare the results");
  command->add_option("--arg", flags->args,
                      "a scalar for --check, --stats and --schedule: n=-5; others are drawn");
  command->add_option("--seed", flags->seed, "of the arguments for --check")->capture_default_str();
  command->add_flag("--print-after-all", flags->print_after_all,
                    "print the function after each pass, on stderr");
  command->add_flag("--stats", flags->stats, "print what each pass did, on stderr");
  command->add_flag("--explain", flags->explain,
                    "print why marked loops became no instruction, and of an operator on the card "
                    "why it has its schedule (nao run --explain), on stderr");
  command->add_flag("--time", flags->time, "print each pass's time, on stderr");
  command->add_option("--html", flags->html,
                      "write a page of the function after each pass, with what changed marked");
  command->add_option("-o", flags->output, "file to write instead of stdout");
  command->callback([&action, flags, command] {
    flags->command = command;
    action = [flags] { return Outcome{.status = Opt(*flags), .values_agree = true}; };
  });
}

}  // namespace polynao::driver
