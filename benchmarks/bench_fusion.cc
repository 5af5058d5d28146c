#include "benchmarks/bench_fusion.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/fusion_result.h"
#include "benchmarks/halide_peer.h"
#include "benchmarks/measure.h"
#include "benchmarks/name_filter.h"
#include "benchmarks/peers.h"
#include "benchmarks/plain_c.h"
#include "benchmarks/provenance.h"
#include "cases/executable.h"
#include "cases/schedule.h"
#include "compiler/ir/agreement.h"
#include "compiler/ir/random_arguments.h"
#include "kernels/pipelines/pipelines.h"

namespace polynao::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;
using kernels::Pipeline;

// Small enough for tests, and no multiple of a tile or a vector.
constexpr int64_t kSmallRows = 203;
constexpr int64_t kSmallCols = 301;

// Of the largest value. Where floats are compared with a threshold (unsharp), other rounding moves a result by so much.
constexpr double kTolerance = 4e-3;

// One element among so many may differ more: the bilateral grid divides a rounding error by another one where a pixel
// is almost 1.
constexpr int64_t kElementsPerOutlier = 100'000;

// One implementation on a number of threads.
struct Candidate {
  enum class Kind { kHalide, kNaive, kOurs };
  Kind kind;
  std::string name;    // "halide-hand", "gcc", "nao-fuse"
  std::string option;  // the schedule, or the strategy
  int threads = 1;
  Peer peer = {};       // kNaive
  std::string missing;  // why it cannot run
};

// One pipeline: its function, arguments, and what the reference makes of them.
struct Case {
  const Pipeline& pipeline;
  int64_t rows, cols;
  ir::Function function;
  ir::RandomArguments inputs;
  ir::RandomArguments expected;
  double tolerance;
};

absl::StatusOr<Case> MakeCase(const Pipeline& pipeline, const FusionSettings& settings) {
  const bool small = settings.size == "small";
  const int64_t rows = settings.rows > 0 ? settings.rows
                       : small           ? kSmallRows
                                         : pipeline.default_rows;
  const int64_t cols = settings.cols > 0 ? settings.cols
                       : small           ? kSmallCols
                                         : pipeline.default_cols;
  ASSIGN_OR_RETURN(ir::Function function, kernels::PipelineFunction(pipeline, rows, cols));
  ASSIGN_OR_RETURN(ir::RandomArguments inputs,
                   kernels::PipelineArguments(pipeline, function, settings.seed));
  ir::RandomArguments expected(inputs);
  pipeline.reference(expected.arguments());
  const bool has_floats =
      std::any_of(function.params.begin(), function.params.end(),
                  [](const ir::Param& param) { return ir::IsFloat(param.buffer->type); });
  return Case{pipeline,
              rows,
              cols,
              std::move(function),
              std::move(inputs),
              std::move(expected),
              has_floats ? kTolerance : 0};
}

bool Contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

absl::Status CheckSettings(const FusionSettings& settings) {
  if (settings.size != "paper" && settings.size != "small") {
    return InvalidInput("--size: expected paper or small, found '", settings.size, "'");
  }
  if ((settings.rows > 0) != (settings.cols > 0) || settings.rows < 0 || settings.cols < 0) {
    return InvalidInput("expected --rows and --cols, both above 0, found ", settings.rows, " and ",
                        settings.cols);
  }
  if (settings.threads.empty()) return InvalidInput("--threads: expected numbers, found none");
  for (const int threads : settings.threads) {
    if (threads < 1) return InvalidInput("--threads: expected 1 or more, found ", threads);
  }
  for (const std::string& name : settings.pipelines) {
    if (kernels::FindPipeline(name) == nullptr) {
      return absl::NotFoundError(
          StrCat("no pipeline is named '", name, "': expected ",
                 absl::StrJoin(kernels::Pipelines(), ", ",
                               [](std::string* text, const Pipeline& p) { *text += p.name; })));
    }
  }
  std::vector<std::string> peers = {"halide", "gcc", "clang"};
  for (const std::string& schedule : HalidePeer::Schedules()) peers.push_back("halide-" + schedule);
  for (const std::string& peer : settings.peers) {
    if (Contains(peers, peer)) continue;
    return absl::NotFoundError(StrCat("no implementation to compare with is named '", peer,
                                      "': expected ", absl::StrJoin(peers, ", ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Candidate>> MakeCandidates(const FusionSettings& settings,
                                                      const std::string& no_halide) {
  std::vector<Candidate> candidates;
  for (const int threads : settings.threads) {
    for (const std::string& schedule : HalidePeer::Schedules()) {
      const std::string name = "halide-" + schedule;
      if (!Contains(settings.peers, "halide") && !Contains(settings.peers, name)) continue;
      candidates.push_back({Candidate::Kind::kHalide, name, schedule, threads, {}, no_halide});
    }
    for (const char* compiler : {"gcc", "clang"}) {
      if (!Contains(settings.peers, compiler)) continue;
      ASSIGN_OR_RETURN(Peer peer, FindPeerWithThreads(compiler, threads));
      std::string missing = peer.missing;
      candidates.push_back(
          {Candidate::Kind::kNaive, compiler, "", threads, std::move(peer), std::move(missing)});
    }
    for (const std::string& strategy : settings.strategies) {
      candidates.push_back({Candidate::Kind::kOurs, "nao-" + strategy, strategy, threads, {}, ""});
    }
  }
  return candidates;
}

// Speed-ups on so many threads are over the first of these that is not missing.
std::string Baseline(const std::vector<Candidate>& candidates, int threads) {
  for (const char* name : {"halide-hand", "gcc", "clang", "nao-none", ""}) {
    for (const Candidate& candidate : candidates) {
      if (candidate.threads != threads || !candidate.missing.empty()) continue;
      if (candidate.name == name || *name == '\0') return WithThreads(candidate.name, threads);
    }
  }
  return WithThreads(candidates.front().name, threads);
}

std::string Command(const Candidate& candidate, const std::string& halide) {
  switch (candidate.kind) {
    case Candidate::Kind::kHalide:
      return StrCat(halide.empty() ? "halide" : halide, ", schedule ", candidate.option);
    case Candidate::Kind::kNaive:
      return StrCat(candidate.peer.command, ", stage after stage");
    case Candidate::Kind::kOurs:
      return StrCat("this compiler, --schedule=", candidate.option,
                    " --contract --reassociate --reciprocal");
  }
  return "";
}

void TimeHalide(const Case& c, const Candidate& candidate, const HalidePeer& halide,
                const FusionSettings& settings, ir::RandomArguments& arguments,
                ComparisonEntry& entry) {
  const absl::StatusOr<HalideTimes> times = halide.Time({.pipeline = std::string(c.pipeline.name),
                                                         .rows = c.rows,
                                                         .cols = c.cols,
                                                         .schedule = candidate.option,
                                                         .threads = candidate.threads,
                                                         .seconds = settings.seconds,
                                                         .limit_seconds = settings.limit_seconds},
                                                        *arguments.arguments().back().tensor);
  if (absl::IsDeadlineExceeded(times.status())) {
    entry.skipped = std::string(times.status().message());
  } else if (!times.ok()) {
    // An auto-scheduler that has no schedule for a pipeline is no mistake of ours.
    const bool automatic = candidate.option == "mullapudi" || candidate.option == "adams";
    (automatic ? entry.skipped : entry.error) = std::string(times.status().message());
  } else {
    entry.time_ns = times->median_ms * 1e6;
    entry.least_ns = times->least_ms * 1e6;
    entry.runs = times->runs;
    entry.compile_ms = times->compile_ms;
  }
}

// What is known of the schedules that are no fusion: each runs every instance once; "none" and "min" stage by stage, so
// that they move what the row's fusion says of the stages as written.
void AddFigures(ComparisonRow& row) {
  const auto fused = std::find_if(row.entries.begin(), row.entries.end(),
                                  [](const ComparisonEntry& e) { return !e.figures.empty(); });
  if (fused == row.entries.end()) return;
  const std::vector<std::pair<std::string, double>> known = fused->figures;
  for (ComparisonEntry& entry : row.entries) {
    const std::string name = SplitThreads(entry.implementation).first;
    if (!entry.figures.empty() || !entry.ran() || !name.starts_with("nao-")) continue;
    const bool is_stage_by_stage = name == "nao-none" || name == "nao-min";
    for (const auto& [figure, value] : known) {
      if (figure == "stages" || figure == "bytes_before") entry.figures.emplace_back(figure, value);
      if (figure == "stages" && is_stage_by_stage) entry.figures.emplace_back("groups", value);
      if (figure == "groups") entry.figures.emplace_back("redundancy", 1);
      if (figure == "bytes_before" && is_stage_by_stage)
        entry.figures.emplace_back("bytes_after", value);
    }
  }
}

// "" if the output agrees with the reference's, but for single elements where values are floats.
std::string FindDifference(const Case& c, const ir::RandomArguments& actual) {
  const std::string difference = ir::FindDisagreement(c.function, actual, c.expected, c.tolerance);
  if (difference.empty() || c.tolerance == 0) return difference;
  const ir::Tensor& found = actual.tensors().back();
  const ir::Tensor& expected = c.expected.tensors().back();
  const int64_t count = expected.element_count();
  double largest = 1;
  for (int64_t i = 0; i < count; ++i) {
    const double magnitude = std::abs(expected.Value(i));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  int64_t outliers = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double a = found.Value(i), b = expected.Value(i);
    const bool near =
        a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= c.tolerance * largest;
    if (!near) ++outliers;
  }
  if (outliers <= count / kElementsPerOutlier) return "";
  return StrCat(difference, "; so do ", outliers, " of ", count, " elements");
}

absl::StatusOr<cases::Executable> CompileNaive(const Case& c, const Candidate& candidate,
                                               ComparisonEntry& entry) {
  ASSIGN_OR_RETURN(const std::string text, PlainC(c.function, {}, {.threads = candidate.threads}));
  ASSIGN_OR_RETURN(cases::Executable executable,
                   MakePeerExecutable(candidate.peer, text, c.function.name));
  entry.compile_ms = executable.compile_ms;
  return executable;
}

ComparisonEntry Measure(const Case& c, const Candidate& candidate, const HalidePeer* halide,
                        const FusionSettings& settings) {
  ComparisonEntry entry;
  entry.implementation = WithThreads(candidate.name, candidate.threads);
  if (!candidate.missing.empty()) {
    entry.skipped = candidate.missing;
    return entry;
  }
  ir::RandomArguments arguments(c.inputs);
  if (candidate.kind == Candidate::Kind::kHalide) {
    TimeHalide(c, candidate, *halide, settings, arguments, entry);
  } else {
    const absl::StatusOr<cases::Executable> executable =
        candidate.kind == Candidate::Kind::kNaive
            ? CompileNaive(c, candidate, entry)
            : CompileScheduled(c.function, candidate.option, candidate.threads, entry);
    if (!executable.ok()) {
      entry.error = std::string(executable.status().message());
    } else {
      TimeEntry(*executable, c.function,
                {.seconds = settings.seconds, .most_seconds = settings.most_seconds}, arguments,
                entry);
    }
  }
  if (entry.ran()) entry.difference = FindDifference(c, arguments);
  return entry;
}

}  // namespace

absl::StatusOr<Comparison> RunFusion(const FusionSettings& settings) {
  RETURN_IF_ERROR(CheckSettings(settings));
  ASSIGN_OR_RETURN(const NameFilter filter, NameFilter::Create(settings.filter));
  std::vector<const Pipeline*> chosen;
  for (const Pipeline& pipeline : kernels::Pipelines()) {
    const std::string name(pipeline.name);
    const bool named = settings.pipelines.empty() || Contains(settings.pipelines, name);
    if (named && filter.Passes(name)) chosen.push_back(&pipeline);
  }
  if (chosen.empty()) {
    return InvalidInput("--filter='", settings.filter, "': no pipeline is named so; the first is '",
                        kernels::Pipelines()[0].name, "'");
  }
  const Clock::time_point start = Clock::now();
  std::optional<HalidePeer> halide;
  std::string no_halide;
  if (std::any_of(settings.peers.begin(), settings.peers.end(),
                  [](const std::string& peer) { return peer.starts_with("halide"); })) {
    absl::StatusOr<HalidePeer> found = HalidePeer::Find(settings.python);
    if (found.ok()) {
      halide.emplace(*std::move(found));
    } else {
      no_halide = std::string(found.status().message());
    }
  }
  ASSIGN_OR_RETURN(const std::vector<Candidate> candidates, MakeCandidates(settings, no_halide));
  if (candidates.empty()) return InvalidInput("expected strategies or peers, found none");

  Comparison result;
  result.suite = kFusionSuite;
  result.title = kFusionTitle;
  result.size = settings.rows > 0 ? StrCat(settings.rows, "x", settings.cols) : settings.size;
  result.filter = settings.filter;
  result.seed = settings.seed;
  result.machine = ProcessorName();
  result.date = Date();
  result.commit = Commit();
  for (const Candidate& candidate : candidates) {
    if (candidate.kind == Candidate::Kind::kOurs && candidate.threads == settings.threads[0]) {
      const absl::StatusOr<ir::Function> tiny =
          kernels::PipelineFunction(*chosen[0], chosen[0]->least_rows, chosen[0]->least_cols);
      RETURN_IF_ERROR(tiny.status());
      RETURN_IF_ERROR(cases::ScheduleFunction(*tiny, candidate.option).status());
    }
    result.implementations.push_back({WithThreads(candidate.name, candidate.threads),
                                      Command(candidate, halide ? halide->description() : ""),
                                      candidate.threads, candidate.missing,
                                      Baseline(candidates, candidate.threads)});
  }
  result.baseline = result.implementations[0].baseline;
  double seconds_before = 0;
  if (settings.known) {
    RETURN_IF_ERROR(WithContext("--resume", CheckSameRun(*settings.known, result)));
    result.date = settings.known->date;
    seconds_before = settings.known->wall_seconds;
  }

  const auto known_row = [&](std::string_view name) -> const ComparisonRow* {
    if (!settings.known) return nullptr;
    for (const ComparisonRow& row : settings.known->rows) {
      if (row.kernel == name) return &row;
    }
    return nullptr;
  };
  const auto total = std::count_if(chosen.begin(), chosen.end(), [&](const Pipeline* pipeline) {
    return known_row(pipeline->name) == nullptr;
  });
  int done = 0;
  for (const Pipeline& pipeline : kernels::Pipelines()) {
    if (const ComparisonRow* row = known_row(pipeline.name)) {
      result.rows.push_back(*row);
      continue;
    }
    if (std::find(chosen.begin(), chosen.end(), &pipeline) == chosen.end()) continue;
    ASSIGN_OR_RETURN(const Case c, MakeCase(pipeline, settings));
    if (halide) {
      std::vector<const ir::Tensor*> inputs;
      for (const ir::Tensor& tensor : c.inputs.tensors()) inputs.push_back(&tensor);
      inputs.pop_back();  // the output
      RETURN_IF_ERROR(halide->SetInputs(inputs));
    }
    ComparisonRow row{.kernel = std::string(pipeline.name),
                      .sizes = {{"rows", c.rows}, {"cols", c.cols}},
                      .entries = {}};
    for (const Candidate& candidate : candidates) {
      row.entries.push_back(Measure(c, candidate, halide ? &*halide : nullptr, settings));
    }
    AddFigures(row);
    result.rows.push_back(std::move(row));
    result.wall_seconds =
        seconds_before + std::chrono::duration<double>(Clock::now() - start).count();
    if (settings.on_row) {
      settings.on_row(++done, static_cast<int>(total), result.rows.back());
    }
    if (settings.save) RETURN_IF_ERROR(settings.save(result));
  }
  result.wall_seconds =
      seconds_before + std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

}  // namespace polynao::benchmarks
