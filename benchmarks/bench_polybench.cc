#include "benchmarks/bench_polybench.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/types/span.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/measure.h"
#include "benchmarks/name_filter.h"
#include "benchmarks/peers.h"
#include "cases/executable.h"
#include "cases/schedule.h"
#include "compiler/ir/agreement.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/shapes.h"
#include "kernels/polybench/polybench.h"

namespace polynao::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;
using kernels::PolyBenchKernel;

// Of large data sets: sums are longer than where PolyBenchKernel::tolerance is for.
constexpr double kToleranceFactor = 1e4;

// One kernel: its function, sizes, and inputs.
struct Case {
  const PolyBenchKernel& kernel;
  ir::Function function;
  std::vector<int64_t> sizes;
  ir::IntValues integers;  // the same, by parameter
  ir::RandomArguments inputs;
};

absl::StatusOr<Case> MakeCase(const PolyBenchKernel& kernel, size_t size, uint64_t seed) {
  ASSIGN_OR_RETURN(ir::Function function, kernels::PolyBenchFunction(kernel));
  ir::IntValues integers;
  for (const ir::Param& param : function.params) {
    const auto place = std::find(kernel.parameters.begin(), kernel.parameters.end(), param.name());
    if (param.var && place != kernel.parameters.end()) {
      integers[param.var] = kernel.sizes[size][place - kernel.parameters.begin()];
    }
  }
  ASSIGN_OR_RETURN(ir::RandomArguments inputs,
                   kernels::PolyBenchArguments(kernel, function, kernel.sizes[size], seed));
  return Case{kernel, std::move(function), kernel.sizes[size], std::move(integers),
              std::move(inputs)};
}

// Times the kernel and compares what it leaves with `expected`, or puts it there if nothing is.
void Measure(const Case& c, const absl::StatusOr<cases::Executable>& executable,
             const PolyBenchSettings& settings, std::optional<ir::RandomArguments>& expected,
             ComparisonEntry& entry) {
  if (!executable.ok()) {
    entry.error = std::string(executable.status().message());
    return;
  }
  ir::RandomArguments arguments(c.inputs);
  if (!TimeEntry(*executable, c.function,
                 {.seconds = settings.seconds, .most_seconds = settings.most_seconds}, arguments,
                 entry)) {
    return;
  }
  if (expected) {
    entry.difference = ir::FindDisagreement(c.function, arguments, *expected,
                                            c.kernel.tolerance * kToleranceFactor);
  } else {
    expected.emplace(std::move(arguments));
  }
}

std::string Baseline(const Comparison& result) {
  for (const char* name : {"gcc", "clang"}) {
    for (const ComparisonImplementation& implementation : result.implementations) {
      if (implementation.name == name && implementation.missing.empty()) return name;
    }
  }
  std::string first;
  for (const ComparisonImplementation& implementation : result.implementations) {
    if (implementation.name == "nao-none") return "nao-none";
    if (first.empty() && implementation.missing.empty()) first = implementation.name;
  }
  return first;
}

// The peers' entries, and behind them this compiler's.
absl::StatusOr<ComparisonRow> RowOf(const PolyBenchKernel& kernel, size_t size,
                                    const std::vector<Peer>& peers,
                                    const PolyBenchSettings& settings) {
  ASSIGN_OR_RETURN(const Case c, MakeCase(kernel, size, settings.seed));
  ComparisonRow row{.kernel = std::string(kernel.name), .sizes = {}, .entries = {}};
  for (size_t i = 0; i < c.sizes.size(); ++i) {
    row.sizes.emplace_back(kernel.parameters[i], c.sizes[i]);
  }
  std::optional<ir::RandomArguments> expected;
  for (const Peer& peer : peers) {
    ComparisonEntry& entry = row.entries.emplace_back();
    entry.implementation = peer.name;
    if (!peer.missing.empty()) {
      entry.skipped = peer.missing;
      continue;
    }
    Measure(c, CompilePlainC(c.function, c.integers, peer, {}, entry), settings, expected, entry);
  }
  for (const std::string& schedule : settings.schedules) {
    ComparisonEntry& entry = row.entries.emplace_back();
    entry.implementation = "nao-" + schedule;
    Measure(c, CompileScheduled(c.function, schedule, settings.threads, entry), settings, expected,
            entry);
  }
  return row;
}

}  // namespace

absl::StatusOr<Comparison> RunPolyBench(const PolyBenchSettings& settings) {
  ASSIGN_OR_RETURN(const NameFilter filter, NameFilter::Create(settings.filter));
  ASSIGN_OR_RETURN(const size_t size, kernels::FindPolyBenchSize(settings.size));
  if (settings.threads < 1) {
    return InvalidInput("--threads: expected 1 or more, found ", settings.threads);
  }
  const absl::Span<const PolyBenchKernel> kernels = kernels::PolyBenchKernels();
  std::vector<SuiteRow> rows;
  const PolyBenchKernel* first = nullptr;
  for (const PolyBenchKernel& kernel : kernels) {
    const std::string name(kernel.name);
    rows.push_back({name, filter.Passes(name)});
    if (rows.back().is_chosen && first == nullptr) first = &kernel;
  }
  if (first == nullptr) {
    return InvalidInput("--filter='", settings.filter, "': no kernel of ", kPolyBenchSuite,
                        " is named so; the first is '", kernels[0].name, "'");
  }

  const Clock::time_point start = Clock::now();
  Comparison result;
  result.size = settings.size;
  result.filter = settings.filter;
  result.seed = settings.seed;
  SetProvenance(result);
  ASSIGN_OR_RETURN(const std::vector<Peer> peers, FindPeers(settings.peers, settings.threads));
  for (const Peer& peer : peers) {
    result.implementations.push_back({peer.name, peer.command, peer.threads, peer.missing});
  }
  for (const std::string& schedule : settings.schedules) {
    const absl::StatusOr<ir::Function> function = kernels::PolyBenchFunction(*first);
    RETURN_IF_ERROR(cases::ScheduleFunction(*function, schedule).status());
    result.implementations.push_back(
        {"nao-" + schedule, ScheduleCommand(schedule), settings.threads, ""});
  }
  result.baseline = Baseline(result);
  RETURN_IF_ERROR(AddRows(
      rows, {settings.known, settings.on_row, settings.save}, start,
      [&](size_t i) { return RowOf(kernels[i], size, peers, settings); }, result));
  return result;
}

}  // namespace polynao::benchmarks
