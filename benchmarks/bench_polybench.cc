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
#include "benchmarks/plain_c.h"
#include "benchmarks/provenance.h"
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

absl::StatusOr<cases::Executable> MakePeers(const Case& c, const Peer& peer,
                                            ComparisonEntry& entry) {
  ASSIGN_OR_RETURN(const std::string text, PlainC(c.function, c.integers));
  ASSIGN_OR_RETURN(cases::Executable executable, MakePeerExecutable(peer, text, c.function.name));
  entry.compile_ms = executable.compile_ms;
  return executable;
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

// Puts `row` to the place of its kernel.
ComparisonRow& Insert(ComparisonRow row, std::vector<ComparisonRow>& rows) {
  const auto place = [](const std::string& name) {
    const absl::Span<const PolyBenchKernel> kernels = kernels::PolyBenchKernels();
    return std::find_if(kernels.begin(), kernels.end(),
                        [&](const PolyBenchKernel& kernel) { return kernel.name == name; });
  };
  const auto after = std::find_if(rows.begin(), rows.end(), [&](const ComparisonRow& other) {
    return place(row.kernel) < place(other.kernel);
  });
  return *rows.insert(after, std::move(row));
}

}  // namespace

absl::StatusOr<Comparison> RunPolyBench(const PolyBenchSettings& settings) {
  ASSIGN_OR_RETURN(const NameFilter filter, NameFilter::Create(settings.filter));
  ASSIGN_OR_RETURN(const size_t size, kernels::FindPolyBenchSize(settings.size));
  if (settings.threads < 1) {
    return InvalidInput("--threads: expected 1 or more, found ", settings.threads);
  }
  std::vector<const PolyBenchKernel*> chosen;
  for (const PolyBenchKernel& kernel : kernels::PolyBenchKernels()) {
    if (filter.Passes(std::string(kernel.name))) chosen.push_back(&kernel);
  }
  if (chosen.empty()) {
    return InvalidInput("--filter='", settings.filter, "': no kernel of ", kPolyBenchSuite,
                        " is named so; the first is '", kernels::PolyBenchKernels()[0].name, "'");
  }

  const Clock::time_point start = Clock::now();
  Comparison result;
  result.size = settings.size;
  result.filter = settings.filter;
  result.seed = settings.seed;
  result.machine = ProcessorName();
  result.date = Date();
  result.commit = Commit();
  ASSIGN_OR_RETURN(const std::vector<Peer> peers, FindPeers(settings.peers, settings.threads));
  for (const Peer& peer : peers) {
    result.implementations.push_back({peer.name, peer.command, peer.threads, peer.missing});
  }
  for (const std::string& schedule : settings.schedules) {
    const absl::StatusOr<ir::Function> function = kernels::PolyBenchFunction(*chosen[0]);
    RETURN_IF_ERROR(cases::ScheduleFunction(*function, schedule).status());
    result.implementations.push_back(
        {"nao-" + schedule,
         StrCat("this compiler, --schedule=", schedule, " --contract --reassociate --reciprocal"),
         settings.threads, ""});
  }
  result.baseline = Baseline(result);
  double seconds_before = 0;
  if (settings.known) {
    RETURN_IF_ERROR(WithContext("--resume", CheckSameRun(*settings.known, result)));
    result.date = settings.known->date;
    seconds_before = settings.known->wall_seconds;
    for (const ComparisonRow& row : settings.known->rows) Insert(row, result.rows);
    std::erase_if(chosen, [&](const PolyBenchKernel* kernel) {
      return std::any_of(result.rows.begin(), result.rows.end(),
                         [&](const ComparisonRow& row) { return row.kernel == kernel->name; });
    });
  }
  const auto take_time = [&] {
    result.wall_seconds =
        seconds_before + std::chrono::duration<double>(Clock::now() - start).count();
  };

  int done = 0;
  for (const PolyBenchKernel* kernel : chosen) {
    ASSIGN_OR_RETURN(const Case c, MakeCase(*kernel, size, settings.seed));
    ComparisonRow row{.kernel = std::string(kernel->name), .sizes = {}, .entries = {}};
    for (size_t i = 0; i < c.sizes.size(); ++i) {
      row.sizes.emplace_back(kernel->parameters[i], c.sizes[i]);
    }
    std::optional<ir::RandomArguments> expected;
    for (const Peer& peer : peers) {
      ComparisonEntry& entry = row.entries.emplace_back();
      entry.implementation = peer.name;
      if (!peer.missing.empty()) {
        entry.skipped = peer.missing;
        continue;
      }
      Measure(c, MakePeers(c, peer, entry), settings, expected, entry);
    }
    for (const std::string& schedule : settings.schedules) {
      ComparisonEntry& entry = row.entries.emplace_back();
      entry.implementation = "nao-" + schedule;
      Measure(c, CompileScheduled(c.function, schedule, settings.threads, entry), settings,
              expected, entry);
    }
    const ComparisonRow& placed = Insert(std::move(row), result.rows);
    take_time();
    if (settings.on_row) settings.on_row(++done, static_cast<int>(chosen.size()), placed);
    if (settings.save) RETURN_IF_ERROR(settings.save(result));
  }
  take_time();
  return result;
}

}  // namespace polynao::benchmarks
