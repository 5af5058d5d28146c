#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <thread>

#include "base/status.h"
#include "benchmarks/page.h"
#include "benchmarks/result.h"
#include "benchmarks/suites.h"
#include "tools/driver/bench_suite.h"
#include "tools/driver/commands.h"
#include "tools/driver/files.h"

namespace polynao::driver {
namespace {

struct BenchFlags {
  std::string suite;
  BenchSettings settings;
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

absl::StatusOr<bool> Bench(BenchFlags& flags) {
  ASSIGN_OR_RETURN(const benchmarks::Suite* suite, benchmarks::FindSuite(flags.suite));
  if (isatty(STDERR_FILENO) != 0) flags.settings.on_row = PrintProgress;
  ASSIGN_OR_RETURN(benchmarks::SuiteResult result, RunSuite(*suite, flags.settings));
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
  flags->settings.jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  CLI::App* command =
      app.add_subcommand("bench", "run a suite: compiled programs against hand-written ones");
  command->add_option("SUITE", flags->suite, "a suite (nao list suites)")->required();
  command->add_option("--filter", flags->settings.filter,
                      "only rows with this text or regular expression in class/op/shape/impl");
  command->add_option("--jobs", flags->settings.jobs, "rows at a time")->capture_default_str();
  command
      ->add_option("--without", flags->settings.without,
                   "also compile without these passes: partition,tensorize (may be repeated)")
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--config", flags->settings.config, "the machine: a name or a .toml file")
      ->capture_default_str();
  command->add_option("--set", flags->settings.overrides,
                      "machine parameters: core.nmem_kib=256 ...");
  command->add_option("--seed", flags->settings.seed, "of the inputs")->capture_default_str();
  command->add_option("--json", flags->json, "write rows and summary as one JSON object");
  command->add_option("--html", flags->html, "write a page with charts");
  command->callback([&action, flags] {
    action = [flags] {
      const absl::StatusOr<bool> ok = Bench(*flags);
      return Outcome{.status = ok.status(), .values_agree = ok.ok() && *ok};
    };
  });
}

}  // namespace polynao::driver
