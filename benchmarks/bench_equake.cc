#include "benchmarks/bench_equake.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/median.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/fusion_result.h"
#include "benchmarks/measure.h"
#include "benchmarks/name_filter.h"
#include "benchmarks/peers.h"
#include "cases/executable.h"
#include "cases/schedule.h"
#include "compiler/ir/agreement.h"
#include "compiler/ir/random_arguments.h"
#include "kernels/equake/equake.h"

namespace polynao::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;
using kernels::Equake;

// Of the largest value: sums in another order.
constexpr double kTolerance = 1e-9;

// All implementations run once in each, and the median of their medians counts.
constexpr int kRounds = 7;

struct Candidate {
  std::string name;      // "nao-min", "gcc"
  std::string schedule;  // "": the peer
  int threads = 1;
  Peer peer = {};
};

struct Case {
  const Equake& equake;
  std::string name;  // "equake/train"
  int64_t nodes;
};

absl::StatusOr<std::vector<Case>> CasesOf(const EquakeSettings& settings) {
  ASSIGN_OR_RETURN(const NameFilter filter, NameFilter::Create(settings.filter));
  std::vector<Case> cases;
  for (const Equake& equake : kernels::Equakes()) {
    std::vector<std::pair<std::string, int64_t>> sizes;
    if (settings.size == "all") {
      for (const auto& [name, nodes] : kernels::kEquakeSizes) sizes.emplace_back(name, nodes);
    } else {
      ASSIGN_OR_RETURN(const int64_t nodes, kernels::ParseEquakeNodes(equake, settings.size));
      sizes.emplace_back(settings.size, nodes);
    }
    for (const auto& [name, nodes] : sizes) {
      const std::string row = StrCat(equake.name, "/", name);
      if (filter.Passes(row)) cases.push_back({equake, row, nodes});
    }
  }
  if (cases.empty()) {
    return InvalidInput("--filter='", settings.filter, "': no row of ", kEquakeSuite,
                        " is named so; the first is 'equake/test'");
  }
  return cases;
}

absl::StatusOr<std::vector<Candidate>> CandidatesOf(const EquakeSettings& settings) {
  std::vector<Candidate> candidates;
  for (const int threads : settings.threads) {
    if (threads < 1) return InvalidInput("--threads: expected 1 or more, found ", threads);
    for (const std::string& schedule : settings.schedules) {
      candidates.push_back({"nao-" + schedule, schedule, threads});
    }
    for (const std::string& name : settings.peers) {
      if (name != "gcc" && name != "clang") {
        return absl::NotFoundError(
            StrCat("no compiler to compare with is named '", name, "': expected gcc, clang"));
      }
      ASSIGN_OR_RETURN(Peer peer, FindPeerWithThreads(name, threads));
      candidates.push_back({name, "", threads, std::move(peer)});
    }
  }
  if (candidates.empty()) return InvalidInput("expected schedules or peers, found none");
  return candidates;
}

absl::StatusOr<ComparisonRow> RowOf(const Case& c, const std::vector<Candidate>& candidates,
                                    const EquakeSettings& settings) {
  ASSIGN_OR_RETURN(const ir::Function function, kernels::EquakeFunction(c.equake, c.nodes));
  ASSIGN_OR_RETURN(const ir::RandomArguments inputs,
                   kernels::EquakeArguments(c.equake, function, c.nodes, settings.seed));
  const ir::RandomArguments expected(inputs);
  c.equake.reference(expected.arguments());
  ComparisonRow row{.kernel = c.name, .sizes = {{"nodes", c.nodes}}, .entries = {}};
  std::vector<std::optional<cases::Executable>> executables;
  for (const Candidate& candidate : candidates) {
    ComparisonEntry& entry = row.entries.emplace_back();
    std::optional<cases::Executable>& executable = executables.emplace_back();
    entry.implementation = WithThreads(candidate.name, candidate.threads);
    entry.skipped = candidate.peer.missing;
    if (!entry.skipped.empty()) continue;
    absl::StatusOr<cases::Executable> compiled =
        candidate.schedule.empty()
            ? CompilePlainC(function, {}, candidate.peer, {.threads = candidate.threads}, entry)
            : CompileScheduled(function, candidate.schedule, candidate.threads, entry);
    if (compiled.ok()) {
      executable = *std::move(compiled);
    } else {
      entry.error = std::string(compiled.status().message());
    }
  }
  // In turns: what else the machine does meanwhile slows down all of them.
  std::vector<std::vector<double>> times(candidates.size());
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      ComparisonEntry& entry = row.entries[i];
      if (!executables[i] || !entry.ran()) continue;
      ir::RandomArguments arguments(inputs);
      ComparisonEntry one;
      if (!TimeEntry(*executables[i], function,
                     {.seconds = settings.seconds / kRounds, .most_seconds = settings.most_seconds},
                     arguments, one)) {
        entry.error = one.error;
        continue;
      }
      times[i].push_back(one.time_ns);
      entry.least_ns = round == 0 ? one.least_ns : std::min(entry.least_ns, one.least_ns);
      entry.runs += one.runs;
      if (round == 0) {
        entry.difference = ir::FindDisagreement(function, arguments, expected, kTolerance);
      }
    }
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (times[i].empty()) continue;
    row.entries[i].time_ns = Median(times[i]);
  }
  return row;
}

}  // namespace

absl::StatusOr<Comparison> RunEquakeSuite(const EquakeSettings& settings) {
  ASSIGN_OR_RETURN(const std::vector<Case> cases, CasesOf(settings));
  ASSIGN_OR_RETURN(const std::vector<Candidate> candidates, CandidatesOf(settings));
  const Clock::time_point start = Clock::now();
  Comparison result;
  result.suite = kEquakeSuite;
  result.title = "equake: a time step of an earthquake simulation";
  result.size = settings.size;
  result.filter = settings.filter;
  result.seed = settings.seed;
  SetProvenance(result);
  const std::string& first = candidates[0].name;
  for (const Candidate& candidate : candidates) {
    if (!candidate.schedule.empty()) {
      ASSIGN_OR_RETURN(const ir::Function tiny, kernels::EquakeFunction(cases[0].equake, 2));
      RETURN_IF_ERROR(cases::ScheduleFunction(tiny, candidate.schedule).status());
    }
    result.implementations.push_back(
        {WithThreads(candidate.name, candidate.threads),
         candidate.schedule.empty() ? StrCat(candidate.peer.command, ", as it is written")
                                    : ScheduleCommand(candidate.schedule),
         candidate.threads, candidate.peer.missing, WithThreads(first, candidate.threads)});
  }
  result.baseline = result.implementations[0].name;
  std::vector<SuiteRow> rows;
  for (const Case& c : cases) rows.push_back({c.name});
  RETURN_IF_ERROR(AddRows(
      rows, {settings.known, settings.on_row, settings.save}, start,
      [&](size_t i) { return RowOf(cases[i], candidates, settings); }, result));
  return result;
}

}  // namespace polynao::benchmarks
