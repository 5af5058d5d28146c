#include "benchmarks/bench_fusion.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/fusion_result.h"
#include "benchmarks/halide_peer.h"
#include "benchmarks/measure.h"
#include "benchmarks/name_filter.h"
#include "benchmarks/peers.h"
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
      return ScheduleCommand(candidate.option);
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
            ? CompilePlainC(c.function, {}, candidate.peer, {.threads = candidate.threads}, entry)
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

absl::StatusOr<ComparisonRow> RowOf(const Pipeline& pipeline,
                                    const std::vector<Candidate>& candidates, HalidePeer* halide,
                                    const FusionSettings& settings) {
  ASSIGN_OR_RETURN(const Case c, MakeCase(pipeline, settings));
  if (halide != nullptr) {
    std::vector<const ir::Tensor*> inputs;
    for (const ir::Tensor& tensor : c.inputs.tensors()) inputs.push_back(&tensor);
    inputs.pop_back();  // the output
    RETURN_IF_ERROR(halide->SetInputs(inputs));
  }
  ComparisonRow row{.kernel = std::string(pipeline.name),
                    .sizes = {{"rows", c.rows}, {"cols", c.cols}},
                    .entries = {}};
  for (const Candidate& candidate : candidates) {
    row.entries.push_back(Measure(c, candidate, halide, settings));
  }
  AddFigures(row);
  return row;
}

// An error, "" where `settings` does not compare with Halide: why it is missing.
absl::StatusOr<HalidePeer> FindHalide(const FusionSettings& settings) {
  for (const std::string& peer : settings.peers) {
    if (peer.starts_with("halide")) return HalidePeer::Find(settings.python);
  }
  return absl::NotFoundError("");
}

// A result without rows. Errors: a strategy that there is not; `pipeline` is any.
absl::StatusOr<Comparison> ResultWithoutRows(const FusionSettings& settings,
                                             const std::vector<Candidate>& candidates,
                                             const std::string& halide, const Pipeline& pipeline) {
  Comparison result;
  result.suite = kFusionSuite;
  result.title = kFusionTitle;
  result.size = settings.rows > 0 ? StrCat(settings.rows, "x", settings.cols) : settings.size;
  result.filter = settings.filter;
  result.seed = settings.seed;
  SetProvenance(result);
  for (const Candidate& candidate : candidates) {
    if (candidate.kind == Candidate::Kind::kOurs && candidate.threads == settings.threads[0]) {
      ASSIGN_OR_RETURN(
          const ir::Function tiny,
          kernels::PipelineFunction(pipeline, pipeline.least_rows, pipeline.least_cols));
      RETURN_IF_ERROR(cases::ScheduleFunction(tiny, candidate.option).status());
    }
    result.implementations.push_back({WithThreads(candidate.name, candidate.threads),
                                      Command(candidate, halide), candidate.threads,
                                      candidate.missing, Baseline(candidates, candidate.threads)});
  }
  result.baseline = result.implementations[0].baseline;
  return result;
}

}  // namespace

absl::StatusOr<Comparison> RunFusion(const FusionSettings& settings) {
  RETURN_IF_ERROR(CheckSettings(settings));
  ASSIGN_OR_RETURN(const NameFilter filter, NameFilter::Create(settings.filter));
  const absl::Span<const Pipeline> pipelines = kernels::Pipelines();
  std::vector<SuiteRow> rows;
  const Pipeline* first = nullptr;
  for (const Pipeline& pipeline : pipelines) {
    const std::string name(pipeline.name);
    const bool named = settings.pipelines.empty() || Contains(settings.pipelines, name);
    rows.push_back({name, named && filter.Passes(name)});
    if (rows.back().is_chosen && first == nullptr) first = &pipeline;
  }
  if (first == nullptr) {
    return InvalidInput("--filter='", settings.filter, "': no pipeline is named so; the first is '",
                        pipelines[0].name, "'");
  }
  const Clock::time_point start = Clock::now();
  absl::StatusOr<HalidePeer> found = FindHalide(settings);
  HalidePeer* const halide = found.ok() ? &*found : nullptr;
  ASSIGN_OR_RETURN(const std::vector<Candidate> candidates,
                   MakeCandidates(settings, std::string(found.status().message())));
  if (candidates.empty()) return InvalidInput("expected strategies or peers, found none");
  ASSIGN_OR_RETURN(Comparison result,
                   ResultWithoutRows(settings, candidates,
                                     halide != nullptr ? halide->description() : "", *first));
  RETURN_IF_ERROR(AddRows(
      rows, {settings.known, settings.on_row, settings.save}, start,
      [&](size_t i) { return RowOf(pipelines[i], candidates, halide, settings); }, result));
  return result;
}

}  // namespace polynao::benchmarks
