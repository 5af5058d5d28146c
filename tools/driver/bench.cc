#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "base/files.h"
#include "base/status.h"
#include "benchmarks/bench_licm.h"
#include "benchmarks/bench_polybench.h"
#include "benchmarks/bench_suite.h"
#include "benchmarks/comparison.h"
#include "benchmarks/comparison_page.h"
#include "benchmarks/licm_page.h"
#include "benchmarks/licm_result.h"
#include "benchmarks/licm_rows.h"
#include "benchmarks/page.h"
#include "benchmarks/peers.h"
#include "benchmarks/result.h"
#include "benchmarks/suites.h"
#include "nlohmann/json.hpp"
#include "tools/driver/commands.h"

namespace polynao::driver {
namespace {

struct BenchFlags {
  std::string suite;
  benchmarks::BenchSettings settings;
  // The hardware's threads, or 1 where times are taken.
  std::optional<int> jobs;
  double seconds = benchmarks::LicmBenchSettings().seconds_per_case;
  std::string target = "cpu";
  benchmarks::PolyBenchSettings polybench;
  std::string from;
  std::vector<std::string> peers = benchmarks::PeerNames();
  bool no_peers = false;
  std::string resume;  // "": without a file
  const CLI::Option* resume_option = nullptr;
  bool resumes() const { return resume_option->count() > 0; }
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
  if (!flags.settings.without.empty() || !flags.settings.overrides.empty()) {
    return InvalidInput("bench ", benchmarks::kLicmSuite,
                        " has no card: expected no --without and no --set");
  }
  benchmarks::LicmBenchSettings settings;
  settings.target = flags.target;
  settings.seed = flags.settings.seed;
  settings.jobs = flags.jobs.value_or(1);
  settings.filter = flags.settings.filter;
  settings.seconds_per_case = flags.seconds;
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

void PrintPolyBenchProgress(int done, int total, const benchmarks::ComparisonRow& row) {
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

absl::Status SavePolyBench(const BenchFlags& flags, const benchmarks::Comparison& result) {
  if (!flags.json.empty()) {
    // A compiler's message need not be UTF-8.
    const std::string text = benchmarks::ToJson(result).dump(
        2, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
    RETURN_IF_ERROR(WriteFile(flags.json, text + "\n"));
  }
  if (!flags.html.empty()) return WriteFile(flags.html, benchmarks::PageHtml(result));
  return absl::OkStatus();
}

absl::StatusOr<benchmarks::Comparison> ReadPolyBench(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const auto json = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return InvalidInput(path, ": expected JSON");
  absl::StatusOr<benchmarks::Comparison> result = benchmarks::ComparisonFromJson(json);
  if (!result.ok()) return WithContext(path, result.status());
  return result;
}

absl::StatusOr<bool> BenchPolyBench(BenchFlags& flags) {
  if (!flags.settings.without.empty() || !flags.settings.overrides.empty() || flags.jobs ||
      flags.target != "cpu") {
    return InvalidInput("bench ", benchmarks::kPolyBenchSuite,
                        ": expected no --without, --set, --jobs and --target");
  }
  if (!flags.from.empty()) {
    if (flags.resumes()) return InvalidInput("expected --from or --resume, found both");
    ASSIGN_OR_RETURN(const benchmarks::Comparison result, ReadPolyBench(flags.from));
    RETURN_IF_ERROR(SavePolyBench(flags, result));
    std::cout << benchmarks::RowsText(result) << "\n" << benchmarks::SummaryText(result);
    return true;
  }
  flags.polybench.filter = flags.settings.filter;
  flags.polybench.seed = flags.settings.seed;
  if (flags.no_peers || flags.peers == std::vector<std::string>{"none"}) flags.peers.clear();
  flags.polybench.peers = flags.peers;
  if (flags.resumes()) {
    if (!flags.resume.empty() || flags.json.empty()) {
      return InvalidInput("bench ", benchmarks::kPolyBenchSuite,
                          ": expected --resume without a file, and --json=FILE to go on with");
    }
    if (std::filesystem::exists(flags.json)) {
      ASSIGN_OR_RETURN(flags.polybench.known, ReadPolyBench(flags.json));
    }
  }
  if (isatty(STDERR_FILENO) != 0) flags.polybench.on_row = PrintPolyBenchProgress;
  flags.polybench.save = [&](const benchmarks::Comparison& so_far) {
    return SavePolyBench(flags, so_far);
  };
  ASSIGN_OR_RETURN(const benchmarks::Comparison result, benchmarks::RunPolyBench(flags.polybench));
  RETURN_IF_ERROR(SavePolyBench(flags, result));
  std::cout << benchmarks::RowsText(result) << "\n" << benchmarks::SummaryText(result);
  return result.ok();
}

absl::StatusOr<bool> Bench(BenchFlags& flags) {
  if (flags.suite == benchmarks::kPolyBenchSuite) return BenchPolyBench(flags);
  if (!flags.from.empty()) {
    return InvalidInput("bench ", flags.suite, ": expected no --from, which ",
                        benchmarks::kPolyBenchSuite, " has");
  }
  if (flags.suite == benchmarks::kLicmSuite) return BenchLicm(flags);
  if (flags.resumes()) {
    return InvalidInput("bench ", flags.suite, ": expected no --resume, which ",
                        benchmarks::kLicmSuite, " and ", benchmarks::kPolyBenchSuite, " have");
  }
  flags.settings.jobs =
      flags.jobs.value_or(std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  ASSIGN_OR_RETURN(const benchmarks::Suite* suite, benchmarks::FindSuite(flags.suite));
  if (isatty(STDERR_FILENO) != 0) flags.settings.on_row = PrintProgress;
  ASSIGN_OR_RETURN(benchmarks::SuiteResult result, benchmarks::RunSuite(*suite, flags.settings));
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

}  // namespace

void AddBenchCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command =
      app.add_subcommand("bench", "run a suite: compiled programs against hand-written ones");
  command->add_option("SUITE", flags->suite, "a suite (nao list suites)")->required();
  command->add_option("--filter", flags->settings.filter,
                      "only rows with this text or regular expression in class/op/shape/impl");
  command->add_option("--jobs", flags->jobs,
                      "rows at a time (default: the hardware's threads; licm511: 1)");
  command->add_option("--seconds", flags->seconds, "licm511: how long each case is run")
      ->capture_default_str();
  command
      ->add_option("--target", flags->target,
                   "licm511: cpu, or cuda for counts of operations and instructions")
      ->capture_default_str();
  command
      ->add_option("--without", flags->settings.without,
                   "also compile without these passes: partition,tensorize (may be repeated)")
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--size", flags->polybench.size, "polybench: a data set, MINI to EXTRALARGE")
      ->capture_default_str();
  command->add_option("--threads", flags->polybench.threads, "polybench: of parallel loops")
      ->capture_default_str();
  command
      ->add_option("--schedule", flags->polybench.schedules,
                   "polybench: schedules of this compiler to run (may be repeated)")
      ->allow_extra_args(false)
      ->take_all()
      ->capture_default_str();
  CLI::Option* peers =
      command
          ->add_option("--peers", flags->peers,
                       "polybench: the compilers to compare with, or none (--peers=gcc,polly)")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->capture_default_str();
  command->add_flag("--no-peers", flags->no_peers, "polybench: the same as --peers=none")
      ->excludes(peers);
  command->add_option("--config", flags->settings.config, "the machine: a name or a .toml file")
      ->capture_default_str();
  command->add_option("--set", flags->settings.overrides,
                      "machine parameters: core.nmem_kib=256 ...");
  command->add_option("--seed", flags->settings.seed, "of the inputs")->capture_default_str();
  flags->resume_option =
      command
          ->add_option(
              "--resume", flags->resume,
              "go on with a stopped run; polybench: kernels that the file of --json has do "
              "not run again; "
              "licm511: a file of rows, to which each case that runs is added")
          ->type_name("[FILE]")
          ->expected(0, 1);
  command->add_option(
      "--from", flags->from,
      "polybench: run nothing, show this file that --json has written (with --html as a page)");
  command->add_option("--json", flags->json,
                      "write rows and summary as one JSON object; polybench: after each kernel");
  command->add_option("--html", flags->html,
                      "write a page with charts; polybench: after each kernel");
  command->callback([&action, flags] {
    action = [flags] {
      const absl::StatusOr<bool> ok = Bench(*flags);
      return Outcome{.status = ok.status(), .values_agree = ok.ok() && *ok};
    };
  });
}

}  // namespace polynao::driver
