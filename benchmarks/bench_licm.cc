#include "benchmarks/bench_licm.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <limits>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/median.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/name_filter.h"
#include "benchmarks/provenance.h"
#include "compiler/codegen/cuda/emit_cuda.h"
#include "compiler/codegen/cuda/execute_ptx.h"
#include "compiler/codegen/cuda/nvcc.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/static_counts.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "kernels/operators.h"
#include "kernels/topi_cases/cases.h"
#include "nlohmann/json.hpp"

namespace polynao::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

// Pairs of runs of a case: at least, and at most.
constexpr int kFewestPairs = 5;
constexpr int kMostPairs = 500;
constexpr int kPassRuns = 3;

// The architecture that kernels are compiled for.
constexpr char kCudaArch[] = "sm_90";

// One thread: with several, times depend more on the other work of the machine.
codegen::LlvmOptions JitOptions() {
  codegen::LlvmOptions options;
  options.threads = 1;
  return options;
}

// One function of a case without and with the passes.
struct Pair {
  ir::Function baseline;
  ir::Function optimized;
};

bool IsMeasured(const std::string& pass) {
  return std::find(std::begin(kLicmPasses), std::end(kLicmPasses), pass) != std::end(kLicmPasses);
}

absl::StatusOr<std::string> MachineCode(const ir::Function& function) {
  return codegen::EmitLlvm({function.context, {function}}, codegen::LlvmOutput::kAssembly,
                           JitOptions());
}

// Processor time of this thread, in nanoseconds. The programs run on this thread alone, so other work
// on the machine matters only as far as it takes caches and clock rate.
double ThreadNanoseconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// Makes both programs of `c`, and adds their counts and the passes' times to `row`.
absl::StatusOr<Pair> Build(const kernels::OperatorCase& c, const Target& target, LicmRow& row) {
  ASSIGN_OR_RETURN(const kernels::Operator* op, kernels::FindOperator(c));
  Pair pair;
  ASSIGN_OR_RETURN(pair.baseline, op->build(c, target));
  ASSIGN_OR_RETURN(std::vector<PassSpec> pipeline, PipelineFor(target));
  // The measured passes are the last ones, so that the passes before them run once.
  const auto first = std::find_if(pipeline.begin(), pipeline.end(),
                                  [](const PassSpec& pass) { return IsMeasured(pass.name); });
  const absl::Span<const PassSpec> passes = pipeline;
  const size_t before = static_cast<size_t>(first - pipeline.begin());
  RETURN_IF_ERROR(RunPasses(pair.baseline, passes.subspan(0, before), target, {.verify = false}));
  row.nodes += static_cast<int64_t>(ir::NodeCount(pair.baseline.body));
  // The shortest of a few times: other work on the machine only adds to a time.
  std::vector<double> shortest(std::size(kLicmPasses), 0);
  for (int run = 0; run < kPassRuns; ++run) {
    pair.optimized = ir::CloneInto(pair.baseline, std::make_shared<ir::Context>());
    for (const PassSpec& pass : passes.subspan(before)) {
      const auto which = std::find(std::begin(kLicmPasses), std::end(kLicmPasses), pass.name);
      POLYNAO_CHECK(which != std::end(kLicmPasses)) << pass.name;
      const double start = ThreadNanoseconds();
      RETURN_IF_ERROR(RunPasses(pair.optimized, {&pass, 1}, target, {.verify = false}));
      const double ms = (ThreadNanoseconds() - start) / 1e6;
      double& least = shortest[static_cast<size_t>(which - std::begin(kLicmPasses))];
      least = run == 0 ? ms : std::min(least, ms);
    }
  }
  RETURN_IF_ERROR(ir::Verify(pair.optimized));
  for (size_t i = 0; i < shortest.size(); ++i) row.pass_ms[i].second += shortest[i];

  for (const bool with : {false, true}) {
    ASSIGN_OR_RETURN(const ir::StaticCounts counts,
                     ir::CountStatically(with ? pair.optimized : pair.baseline));
    Add(with ? row.optimized_counts : row.baseline_counts, counts.counts);
    row.exact_counts = row.exact_counts && counts.exact;
  }
  const std::vector<kernels::TensorSpec> tensors = op->tensors(c);
  int64_t elements = 1;
  for (int64_t extent : tensors.back().shape) elements *= extent;
  row.output_elements += elements;
  return pair;
}

absl::StatusOr<double> TimeOnce(const codegen::CompiledFunction& program,
                                const std::vector<ir::Argument>& arguments) {
  const double start = ThreadNanoseconds();
  RETURN_IF_ERROR(program.Run(arguments));
  return ThreadNanoseconds() - start;
}

// Compiles both programs of `c`, runs them in turn, compares their outputs, and adds their times to
// `row`. Returns the median of the quotients of their times.
absl::StatusOr<double> Measure(const kernels::OperatorCase& c, const Pair& pair, uint64_t seed,
                               double seconds, std::mutex& timing, LicmRow& row) {
  if (!ir::StructurallyEqual(pair.baseline, pair.optimized)) {
    ASSIGN_OR_RETURN(const std::string without, MachineCode(pair.baseline));
    ASSIGN_OR_RETURN(const std::string with, MachineCode(pair.optimized));
    row.same_code = row.same_code && without == with;
  }
  ASSIGN_OR_RETURN(const auto baseline_program, codegen::Compile(pair.baseline, JitOptions()));
  ASSIGN_OR_RETURN(const auto optimized_program, codegen::Compile(pair.optimized, JitOptions()));
  ASSIGN_OR_RETURN(const kernels::Operator* op, kernels::FindOperator(c));
  std::vector<ir::Tensor> tensors = kernels::MakeTensors(*op, c, seed, kernels::ValuesFor(*op));
  ASSIGN_OR_RETURN(std::vector<std::vector<int64_t>> shapes,
                   ir::ParameterShapes(pair.baseline, {}));
  std::vector<ir::Argument> arguments;
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].shape = shapes[i];
    arguments.push_back(ir::Argument::Of(&tensors[i]));
  }

  const std::lock_guard<std::mutex> lock(timing);
  RETURN_IF_ERROR(baseline_program->Run(arguments));
  const std::vector<uint8_t> expected = tensors.back().bytes;
  std::fill(tensors.back().bytes.begin(), tensors.back().bytes.end(), 0);
  RETURN_IF_ERROR(optimized_program->Run(arguments));
  row.values_agree = row.values_agree && tensors.back().bytes == expected;

  std::vector<double> baseline, optimized, quotient;
  const Clock::time_point start = Clock::now();
  while (static_cast<int>(quotient.size()) < kMostPairs) {
    const bool enough = std::chrono::duration<double>(Clock::now() - start).count() > seconds;
    if (enough && static_cast<int>(quotient.size()) >= kFewestPairs) break;
    // The two programs take turns in going first.
    double times[2];
    for (size_t k = 0; k < 2; ++k) {
      const size_t which = (k + quotient.size()) % 2;
      ASSIGN_OR_RETURN(times[which],
                       TimeOnce(which == 0 ? *baseline_program : *optimized_program, arguments));
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

// Whether a kind of PTX instruction computes with integers: "add.s32", "setp.u64", "shl.b32".
bool IsInteger(std::string_view kind) {
  const std::string_view type = kind.substr(std::min(kind.size(), kind.rfind('.') + 1));
  return type.size() >= 2 && (type[0] == 's' || type[0] == 'u' || type[0] == 'b') &&
         type.find_first_not_of("0123456789", 1) == std::string_view::npos &&
         !kind.starts_with("ld") && !kind.starts_with("st") && !kind.starts_with("cvt") &&
         !kind.starts_with("dp4a");
}

// Compiles all programs of a case as one CUDA file, baselines and optimized ones side by side.
absl::Status CountCode(const std::vector<Pair>& pairs, LicmRow& row) {
  std::vector<ir::Function> functions;
  for (size_t i = 0; i < pairs.size(); ++i) {
    ASSIGN_OR_RETURN(const codegen::CudaModule without, codegen::EmitCuda(pairs[i].baseline));
    ASSIGN_OR_RETURN(const codegen::CudaModule with, codegen::EmitCuda(pairs[i].optimized));
    row.same_code = row.same_code && without.source == with.source;
    functions.push_back(pairs[i].baseline);
    functions.back().name = StrCat("baseline", i);
    functions.push_back(pairs[i].optimized);
    functions.back().name = StrCat("optimized", i);
  }
  if (const absl::Status found = codegen::FindNvcc().status(); !found.ok()) {
    row.no_code = std::string(found.message());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const codegen::CudaModule module, codegen::EmitCuda(functions));
  ASSIGN_OR_RETURN(const codegen::CudaBinary binary,
                   codegen::CompileWithNvcc(module.source, {.arch = kCudaArch}));
  row.baseline_code.emplace();
  row.optimized_code.emplace();
  const auto code_of = [&](const std::string& kernel) -> LicmCode& {
    return kernel.starts_with("baseline") ? *row.baseline_code : *row.optimized_code;
  };
  for (const codegen::CudaFunction& function : module.functions) {
    for (const codegen::CudaKernel& kernel : function.kernels) {
      ASSIGN_OR_RETURN(const codegen::PtxExecution execution,
                       codegen::ExecutePtx(binary.ptx, kernel.name, kernel.grid, kernel.block));
      LicmCode& code = code_of(kernel.name);
      code.exact_execution = code.exact_execution && execution.exact;
      for (const auto& [kind, count] : execution.counts) {
        if (kind == "all") code.executed += count;
        if (IsInteger(kind)) code.executed_integer += count;
      }
    }
  }
  for (const codegen::CompiledKernel& kernel : binary.kernels) {
    LicmCode& code = code_of(kernel.name);
    for (const auto& [kind, count] : kernel.ptx) {
      if (kind == "all") code.ptx += count;
      if (IsInteger(kind)) code.ptx_integer += count;
      if (kind == "bra") code.ptx_branches += count;
    }
    code.machine_bytes += kernel.code_bytes;
    code.registers = std::max(code.registers, kernel.registers);
    code.spill_bytes += kernel.spill_bytes;
  }
  return absl::OkStatus();
}

absl::Status RunRow(const kernels::TopiCase& c, const LicmBenchSettings& settings,
                    std::mutex& timing, LicmRow& row) {
  row.values_agree = row.same_code = true;
  for (const char* pass : kLicmPasses) row.pass_ms.emplace_back(pass, 0);
  Target target;
  target.name = settings.target;
  std::vector<Pair> pairs;
  for (const kernels::OperatorCase& function : c.functions) {
    ASSIGN_OR_RETURN(pairs.emplace_back(), Build(function, target, row));
  }
  if (IsGpu(settings.target)) return CountCode(pairs, row);
  // The mean of the programs' speed-ups, weighted by the baselines' times.
  double weighted = 0;
  const double seconds = settings.seconds_per_case / static_cast<double>(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    const double baseline_before = row.baseline_ns;
    ASSIGN_OR_RETURN(const double speedup,
                     Measure(c.functions[i], pairs[i], settings.seed, seconds, timing, row));
    weighted += (row.baseline_ns - baseline_before) / speedup;
  }
  row.speedup = row.baseline_ns / weighted;
  return absl::OkStatus();
}

// "Intel(R) Xeon(R) Processor, LLVM, 1 thread".
std::string MachineText(std::string_view target) {
  if (IsGpu(target)) return StrCat("nvcc for ", kCudaArch, "; nothing was run");
  return StrCat(ProcessorName(), ", LLVM, 1 thread");
}

}  // namespace

nlohmann::ordered_json LicmRun(const LicmBenchSettings& settings) {
  return {{"suite", kLicmSuite},
          {"target", settings.target},
          {"machine", MachineText(settings.target)},
          {"commit", Commit()},
          {"seed", settings.seed}};
}

absl::StatusOr<LicmResult> RunLicmSuite(const LicmBenchSettings& settings) {
  if (settings.jobs < 1) {
    return InvalidInput("--jobs: expected 1 or more, found ", settings.jobs);
  }
  ASSIGN_OR_RETURN(const NameFilter filter, NameFilter::Create(settings.filter));
  if (settings.target != LicmBenchSettings().target && !IsGpu(settings.target)) {
    return InvalidInput("--target: expected cpu or cuda, found '", settings.target, "'");
  }
  LicmResult result;
  std::vector<const kernels::TopiCase*> cases;
  int done = 0;
  std::vector<size_t> to_run;
  for (const kernels::TopiCase& c : kernels::TopiCases()) {
    LicmRow row;
    row.op = c.op;
    row.id = c.id;
    row.shape = kernels::ShapesText(c.functions[0]);
    row.functions = static_cast<int>(c.functions.size());
    if (!filter.Passes(row.Name())) continue;
    const auto known =
        std::find_if(settings.known.begin(), settings.known.end(),
                     [&](const LicmRow& other) { return other.Name() == row.Name(); });
    if (known != settings.known.end()) {
      row = *known;
      ++done;
    } else {
      to_run.push_back(cases.size());
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
  const auto work = [&] {
    for (size_t i = next++; i < to_run.size(); i = next++) {
      LicmRow& row = result.rows[to_run[i]];
      const absl::Status status = RunRow(*cases[to_run[i]], settings, timing, row);
      if (!status.ok()) row.error = std::string(status.message());
      const std::lock_guard<std::mutex> lock(reporting);
      ++done;
      if (settings.on_row) settings.on_row(done, static_cast<int>(cases.size()), row);
    }
  };
  std::vector<std::thread> threads;
  const size_t thread_count = std::min(to_run.size(), static_cast<size_t>(settings.jobs));
  for (size_t i = 1; i < thread_count; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();

  result.wall_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  result.machine = MachineText(settings.target);
  result.target = settings.target;
  result.date = Date();
  result.commit = Commit();
  result.filter = settings.filter;
  result.summary = SummarizeLicm(result.rows);
  return result;
}

}  // namespace polynao::benchmarks
