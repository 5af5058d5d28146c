#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>

#include "CLI/CLI.hpp"
#include "base/files.h"
#include "base/status.h"
#include "benchmarks/suites.h"
#include "cases/build.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "cases/run_nest.h"
#include "compiler/target/target.h"
#include "sweep/analysis.h"
#include "sweep/page.h"
#include "sweep/run.h"
#include "sweep/table.h"
#include "tools/command_line/command_line.h"
#include "tools/driver/commands.h"

namespace polynao::driver {
namespace {

struct SweepFlags {
  const CLI::App* command = nullptr;
  cases::CaseText text;           // its operator may be a suite or FILE.nir
  std::vector<std::string> args;  // scalars of FILE.nir: "n=1000"
  sweep::Setting setting;
  std::vector<std::string> axes;
  std::vector<std::string> tables;  // files
  std::vector<std::string> impls = {"compiled"};
  std::string filter;
  std::string metrics;
  std::optional<int> jobs;
  std::string directory;
};

bool IsFile(const SweepFlags& flags) { return flags.text.op.ends_with(".nir"); }

// The functions of a file, each with the scalars that it has.
absl::StatusOr<std::vector<sweep::Entry>> FunctionsOf(const SweepFlags& flags,
                                                      const Target& target) {
  ASSIGN_OR_RETURN(const ir::Module module, cases::LoadFunctions(flags.text, target));
  std::vector<sweep::Entry> entries;
  for (const ir::Function& function : module.functions) {
    if (function.name.find(flags.filter) == std::string::npos) continue;
    const auto has = [&](const std::string& arg) {
      return std::any_of(function.params.begin(), function.params.end(), [&](const auto& param) {
        return param.var && param.name() == arg.substr(0, arg.find('='));
      });
    };
    std::vector<std::string> own;
    std::copy_if(flags.args.begin(), flags.args.end(), std::back_inserter(own), has);
    sweep::Entry entry = {.name = function.name, .function = function};
    ASSIGN_OR_RETURN(entry.arguments, cases::ScalarArguments(function, own));
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) {
    return InvalidInput("sweep ", flags.text.op, ": no function has '", flags.filter,
                        "' in its name");
  }
  for (const std::string& arg : flags.args) {
    const std::string name = arg.substr(0, arg.find('='));
    const bool is_read = std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
      const auto& params = entry.function->params;
      return std::any_of(params.begin(), params.end(),
                         [&](const auto& param) { return param.var && param.name() == name; });
    });
    if (!is_read) {
      return InvalidInput("--arg ", arg, ": no function has a scalar parameter '", name, "'");
    }
  }
  return entries;
}

// The programs of a file, of a suite, or of one operator's case, with each implementation.
absl::StatusOr<std::vector<sweep::Entry>> EntriesOf(const SweepFlags& flags) {
  ASSIGN_OR_RETURN(const isa::Machine machine,
                   cases::LoadMachine(flags.setting.config, flags.setting.base));
  ASSIGN_OR_RETURN(const Target target, MakeTarget("diannao", &machine));
  if (IsFile(flags)) return FunctionsOf(flags, target);
  std::vector<std::pair<std::string, cases::CaseText>> texts;
  if (!flags.text.shape.empty()) {
    std::string name = flags.text.op + "/" + flags.text.shape;
    for (const std::string& attribute : flags.text.attributes) name += "/" + attribute;
    texts.emplace_back(name, flags.text);
  } else {
    ASSIGN_OR_RETURN(const benchmarks::Suite* suite, benchmarks::FindSuite(flags.text.op));
    for (const benchmarks::SuiteCase& c : suite->cases) {
      if (c.Name().find(flags.filter) == std::string::npos) continue;
      texts.emplace_back(
          c.Name(),
          cases::CaseText{
              .op = c.op, .shape = c.shape, .dtype = c.dtype, .attributes = c.attributes});
    }
    if (texts.empty()) {
      return InvalidInput("sweep ", suite->name, ": no case has '", flags.filter, "' in its name");
    }
  }
  std::vector<sweep::Entry> entries;
  const auto is_compiled = [](const std::string& impl) { return impl == "compiled"; };
  const bool any_compiled = std::any_of(flags.impls.begin(), flags.impls.end(), is_compiled);
  RETURN_IF_ERROR(CheckSearch(flags.text, "diannao", any_compiled ? "compiled" : flags.impls[0]));
  for (auto& [name, text] : texts) {
    text.any_machine = true;
    for (const std::string& impl : flags.impls) {
      sweep::Entry entry;
      ASSIGN_OR_RETURN(entry.operator_case, cases::ParseCase(text, target));
      // Whether there is such an operator and case is no question of a point.
      RETURN_IF_ERROR(kernels::FindOperator(entry.operator_case).status());
      entry.impl = impl;
      if (impl == "compiled") entry.search = flags.text.search;
      entry.name = flags.impls.size() == 1 ? name : StrCat(name, "/", impl);
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

// Points done and time left, twice a second.
class Progress {
 public:
  void operator()(size_t done, size_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (done < total && now - shown_ < std::chrono::milliseconds(500)) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    std::fprintf(stderr, "\r[%zu/%zu] %.0f s, about %.0f s left   %s", done, total, seconds,
                 seconds / static_cast<double>(done) * static_cast<double>(total - done),
                 done == total ? "\n" : "");
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point shown_ = start_;
};

absl::Status Sweep(const SweepFlags& flags) {
  constexpr std::string_view kOfAll =
      "--axis --instructions --config --set --energy --metrics --jobs --out";
  const bool is_operator = !IsFile(flags) && !flags.text.shape.empty();
  RETURN_IF_ERROR(command_line::CheckRead(
      *flags.command, flags.text.op,
      IsFile(flags) ? "a file of functions"
      : is_operator ? "an operator"
                    : "a suite",
      StrCat(kOfAll, IsFile(flags) ? " --filter --arg"
                     : is_operator ? " --impl --search --shape --dtype --scalar --attr --schedule"
                                   : " --impl --search --filter")));
  RETURN_IF_ERROR(command_line::CheckFolder("--out", flags.directory));
  std::vector<sweep::Axis> axes;
  for (const std::string& text : flags.axes) {
    ASSIGN_OR_RETURN(sweep::Axis axis, sweep::ParseAxis(text));
    axes.push_back(std::move(axis));
  }
  if (axes.empty() && flags.tables.size() < 2) {
    return InvalidInput(
        "sweep: expected --axis, or --instructions with two tables or more, found neither");
  }
  sweep::Setting setting = flags.setting;
  RETURN_IF_ERROR(sweep::LoadTables(flags.tables, setting));
  for (const std::string& impl : flags.impls) {
    if (impl != "compiled" && impl != "library" && impl != "expert") {
      return InvalidInput("--impl: expected compiled, library or expert, found ", impl);
    }
  }
  sweep::Table names_only;
  RETURN_IF_ERROR(sweep::KeepMetrics(names_only, flags.metrics));
  ASSIGN_OR_RETURN(const std::vector<sweep::Entry> entries, EntriesOf(flags));
  const int jobs =
      flags.jobs.value_or(std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  std::function<void(size_t, size_t)> on_row;
  if (isatty(STDERR_FILENO) != 0) on_row = Progress();
  ASSIGN_OR_RETURN(sweep::Table table, sweep::RunSweep(setting, axes, entries, jobs, on_row));
  RETURN_IF_ERROR(sweep::KeepMetrics(table, flags.metrics));
  const std::pair<const char*, std::string> files[] = {{"sweep.csv", sweep::TableCsv(table)},
                                                       {"sweep.json", sweep::TableJson(table)},
                                                       {"sweep.html", sweep::SweepPage(table)}};
  RETURN_IF_ERROR(MakeDirectory(flags.directory));
  for (const auto& [name, text] : files) {
    const std::string path = StrCat(flags.directory, "/", name);
    RETURN_IF_ERROR(WriteFile(path, text));
    std::printf("%s\n", path.c_str());
  }
  std::printf("%s", sweep::InstructionsText(table).c_str());
  return absl::OkStatus();
}

}  // namespace

void AddSweepCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<SweepFlags>();
  CLI::App* command = app.add_subcommand(
      "sweep", "run programs on all combinations of machine parameters: a table and a page");
  command
      ->add_option("WHAT", flags->text.op,
                   "a suite (nao list suites), an operator with --shape, or FILE.nir: each of its "
                   "functions")
      ->required();
  AddCaseOptions(*command, flags->text);
  AddSearchOption(*command, flags->text);
  command
      ->add_option("--axis", flags->axes,
                   "NAME=VALUE,VALUE,..: a parameter and its values (may be repeated)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option(
          "--instructions", flags->tables,
          "tables to compare, WITH.nir,WITHOUT.nir: rows for the built-in table, or tables "
          "of their own; ratios are to the first one")
      ->delimiter(',');
  command->add_option("--filter", flags->filter,
                      "only the suite's cases, or the file's functions, with this text in their "
                      "names");
  command->add_option("--arg", flags->args, "scalars of FILE.nir's functions: n=1000");
  command->add_option("--impl", flags->impls, "compiled, library, expert, or some of them")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--config", flags->setting.config, "the machine")->capture_default_str();
  command->add_option("--set", flags->setting.base,
                      "machine parameters of all points: core.nmem_kib=256 ...");
  command->add_option("--energy", flags->setting.energy,
                      "an energy table, for energy and area (nao run --energy)");
  command->add_option("--metrics", flags->metrics,
                      "columns: cycles,energy_pj,.. (default: all that are known)");
  command->add_option("--jobs", flags->jobs, "points at a time (default: the hardware's threads)")
      ->check(CLI::Range(1, 4096));
  command->add_option("--out", flags->directory, "folder for sweep.csv, sweep.json and sweep.html")
      ->required();
  command->callback([&action, flags, command] {
    flags->command = command;
    action = [flags] { return Outcome{.status = Sweep(*flags), .values_agree = true}; };
  });
}

}  // namespace polynao::driver
