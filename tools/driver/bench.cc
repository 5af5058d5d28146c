#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "CLI/CLI.hpp"
#include "base/files.h"
#include "base/status.h"
#include "benchmarks/bench_dense.h"
#include "benchmarks/bench_equake.h"
#include "benchmarks/bench_fusion.h"
#include "benchmarks/bench_ladder.h"
#include "benchmarks/bench_licm.h"
#include "benchmarks/bench_polybench.h"
#include "benchmarks/bench_suite.h"
#include "benchmarks/comparison.h"
#include "benchmarks/comparison_page.h"
#include "benchmarks/dense_result.h"
#include "benchmarks/fusion_result.h"
#include "benchmarks/licm_page.h"
#include "benchmarks/licm_result.h"
#include "benchmarks/licm_rows.h"
#include "benchmarks/page.h"
#include "benchmarks/result.h"
#include "benchmarks/suites.h"
#include "nlohmann/json.hpp"
#include "tools/command_line/command_line.h"
#include "tools/driver/commands.h"

namespace polynao::driver {
namespace {

struct BenchFlags {
  const CLI::App* command = nullptr;
  std::string suite;
  benchmarks::BenchSettings settings;
  // The hardware's threads, or 1 where times are taken.
  std::optional<int> jobs;
  std::optional<double> seconds;
  std::string target = "cpu";
  benchmarks::FusionSettings fusion;
  std::string size;  // "": the suite's own
  std::vector<int> threads;
  std::vector<std::string> schedules;
  std::vector<std::string> pipelines;
  std::string from;
  std::vector<std::string> peers;
  bool no_peers = false;
  std::string resume;  // "": without a file
  const CLI::Option* resume_option = nullptr;
  bool resumes() const { return resume_option->count() > 0; }
  int64_t columns = 0;
  bool sensitivity = false;
  std::string json;
  std::string html;
};

void PrintProgress(int done, int total, const benchmarks::Row& row) {
  const std::string name = row.Name();
  if (row.ran()) {
    std::fprintf(stderr, "[%d/%d] %s: %lld cycles, efficiency %.3f%s\n", done, total, name.c_str(),
                 static_cast<long long>(row.cycles), row.efficiency(),
                 row.state == benchmarks::Row::State::kDiffers ? ", VALUES DIFFER" : "");
  } else {
    std::fprintf(stderr, "[%d/%d] %s: %s: %s\n", done, total, name.c_str(),
                 row.state == benchmarks::Row::State::kSkipped ? "skipped" : "FAILED",
                 row.reason.c_str());
  }
}

void PrintLicmProgress(int done, int total, const benchmarks::LicmRow& row) {
  if (!row.error.empty()) {
    std::fprintf(stderr, "[%d/%d] %s: FAILED: %s\n", done, total, row.Name().c_str(),
                 row.error.c_str());
    return;
  }
  if (row.baseline_code && row.optimized_code) {
    std::fprintf(stderr, "[%d/%d] %s: %.4g -> %.4g executed instructions of PTX\n", done, total,
                 row.Name().c_str(), row.baseline_code->executed, row.optimized_code->executed);
    return;
  }
  std::fprintf(stderr, "[%d/%d] %s: %.1f us, %.3f times as fast%s%s\n", done, total,
               row.Name().c_str(), row.optimized_ns / 1e3, row.speedup,
               row.same_code ? ", same code" : "", row.values_agree ? "" : ", VALUES DIFFER");
}

absl::StatusOr<bool> BenchLicm(const BenchFlags& flags) {
  benchmarks::LicmBenchSettings settings;
  settings.target = flags.target;
  settings.seed = flags.settings.seed;
  settings.jobs = flags.jobs.value_or(1);
  settings.filter = flags.settings.filter;
  settings.seconds_per_case = flags.seconds.value_or(settings.seconds_per_case);
  std::optional<benchmarks::LicmRowsFile> file;
  if (flags.resumes()) {
    if (flags.resume.empty()) {
      return InvalidInput("bench ", benchmarks::kLicmSuite, ": expected --resume=FILE");
    }
    ASSIGN_OR_RETURN(file,
                     benchmarks::LicmRowsFile::Open(flags.resume, benchmarks::LicmRun(settings)));
    settings.known = file->rows();
  }
  absl::Status appended;
  settings.on_row = [&](int done, int total, const benchmarks::LicmRow& row) {
    if (isatty(STDERR_FILENO) != 0) PrintLicmProgress(done, total, row);
    if (file && appended.ok()) appended = file->Append(row);
  };
  ASSIGN_OR_RETURN(const benchmarks::LicmResult result, benchmarks::RunLicmSuite(settings));
  RETURN_IF_ERROR(appended);
  if (!flags.json.empty()) {
    RETURN_IF_ERROR(WriteFile(flags.json, benchmarks::ToJson(result).dump(2) + "\n"));
  }
  if (!flags.html.empty()) RETURN_IF_ERROR(WriteFile(flags.html, benchmarks::PageHtml(result)));
  std::cout << benchmarks::RowsText(result) << "\n" << benchmarks::SummaryText(result);
  return result.ok();
}

void PrintComparisonProgress(int done, int total, const benchmarks::ComparisonRow& row) {
  std::fprintf(stderr, "[%d/%d] %s:", done, total, row.kernel.c_str());
  for (const benchmarks::ComparisonEntry& entry : row.entries) {
    if (entry.ran()) {
      std::fprintf(stderr, " %s %.2f ms,", entry.implementation.c_str(), entry.time_ns / 1e6);
    } else if (entry.skipped.empty()) {
      std::fprintf(stderr, " %s %s,", entry.implementation.c_str(),
                   entry.error.empty() ? "VALUES DIFFER" : "FAILED");
    }
  }
  std::fprintf(stderr, "\n");
}

// How results of a suite of comparisons are written, read and shown.
struct ComparisonForm {
  std::string suite;
  nlohmann::ordered_json (*to_json)(const benchmarks::Comparison&);
  absl::StatusOr<benchmarks::Comparison> (*from_json)(const nlohmann::ordered_json&);
  std::string (*text)(const benchmarks::Comparison&);
};

absl::Status Save(const BenchFlags& flags, const ComparisonForm& form,
                  const benchmarks::Comparison& result) {
  if (!flags.json.empty()) {
    // A compiler's message need not be UTF-8.
    const std::string text = form.to_json(result).dump(
        2, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
    RETURN_IF_ERROR(WriteFile(flags.json, text + "\n"));
  }
  if (!flags.html.empty()) return WriteFile(flags.html, benchmarks::PageHtml(result));
  return absl::OkStatus();
}

absl::StatusOr<benchmarks::Comparison> Read(const ComparisonForm& form, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const auto json = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return InvalidInput(path, ": expected JSON");
  absl::StatusOr<benchmarks::Comparison> result = form.from_json(json);
  if (!result.ok()) return WithContext(path, result.status());
  return result;
}

// Runs or shows a suite of comparisons: what its settings have in common.
template <typename Settings, typename Run>
absl::StatusOr<bool> BenchComparison(const BenchFlags& flags, const ComparisonForm& form,
                                     Settings settings, const Run& run) {
  if (!flags.from.empty()) {
    ASSIGN_OR_RETURN(const benchmarks::Comparison result, Read(form, flags.from));
    RETURN_IF_ERROR(Save(flags, form, result));
    std::cout << form.text(result);
    return true;
  }
  settings.filter = flags.settings.filter;
  settings.seed = flags.settings.seed;
  if (!flags.size.empty()) settings.size = flags.size;
  if (flags.no_peers || flags.peers == std::vector<std::string>{"none"}) {
    settings.peers.clear();
  } else if (!flags.peers.empty()) {
    settings.peers = flags.peers;
  }
  if (flags.resumes()) {
    if (!flags.resume.empty() || flags.json.empty()) {
      return InvalidInput("bench ", form.suite,
                          ": expected --resume without a file, and --json=FILE to go on with");
    }
    if (std::filesystem::exists(flags.json)) {
      ASSIGN_OR_RETURN(settings.known, Read(form, flags.json));
    }
  }
  if (isatty(STDERR_FILENO) != 0) settings.on_row = PrintComparisonProgress;
  settings.save = [&](const benchmarks::Comparison& so_far) { return Save(flags, form, so_far); };
  ASSIGN_OR_RETURN(const benchmarks::Comparison result, run(settings));
  RETURN_IF_ERROR(Save(flags, form, result));
  std::cout << form.text(result);
  return result.ok();
}

absl::StatusOr<bool> BenchPolyBench(const BenchFlags& flags) {
  const ComparisonForm form = {
      .suite = benchmarks::kPolyBenchSuite,
      .to_json = benchmarks::ToJson,
      .from_json =
          [](const nlohmann::ordered_json& json) { return benchmarks::ComparisonFromJson(json); },
      .text =
          [](const benchmarks::Comparison& result) {
            return benchmarks::RowsText(result) + "\n" + benchmarks::SummaryText(result);
          }};
  benchmarks::PolyBenchSettings settings;
  if (flags.threads.size() > 1) {
    return InvalidInput("bench ", form.suite, " --threads: expected one number, found ",
                        flags.threads.size());
  }
  if (!flags.threads.empty()) settings.threads = flags.threads[0];
  if (!flags.schedules.empty()) settings.schedules = flags.schedules;
  return BenchComparison(flags, form, settings, benchmarks::RunPolyBench);
}

absl::StatusOr<bool> BenchFusion(const BenchFlags& flags) {
  const ComparisonForm form = {.suite = benchmarks::kFusionSuite,
                               .to_json = benchmarks::FusionToJson,
                               .from_json = benchmarks::FusionFromJson,
                               .text = benchmarks::FusionText};
  benchmarks::FusionSettings settings = flags.fusion;
  if (!flags.threads.empty()) settings.threads = flags.threads;
  settings.pipelines = flags.pipelines;
  return BenchComparison(flags, form, settings, benchmarks::RunFusion);
}

absl::StatusOr<bool> BenchEquake(const BenchFlags& flags) {
  const ComparisonForm form = {.suite = benchmarks::kEquakeSuite,
                               .to_json = benchmarks::ToJson,
                               .from_json =
                                   [](const nlohmann::ordered_json& json) {
                                     return benchmarks::ComparisonFromJson(
                                         json, benchmarks::kEquakeSuite);
                                   },
                               .text = benchmarks::RowsText};
  benchmarks::EquakeSettings settings;
  if (!flags.threads.empty()) settings.threads = flags.threads;
  if (!flags.schedules.empty()) settings.schedules = flags.schedules;
  return BenchComparison(flags, form, settings, benchmarks::RunEquakeSuite);
}

absl::StatusOr<bool> BenchDense(const BenchFlags& flags) {
  const ComparisonForm form = {.suite = benchmarks::kDenseSuite,
                               .to_json = benchmarks::DenseToJson,
                               .from_json = benchmarks::DenseFromJson,
                               .text = benchmarks::DenseText};
  benchmarks::DenseSettings settings;
  if (!flags.threads.empty()) settings.threads = flags.threads;
  settings.seconds = flags.seconds.value_or(settings.seconds);
  return BenchComparison(flags, form, settings, benchmarks::RunDense);
}

absl::StatusOr<bool> BenchLadder(const BenchFlags& flags) {
  benchmarks::LadderSettings settings{.config = flags.settings.config,
                                      .overrides = flags.settings.overrides,
                                      .columns = flags.columns,
                                      .sensitivity = flags.sensitivity};
  if (isatty(STDERR_FILENO) != 0) {
    settings.on_row = [](const benchmarks::LadderRow& row) {
      std::fprintf(stderr, "step %s %s: %.2f ms%s%s\n", row.step.c_str(), row.change.c_str(),
                   row.simulated_ms, row.error.empty() ? "" : ", FAILED: ", row.error.c_str());
    };
  }
  ASSIGN_OR_RETURN(const benchmarks::LadderResult result, benchmarks::RunLadder(settings));
  if (!flags.json.empty()) {
    RETURN_IF_ERROR(WriteFile(flags.json, benchmarks::ToJson(result).dump(2) + "\n"));
  }
  std::cout << benchmarks::LadderText(result);
  return result.ok();
}

// A suite of operators on the card.
absl::StatusOr<bool> BenchCard(const BenchFlags& flags) {
  benchmarks::BenchSettings settings = flags.settings;
  settings.jobs =
      flags.jobs.value_or(std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  ASSIGN_OR_RETURN(const benchmarks::Suite* suite, benchmarks::FindSuite(flags.suite));
  if (isatty(STDERR_FILENO) != 0) settings.on_row = PrintProgress;
  ASSIGN_OR_RETURN(benchmarks::SuiteResult result, benchmarks::RunSuite(*suite, settings));
  if (!flags.json.empty()) {
    RETURN_IF_ERROR(WriteFile(flags.json, benchmarks::ToJson(result).dump(2) + "\n"));
  }
  if (!flags.html.empty()) {
    RETURN_IF_ERROR(WriteFile(flags.html, benchmarks::PageHtml(result)));
  }
  std::cout << benchmarks::RowsText(result) << "\n" << benchmarks::SummaryText(result);
  if (result.summary.skipped == static_cast<int>(result.rows.size())) {
    return InvalidInput("bench ", suite->name, ": nothing was run: all ", result.rows.size(),
                        " rows were skipped");
  }
  return result.ok();
}

// A suite as the command line knows it.
struct BenchSuite {
  SuiteText text;
  std::string_view options;  // that it reads
  absl::StatusOr<bool> (*run)(const BenchFlags&);
  // Compares with other compilers; shows results that are saved (--from).
  bool is_comparison = false;
};

constexpr std::string_view kOfComparisons =
    "--size --filter --seed --threads --peers --no-peers --json --html --resume --from ";

std::vector<BenchSuite> BenchSuites() {
  std::vector<BenchSuite> suites;
  for (const benchmarks::Suite& suite : benchmarks::Suites()) {
    suites.push_back({.text = {suite.name, suite.doc},
                      .options = "--filter --jobs --without --config --set --seed --json --html",
                      .run = BenchCard});
  }
  suites.push_back({.text = {benchmarks::kLicmSuite, benchmarks::kLicmSuiteDoc},
                    .options = "--filter --seed --seconds --target --jobs --json --html --resume",
                    .run = BenchLicm});
  suites.push_back({.text = {benchmarks::kPolyBenchSuite, benchmarks::kPolyBenchSuiteDoc},
                    .options = "--schedule",
                    .run = BenchPolyBench,
                    .is_comparison = true});
  suites.push_back({.text = {benchmarks::kFusionSuite, benchmarks::kFusionSuiteDoc},
                    .options = "--rows --cols --pipelines --strategies --python",
                    .run = BenchFusion,
                    .is_comparison = true});
  suites.push_back({.text = {benchmarks::kEquakeSuite, benchmarks::kEquakeSuiteDoc},
                    .options = "--schedule",
                    .run = BenchEquake,
                    .is_comparison = true});
  suites.push_back({.text = {benchmarks::kDenseSuite, benchmarks::kDenseSuiteDoc},
                    .options = "--seconds",
                    .run = BenchDense,
                    .is_comparison = true});
  suites.push_back({.text = {benchmarks::kLadderSuite, benchmarks::kLadderSuiteDoc},
                    .options = "--config --set --columns --sensitivity --json",
                    .run = BenchLadder});
  return suites;
}

// Errors: an option that the suite does not read.
absl::Status CheckOptions(const BenchFlags& flags, const BenchSuite& suite) {
  const auto check = [&](std::string_view use, std::string_view options) {
    return command_line::CheckRead(*flags.command, flags.suite, use, options);
  };
  if (!suite.is_comparison) return check("the suite", suite.options);
  if (!flags.from.empty()) return check("a result that is shown", "--from --json --html");
  return check("the suite", StrCat(kOfComparisons, suite.options));
}

absl::StatusOr<bool> Bench(const BenchFlags& flags) {
  RETURN_IF_ERROR(command_line::CheckWritable("--json", flags.json));
  RETURN_IF_ERROR(command_line::CheckWritable("--html", flags.html));
  std::string names;
  for (const BenchSuite& suite : BenchSuites()) {
    if (suite.text.name == flags.suite) {
      RETURN_IF_ERROR(CheckOptions(flags, suite));
      return suite.run(flags);
    }
    StrAppend(&names, names.empty() ? "" : ", ", suite.text.name);
  }
  return InvalidInput("no suite is named '", flags.suite, "'; there are: ", names);
}

// Options of suites that compare with other compilers.
void AddComparisonOptions(CLI::App& command, BenchFlags& flags) {
  command.add_option(
      "--size", flags.size,
      "polybench: a data set, MINI to EXTRALARGE (default: LARGE); fusion: paper or "
      "small (default: paper); equake: test, train, ref, a number of nodes or all (default: all); "
      "dense: networks or small (default: networks)");
  command.add_option("--rows", flags.fusion.rows, "fusion: of the image, with --cols")
      ->check(CLI::Range(1, 1 << 20));
  command.add_option("--cols", flags.fusion.cols, "fusion: of the image, with --rows")
      ->check(CLI::Range(1, 1 << 20));
  command
      .add_option("--pipelines", flags.pipelines,
                  "fusion: the pipelines to run (--pipelines=harris,unsharp; default: all)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option(
          "--threads", flags.threads,
          "of parallel loops; polybench: a number (default: 2), fusion, equake and dense: some "
          "(default: --threads=1,2)")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->allow_extra_args(false);
  command
      .add_option("--schedule", flags.schedules,
                  "polybench, equake: schedules of this compiler to run (may be repeated; "
                  "default: none and "
                  "auto; min, smart, max, fuse and auto)")
      ->allow_extra_args(false)
      ->take_all();
  command
      .add_option("--strategies", flags.fusion.strategies,
                  "fusion: schedules of this compiler to run (--strategies=fuse,smart)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  command.add_option(
      "--python", flags.fusion.python,
      "fusion: the Python with halide and numpy (default: $POLYNAO_PYTHON or python3)");
  CLI::Option* peers =
      command
          .add_option(
              "--peers", flags.peers,
              "polybench, fusion, equake, dense: what to compare with, or none (--peers=gcc,polly; "
              "--peers=halide,gcc; --peers=onednn,openblas)")
          ->delimiter(',')
          ->allow_extra_args(false);
  command.add_flag("--no-peers", flags.no_peers, "the same as --peers=none")->excludes(peers);
}

}  // namespace

std::vector<SuiteText> SuiteTexts() {
  std::vector<SuiteText> texts;
  for (const BenchSuite& suite : BenchSuites()) texts.push_back(suite.text);
  return texts;
}

void AddBenchCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command =
      app.add_subcommand("bench", "run a suite: compiled programs against hand-written ones");
  command->add_option("SUITE", flags->suite, "a suite (nao list suites)")->required();
  command->add_option("--filter", flags->settings.filter,
                      "only rows with this text or regular expression in class/op/shape/impl");
  command
      ->add_option("--jobs", flags->jobs,
                   "rows at a time (default: the hardware's threads; licm511: 1)")
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--seconds", flags->seconds,
                   "licm511: how long each case is run; dense: each implementation of a layer "
                   "(default: 0.3)")
      ->check(CLI::Range(0.001, 1e6));
  command
      ->add_option("--target", flags->target,
                   "licm511: cpu, or cuda for counts of operations and instructions")
      ->capture_default_str();
  command
      ->add_option("--without", flags->settings.without,
                   "also compile without these passes: partition,tensorize (may be repeated)")
      ->allow_extra_args(false)
      ->take_all();
  AddComparisonOptions(*command, *flags);
  AddMachineOptions(*command, flags->settings.config, flags->settings.overrides);
  command->add_option("--seed", flags->settings.seed, "of the inputs")->capture_default_str();
  command
      ->add_option("--columns", flags->columns,
                   "ladder: columns to run, of the 327680 that times are for (default: all)")
      ->check(CLI::Range(1, 10'000'000));
  command->add_flag("--sensitivity", flags->sensitivity,
                    "ladder: also with each assumed parameter halved and doubled");
  flags->resume_option =
      command
          ->add_option("--resume", flags->resume,
                       "go on with a stopped run; polybench, fusion, dense: kernels that the file "
                       "of --json has do "
                       "not run again; "
                       "licm511: a file of rows, to which each case that runs is added")
          ->type_name("[FILE]")
          ->expected(0, 1);
  command->add_option(
      "--from", flags->from,
      "polybench, fusion, dense: run nothing, show this file that --json has written "
      "(with --html as a page)");
  command->add_option(
      "--json", flags->json,
      "write rows and summary as one JSON object; polybench, fusion, dense: after each kernel");
  command->add_option("--html", flags->html,
                      "write a page with charts; polybench, fusion, dense: after each kernel");
  command->callback([&action, flags, command] {
    flags->command = command;
    action = [flags] { return OutcomeOf(Bench(*flags)); };
  });
}

}  // namespace polynao::driver
