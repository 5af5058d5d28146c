#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "cases/run_pipeline.h"
#include "compiler/poly/arrange/machine.h"
#include "compiler/poly/tools/rank_tiles.h"
#include "nlohmann/json.hpp"
#include "tools/command_line/command_line.h"
#include "tools/driver/tune.h"

namespace polynao::driver {
namespace {

struct Trial {
  std::string schedule;  // "fuse:0x64x256"
  size_t rank =
      0;  // by the cost model among the tiles, from 1; 0: the model's own choice, each group with sizes of its own
  cases::NestReport report;
  double time_ns() const { return report.times->median_ns; }
};

nlohmann::ordered_json ToJson(const kernels::Pipeline& pipeline, const std::string& shape,
                              int threads, size_t candidates, const std::vector<Trial>& trials) {
  nlohmann::ordered_json json;
  json["pipeline"] = std::string(pipeline.name);
  json["shape"] = shape;
  json["threads"] = threads;
  json["candidates"] = candidates;
  json["trials"] = nlohmann::ordered_json::array();
  for (const Trial& trial : trials) {
    json["trials"].push_back({{"schedule", trial.schedule},
                              {"rank_by_model", trial.rank},
                              {"ok", trial.report.ok()},
                              {"time_ms", trial.time_ns() / 1e6},
                              {"compile_ms", trial.report.schedule_ms + trial.report.compile_ms}});
  }
  return json;
}

}  // namespace

absl::StatusOr<bool> TunePipeline(const kernels::Pipeline& pipeline, const TuneFlags& flags) {
  const std::string_view name = pipeline.name;
  RETURN_IF_ERROR(command_line::CheckRead(*flags.command, name, "a pipeline",
                                          "--shape --top --threads --seed --save --json"));
  ASSIGN_OR_RETURN(const kernels::PipelineSize size,
                   kernels::ParsePipelineSize(pipeline, flags.text.shape));
  ASSIGN_OR_RETURN(const ir::Function function,
                   kernels::PipelineFunction(pipeline, size.rows, size.cols));
  const int threads =
      flags.threads > 0 ? flags.threads : static_cast<int>(std::thread::hardware_concurrency());
  poly::ScheduleOptions options;
  ASSIGN_OR_RETURN(options.machine, poly::HostMachine(threads));
  ASSIGN_OR_RETURN(const std::vector<poly::RankedTile> tiles, poly::RankTiles(function, options));
  std::vector<Trial> trials = {{.schedule = "fuse", .rank = 0, .report = {}}};
  for (size_t i = 0; i < std::min(tiles.size(), static_cast<size_t>(flags.top)); ++i) {
    trials.push_back({.schedule = StrCat("fuse:", absl::StrJoin(tiles[i].sizes, "x")),
                      .rank = i + 1,
                      .report = {}});
  }
  const std::string shape = StrCat(size.rows, "x", size.cols);
  for (size_t i = 0; i < trials.size(); ++i) {
    cases::PipelineSettings settings{.shape = shape, .image = {}, .out = {}, .nest = {}};
    settings.nest.schedule = trials[i].schedule;
    settings.nest.executable = {.target = "cpu", .threads = threads};
    settings.nest.seed = flags.settings.seed;
    ASSIGN_OR_RETURN(trials[i].report, cases::RunPipeline(pipeline, settings));
    if (isatty(STDERR_FILENO) != 0) {
      std::fprintf(stderr, "[%zu/%zu] %s %s: %.3f ms\n", i + 1, trials.size(),
                   function.name.c_str(), trials[i].schedule.c_str(), trials[i].time_ns() / 1e6);
    }
  }
  const bool ok = std::all_of(trials.begin(), trials.end(),
                              [](const Trial& trial) { return trial.report.ok(); });
  std::sort(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) {
    return std::pair(a.time_ns(), a.rank) < std::pair(b.time_ns(), b.rank);
  });
  if (flags.json) {
    std::cout << ToJson(pipeline, shape, threads, tiles.size(), trials).dump(2) << std::endl;
  } else {
    std::printf("%s %s, %d thread%s: %zu of %zu tiles timed, and the model's choice (0)\n",
                function.name.c_str(), shape.c_str(), threads, threads == 1 ? "" : "s",
                trials.size() - 1, tiles.size());
    std::printf("%8s %10s %11s  %s\n", "model", "ms", "compile ms", "schedule");
    for (const Trial& trial : trials) {
      std::printf("%8zu %10.3f %11.0f  %s%s\n", trial.rank, trial.time_ns() / 1e6,
                  trial.report.schedule_ms + trial.report.compile_ms, trial.schedule.c_str(),
                  trial.report.ok() ? "" : "  VALUES DIFFER");
    }
  }
  if (!flags.save.empty() && ok) RETURN_IF_ERROR(WriteFile(flags.save, trials[0].schedule + "\n"));
  return ok;
}

}  // namespace polynao::driver
