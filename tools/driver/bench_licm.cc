#include "tools/driver/bench_licm.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <regex>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/static_counts.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/registry.h"
#include "compiler/target/target.h"
#include "kernels/te/operators.h"
#include "kernels/topi/cases.h"

namespace polynao::driver {
namespace {

using benchmarks::LicmRow;
using Clock = std::chrono::steady_clock;

// Pairs of runs of a case: at least, and at most.
constexpr int kFewestPairs = 5;
constexpr int kMostPairs = 500;
constexpr int kPassRuns = 3;

// One thread: with several, times tell more about what else the machine does.
codegen::LlvmOptions JitOptions() {
  codegen::LlvmOptions options;
  options.threads = 1;
  return options;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// One function of a case without and with the passes, ready to run.
struct Pair {
  std::unique_ptr<codegen::CompiledFunction> baseline;
  std::unique_ptr<codegen::CompiledFunction> optimized;
  std::vector<ir::Tensor> tensors;
  size_t inputs = 0;
};

bool IsMeasured(const std::string& pass) {
  return std::find(std::begin(benchmarks::kLicmPasses), std::end(benchmarks::kLicmPasses), pass) !=
         std::end(benchmarks::kLicmPasses);
}

void AddCounts(ir::Counts& sum, const ir::Counts& more) {
  sum.loads += more.loads;
  sum.stores += more.stores;
  sum.int_add += more.int_add;
  sum.int_mul += more.int_mul;
  sum.int_div += more.int_div;
  sum.int_compare += more.int_compare;
  sum.logic += more.logic;
  sum.float_ops += more.float_ops;
  sum.casts += more.casts;
  sum.branches += more.branches;
  sum.iterations += more.iterations;
  sum.instructions += more.instructions;
}

absl::StatusOr<std::string> MachineCode(const ir::Function& function) {
  return codegen::EmitLlvm({function.context, {function}}, codegen::LlvmOutput::kAssembly,
                           JitOptions());
}

// Compiles both programs of `c` and adds what is known without running them to `row`.
absl::StatusOr<Pair> Prepare(const kernels::OperatorCase& c, uint64_t seed, LicmRow& row) {
  Target target;
  target.name = "cpu";
  ASSIGN_OR_RETURN(const kernels::Operator* op, kernels::FindOperator(c));
  ASSIGN_OR_RETURN(ir::Function baseline, op->build(c, target));
  ASSIGN_OR_RETURN(std::vector<PassSpec> pipeline, PipelineFor(target));
  // The four passes stand side by side, so that what precedes them runs once.
  const auto first = std::find_if(pipeline.begin(), pipeline.end(),
                                  [](const PassSpec& pass) { return IsMeasured(pass.name); });
  const std::vector<PassSpec> before(pipeline.begin(), first);
  const std::vector<PassSpec> rest(first, pipeline.end());
  RETURN_IF_ERROR(RunPasses(baseline, before, target, {.verify = false}));
  row.nodes += static_cast<int64_t>(ir::NodeCount(baseline.body));
  // The passes take the shortest of a few times, as whatever else the machine does adds to them.
  ir::Function optimized;
  std::vector<double> shortest(std::size(benchmarks::kLicmPasses),
                               std::numeric_limits<double>::infinity());
  PipelineOptions options;
  options.on_step = [&](const PipelineOptions::Step& step) {
    for (size_t i = 0; i < shortest.size(); ++i) {
      if (step.pass->name != benchmarks::kLicmPasses[i]) continue;
      shortest[i] = std::min(shortest[i], step.milliseconds);
    }
  };
  for (int run = 0; run < kPassRuns; ++run) {
    optimized = ir::CloneInto(baseline, std::make_shared<ir::Context>());
    RETURN_IF_ERROR(RunPasses(optimized, rest, target, options));
  }
  for (size_t i = 0; i < shortest.size(); ++i) row.pass_ms[i].second += shortest[i];
  options.on_step = {};
  options.skip.assign(std::begin(benchmarks::kLicmPasses), std::end(benchmarks::kLicmPasses));
  RETURN_IF_ERROR(RunPasses(baseline, rest, target, options));

  for (const bool with : {false, true}) {
    ASSIGN_OR_RETURN(const ir::StaticCounts counts,
                     ir::CountStatically(with ? optimized : baseline));
    AddCounts(with ? row.optimized_counts : row.baseline_counts, counts.counts);
    row.exact_counts = row.exact_counts && counts.exact;
  }
  if (!ir::StructurallyEqual(baseline, optimized)) {
    ASSIGN_OR_RETURN(const std::string without, MachineCode(baseline));
    ASSIGN_OR_RETURN(const std::string with, MachineCode(optimized));
    row.same_code = row.same_code && without == with;
  }

  Pair pair;
  ASSIGN_OR_RETURN(pair.baseline, codegen::Compile(baseline, JitOptions()));
  ASSIGN_OR_RETURN(pair.optimized, codegen::Compile(optimized, JitOptions()));
  pair.tensors = kernels::MakeTensors(*op, c, seed);
  pair.inputs = pair.tensors.size() - 1;
  row.output_elements += pair.tensors.back().element_count();
  ASSIGN_OR_RETURN(std::vector<std::vector<int64_t>> shapes, ir::ParameterShapes(baseline, {}));
  for (size_t i = 0; i < pair.tensors.size(); ++i) pair.tensors[i].shape = shapes[i];
  return pair;
}

// Nanoseconds that this thread has had a processor for. Programs run on it alone, so what else the
// machine does counts only as far as it takes caches and clock rate.
double ThreadNanoseconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

absl::StatusOr<double> TimeOnce(const codegen::CompiledFunction& program,
                                const std::vector<ir::Argument>& arguments) {
  const double start = ThreadNanoseconds();
  RETURN_IF_ERROR(program.Run(arguments));
  return ThreadNanoseconds() - start;
}

// Runs both programs in turn, compares what they store, and adds their times to `row`. Returns the
// median of the quotients of their times.
absl::StatusOr<double> Measure(Pair& pair, double seconds, LicmRow& row) {
  std::vector<ir::Argument> arguments;
  for (ir::Tensor& tensor : pair.tensors) arguments.push_back(ir::Argument::Of(&tensor));
  RETURN_IF_ERROR(pair.baseline->Run(arguments));
  const std::vector<uint8_t> expected = pair.tensors.back().bytes;
  std::fill(pair.tensors.back().bytes.begin(), pair.tensors.back().bytes.end(), 0);
  RETURN_IF_ERROR(pair.optimized->Run(arguments));
  row.values_agree = row.values_agree && pair.tensors.back().bytes == expected;

  std::vector<double> baseline, optimized, quotient;
  const Clock::time_point start = Clock::now();
  while (static_cast<int>(quotient.size()) < kMostPairs) {
    const bool enough = std::chrono::duration<double>(Clock::now() - start).count() > seconds;
    if (enough && static_cast<int>(quotient.size()) >= kFewestPairs) break;
    // Who goes first changes from pair to pair.
    double times[2];
    for (size_t k = 0; k < 2; ++k) {
      const size_t which = (k + quotient.size()) % 2;
      ASSIGN_OR_RETURN(times[which],
                       TimeOnce(which == 0 ? *pair.baseline : *pair.optimized, arguments));
    }
    baseline.push_back(times[0]);
    optimized.push_back(times[1]);
    quotient.push_back(times[0] / times[1]);
  }
  row.baseline_ns += Median(baseline);
  row.optimized_ns += Median(optimized);
  row.samples += static_cast<int>(quotient.size());
  return Median(std::move(quotient));
}

absl::Status RunRow(const kernels::TopiCase& c, const LicmBenchSettings& settings,
                    std::mutex& timing, LicmRow& row) {
  row.values_agree = row.same_code = true;
  for (const char* pass : benchmarks::kLicmPasses) row.pass_ms.emplace_back(pass, 0);
  // Of a case of several programs, their quotients weighted by the baselines' times.
  double weighted = 0;
  for (const kernels::OperatorCase& function : c.functions) {
    const double baseline_before = row.baseline_ns;
    ASSIGN_OR_RETURN(Pair pair, Prepare(function, settings.seed, row));
    const std::lock_guard<std::mutex> lock(timing);
    const double seconds = settings.seconds_per_case / static_cast<double>(c.functions.size());
    ASSIGN_OR_RETURN(const double speedup, Measure(pair, seconds, row));
    weighted += (row.baseline_ns - baseline_before) / speedup;
  }
  row.speedup = row.baseline_ns / weighted;
  return absl::OkStatus();
}

// "Intel(R) Xeon(R) Processor, LLVM, 1 thread".
std::string MachineText() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line, model = "unknown processor";
  while (std::getline(cpuinfo, line)) {
    if (line.starts_with("model name")) {
      model = line.substr(std::min(line.size(), line.find(':') + 2));
      break;
    }
  }
  return StrCat(model, ", LLVM, 1 thread");
}

std::string Date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32];
  return std::string(text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc));
}

// What git calls the checkout, or nothing.
std::string Commit() {
  const char* root = std::getenv("POLYNAO_ROOT");
  if (root == nullptr) return "";
  FILE* git = popen(
      StrCat("git -C '", root, "' describe --always --dirty --exclude='*' 2>/dev/null").c_str(),
      "r");
  if (git == nullptr) return "";
  char text[64] = {};
  const size_t size = std::fread(text, 1, sizeof(text) - 1, git);
  pclose(git);
  return std::string(text, size > 0 ? size - 1 : 0);
}

}  // namespace

absl::StatusOr<benchmarks::LicmResult> RunLicmSuite(const LicmBenchSettings& settings) {
  if (settings.jobs < 1) {
    return InvalidInput("--jobs: expected 1 or more, found ", settings.jobs);
  }
  std::regex pattern;
  try {
    pattern = std::regex(settings.filter);
  } catch (const std::regex_error& error) {
    return InvalidInput("--filter='", settings.filter,
                        "': expected a text or a regular expression, found one that is malformed (",
                        error.what(), ")");
  }
  benchmarks::LicmResult result;
  std::vector<const kernels::TopiCase*> cases;
  for (const kernels::TopiCase& c : kernels::TopiCases()) {
    LicmRow row;
    row.op = c.op;
    row.id = c.id;
    row.shape = kernels::ShapesText(c.functions[0]);
    row.functions = static_cast<int>(c.functions.size());
    const std::string name = row.Name();
    if (name.find(settings.filter) == std::string::npos && !std::regex_search(name, pattern)) {
      continue;
    }
    result.rows.push_back(std::move(row));
    cases.push_back(&c);
  }
  if (cases.empty()) {
    return InvalidInput("--filter='", settings.filter, "': no case of ", kLicmSuite,
                        " is named so; the first is '", kernels::TopiCases()[0].op, "/",
                        kernels::TopiCases()[0].id, "'");
  }

  const Clock::time_point start = Clock::now();
  std::atomic<size_t> next = 0;
  std::mutex timing, reporting;
  int done = 0;
  const auto work = [&] {
    for (size_t i = next++; i < cases.size(); i = next++) {
      LicmRow& row = result.rows[i];
      const absl::Status status = RunRow(*cases[i], settings, timing, row);
      if (!status.ok()) row.error = std::string(status.message());
      const std::lock_guard<std::mutex> lock(reporting);
      ++done;
      if (settings.on_row) settings.on_row(done, static_cast<int>(cases.size()), row);
    }
  };
  std::vector<std::thread> threads;
  const size_t thread_count = std::min(cases.size(), static_cast<size_t>(settings.jobs));
  for (size_t i = 1; i < thread_count; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();

  result.wall_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  result.machine = MachineText();
  result.date = Date();
  result.commit = Commit();
  result.filter = settings.filter;
  result.summary = benchmarks::SummarizeLicm(result.rows);
  return result;
}

}  // namespace polynao::driver
