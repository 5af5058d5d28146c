#include "tests/random_programs/random_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "compiler/codegen/c/run_c.h"
#include "compiler/codegen/differential.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/affine_program_for_test.h"
#include "compiler/passes/pass_test_util.h"
#include "compiler/passes/same_meaning.h"
#include "compiler/poly/arrange/machine_for_test.h"
#include "compiler/poly/order/strategies.h"
#include "compiler/poly/poly.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "testing/processes.h"

namespace polynao {
namespace {

using codegen::CompiledC;
using codegen::CompiledFunction;

// ---- programs -----------------------------------------------------------------------------------

// Small ones: what is wrong shows in a few statements, and a program's costs grow with its size.
ir::Function ProgramOf(uint64_t seed, bool schedules) {
  ir::Function f;
  if (schedules && seed % 4 != 0) {
    f = RandomAffineProgram(seed, {.max_depth = static_cast<int>(2 + seed % 3),
                                   .max_extent = 5,
                                   .thread_loops = false,
                                   .symbolic = true,
                                   .symbolic_bounds = seed % 5 == 0,
                                   .pragmas = false,
                                   .several_buffers = seed % 8 != 0});
  } else {
    f = ir::RandomProgram(seed,
                          {.stores = static_cast<int>(1 + seed % 3),
                           .depth = static_cast<int>(3 + seed % 2),
                           .expression_depth = seed % 16 == 0 ? 3 : static_cast<int>(1 + seed % 2),
                           .inexact_intrinsics = false,
                           .max_iterations = 500,
                           .repetition = seed % 5 == 0 ? 40 : 0,
                           .edges = seed % 8 != 0});
  }
  f.name = StrCat("random", seed);
  return f;
}

const Target& TargetOf(uint64_t seed) {
  static const auto* cpu = new Target{.name = "cpu"};
  static const auto* cuda = new Target{.name = "cuda"};
  switch (seed % 4) {
    case 0:
      return *cuda;
    case 1:
      return TestTarget();
    default:
      return *cpu;
  }
}

// Two programs of three go through the pipeline of a target, others through three passes.
std::vector<PassSpec> PassesOf(uint64_t seed) {
  if (seed % 3 != 0) {
    const auto pipeline = PipelineFor(TargetOf(seed));
    POLYNAO_CHECK(pipeline.ok()) << pipeline.status();
    return *pipeline;
  }
  std::vector<PassSpec> specs;
  for (uint64_t k = 1; k <= 3; ++k) {
    const absl::Span<const PassInfo> all = Passes();
    const PassInfo& pass = all[(seed / 3 * k * 7919 + k) % all.size()];
    if (pass.name == "schedule")
      continue;  // seconds for some programs: they have a run of their own
    specs.push_back({.name = std::string(pass.name), .options = {}});
  }
  return specs;
}

// Those that need no text.
std::vector<std::string_view> StrategyNames() {
  std::vector<std::string_view> names = {"none"};
  for (const poly::NamedStrategy& strategy : poly::Strategies()) {
    if (strategy.is_search) names.push_back(strategy.name);
  }
  return names;
}

poly::ScheduleOptions ScheduleOptionsOf(uint64_t seed) {
  poly::ScheduleOptions options;
  static const auto& names = *new std::vector<std::string_view>(StrategyNames());
  options.strategy = std::string(names[seed % names.size()]);
  options.machine = poly::SmallMachine(seed % 3 == 0 ? 4 : 8);
  if (seed % 7 < 3) options.tile = {{static_cast<int64_t>(seed % 7 + 2)}};
  options.join_all = seed % 11 < 5;
  options.max_operations = 100'000;
  return options;
}

// ---- one stage of one program -------------------------------------------------------------------

// The function after passes or a schedule; nothing if a pass refuses it. Sets `wrong` where the result is none at all.
std::optional<ir::Function> Rewritten(const ir::Function& before, RandomStage stage, uint64_t seed,
                                      std::string* wrong) {
  ir::Function after = ir::CloneInto(before, std::make_shared<ir::Context>());
  if (stage == RandomStage::kSchedule) {
    const auto report = poly::Schedule(after, ScheduleOptionsOf(seed));
    if (!report.ok()) {
      *wrong = report.status().ToString();
    } else if (!report->internal_errors.empty()) {
      *wrong = report->internal_errors[0];
    }
  } else if (const absl::Status status = RunPasses(after, PassesOf(seed), TargetOf(seed));
             !status.ok()) {
    if (absl::IsInternal(status)) *wrong = status.ToString();
    return std::nullopt;
  }
  if (wrong->empty()) {
    if (const absl::Status status = ir::Verify(after); !status.ok()) *wrong = status.ToString();
  }
  return after;
}

// Which form of the program is compiled: that of the CPU's pipeline, if it had that.
bool IsCompiledAfterPasses(uint64_t seed, bool schedules) {
  return schedules || (seed % 3 != 0 && IsProcessor(TargetOf(seed).name));
}

std::string Difference(const ir::Function& f, const ir::RandomArguments& expected,
                       const ir::RandomArguments& actual) {
  size_t place = 0;
  for (const ir::Param& param : f.params) {
    if (!param.buffer) continue;
    const int64_t i = ir::FirstDifference(expected.tensors()[place], actual.tensors()[place], 0);
    if (i >= 0) return StrCat("element ", i, " of ", param.name(), " differs");
    ++place;
  }
  return "";
}

// A program with what it must store.
struct Case {
  uint64_t seed;
  ir::Function function;
  ir::RandomArguments arguments;
  ir::RandomArguments expected;
};

// Nothing if the interpreter stops.
std::optional<Case> MakeCase(uint64_t seed, const ir::Function& function) {
  Case c = {seed, function, codegen::RandomProgramArguments(function, seed),
            codegen::RandomProgramArguments(function, seed)};
  const auto interpreter = ir::Interpreter::Create(function, {.max_operations = 2'000'000});
  if (!interpreter.ok() || !(*interpreter)->Run(c.expected.arguments()).ok()) return std::nullopt;
  return c;
}

template <typename Run>
std::string Compare(const Case& c, const Run& run) {
  ir::RandomArguments actual = c.arguments;
  const absl::Status status = run(actual.arguments());
  if (!status.ok()) return status.ToString();
  return Difference(c.function, c.expected, actual);
}

std::string CompareInterpreted(const Case& c, const ir::Function& after) {
  ir::RandomArguments actual = c.arguments;
  if (const absl::Status shaped = actual.Reshape(after); !shaped.ok()) return shaped.ToString();
  const ir::MeaningOptions options = MeaningOptionsFor(TargetOf(c.seed));
  const auto interpreter = ir::Interpreter::Create(after, {.intrinsics = options.instructions});
  if (!interpreter.ok()) return interpreter.status().ToString();
  const absl::Status status = (*interpreter)->Run(actual.arguments());
  if (!status.ok()) return status.ToString();
  return Difference(c.function, c.expected, actual);
}

// Most modules as they are emitted, since our own code generator is what is tested; some optimised, as a mistake of
// ours (a promise that does not hold) may show only then.
int OptimizationOf(uint64_t first_seed) { return first_seed / 100 % 4 == 3 ? 2 : 0; }

absl::StatusOr<std::vector<ir::Runner>> CompileFor(RandomStage stage,
                                                   absl::Span<const ir::Function> functions,
                                                   int optimization) {
  std::vector<ir::Runner> runners;
  if (stage == RandomStage::kCpu) {
    auto compiled =
        codegen::CompileAll(functions, {.optimization_level = optimization, .threads = 1});
    if (!compiled.ok()) return compiled.status();
    for (auto& one : *compiled) {
      runners.push_back([code = std::shared_ptr(std::move(one))](auto a) { return code->Run(a); });
    }
    return runners;
  }
  // What C leaves undefined ends the process, before a compiler makes something of it.
  auto compiled = CompiledC::Create(
      functions, {.optimization_level = optimization,
                  .openmp = false,
                  .flags = {"-w", "-fsanitize=signed-integer-overflow,shift,integer-divide-by-zero",
                            "-fsanitize-undefined-trap-on-error"}});
  if (!compiled.ok()) return compiled.status();
  const std::shared_ptr<CompiledC> code = *std::move(compiled);
  for (size_t i = 0; i < functions.size(); ++i) {
    runners.push_back([code, i](auto a) { return code->Run(i, a); });
  }
  return runners;
}

// What is wrong with a program in one stage; "" if nothing is, or if the program stops.
std::string TryStage(uint64_t seed, const ir::Function& function, RandomStage stage, bool schedules,
                     int optimization) {
  const std::optional<Case> c = MakeCase(seed, function);
  if (!c) return "";
  std::string wrong;
  if (stage == RandomStage::kPasses || stage == RandomStage::kSchedule) {
    const auto after = Rewritten(function, stage, seed, &wrong);
    if (!wrong.empty() || !after) return wrong;
    return CompareInterpreted(*c, *after);
  }
  ir::Function compiled = function;
  if (IsCompiledAfterPasses(seed, schedules)) {
    const RandomStage first = schedules ? RandomStage::kSchedule : RandomStage::kPasses;
    const auto after = Rewritten(function, first, seed, &wrong);
    if (!wrong.empty() || !after || !CompareInterpreted(*c, *after).empty()) return "";
    compiled = *after;
  }
  const auto runners = CompileFor(stage, {compiled}, optimization);
  if (!runners.ok()) return runners.status().ToString();
  return Compare(*c, (*runners)[0]);
}

// ---- alone --------------------------------------------------------------------------------------

constexpr int kSecondsAlone = 20;

std::string TryAlone(uint64_t seed, const ir::Function& function, RandomStage stage, bool schedules,
                     int optimization) {
  const ProcessOutcome outcome = InProcess(
      [&] { return TryStage(seed, function, stage, schedules, optimization); }, kSecondsAlone);
  return outcome.crashed ? outcome.how : outcome.output;
}

// ---- batches ------------------------------------------------------------------------------------

// Counters and findings as text, from a batch's process to that which waits.
std::string Write(const RandomTally& tally) {
  std::ostringstream out;
  out << tally.programs << ' ' << tally.changed << ' ' << tally.refused;
  for (int64_t n : tally.compared) out << ' ' << n;
  out << '\n';
  for (const RandomFinding& finding : tally.findings) {
    out << finding.seed << ' ' << static_cast<int>(finding.stage) << ' ' << finding.what.size()
        << ' ' << finding.what << '\n';
  }
  return out.str();
}

RandomTally Read(const std::string& text) {
  std::istringstream in(text);
  RandomTally tally;
  in >> tally.programs >> tally.changed >> tally.refused;
  for (int64_t& n : tally.compared) in >> n;
  RandomFinding finding;
  int stage = 0;
  size_t size = 0;
  while (in >> finding.seed >> stage >> size) {
    in.get();
    finding.stage = static_cast<RandomStage>(stage);
    finding.what.resize(size);
    in.read(finding.what.data(), static_cast<std::streamsize>(size));
    tally.findings.push_back(finding);
  }
  return tally;
}

RandomTally RunBatch(uint64_t first, uint64_t last, bool schedules) {
  RandomTally tally;
  const auto find = [&](uint64_t seed, RandomStage stage, std::string what) {
    tally.findings.push_back({seed, stage, std::move(what)});
  };
  const RandomStage rewrites = schedules ? RandomStage::kSchedule : RandomStage::kPasses;
  std::vector<Case> cases;
  std::vector<ir::Function> compiled;
  for (uint64_t seed = first; seed <= last; ++seed) {
    ++tally.programs;
    const ir::Function program = ProgramOf(seed, schedules);
    std::optional<Case> c = MakeCase(seed, program);
    if (!c) {
      // Affine programs may stop; the others promise that they do not.
      if (!schedules) find(seed, rewrites, "the interpreter stops");
      continue;
    }
    std::string wrong;
    const auto after = Rewritten(program, rewrites, seed, &wrong);
    if (wrong.empty() && after) {
      wrong = CompareInterpreted(*c, *after);
      ++tally.compared[static_cast<size_t>(rewrites)];
      tally.changed += !ir::StructurallyEqual(program, *after);
    }
    if (!after) ++tally.refused;
    if (!wrong.empty()) find(seed, rewrites, wrong);
    const bool use_after = after && wrong.empty() && IsCompiledAfterPasses(seed, schedules);
    if (IsCompiledAfterPasses(seed, schedules) && !use_after) continue;
    compiled.push_back(use_after ? *after : program);
    compiled.back().name = program.name;
    cases.push_back(*std::move(c));
  }
  for (const RandomStage stage : {RandomStage::kCpu, RandomStage::kC}) {
    const auto runners = CompileFor(stage, compiled, OptimizationOf(first));
    if (!runners.ok()) {
      find(first, stage, StrCat("the batch does not compile: ", runners.status().ToString()));
      continue;
    }
    for (size_t i = 0; i < cases.size(); ++i) {
      const std::string wrong = Compare(cases[i], (*runners)[i]);
      ++tally.compared[static_cast<size_t>(stage)];
      if (!wrong.empty()) find(cases[i].seed, stage, wrong);
    }
  }
  return tally;
}

// The finding with the program that shows it, as small as it gets.
RandomFinding Explained(const RandomFinding& finding, const RandomRunOptions& options,
                        int optimization) {
  constexpr int kMostTries = 300;
  RandomFinding result = finding;
  ir::Function program = ProgramOf(finding.seed, options.schedules);
  const auto wrong = [&](const ir::Function& f) {
    return TryAlone(finding.seed, f, finding.stage, options.schedules, optimization);
  };
  if (options.shrink && !wrong(program).empty()) {
    program = ir::ShrinkProgram(
        program, [&](const ir::Function& f) { return !wrong(f).empty(); }, kMostTries);
    result.what = wrong(program);
  }
  std::string scalars;
  for (const auto& [name, value] : ir::EdgeScalars(program, finding.seed)) {
    StrAppend(&scalars, " ", name, " = ", value.int_value);
  }
  StrAppend(&result.what, scalars.empty() ? "" : ", with", scalars, "\n", ir::Print(program));
  return result;
}

}  // namespace

std::string_view StageName(RandomStage stage) {
  switch (stage) {
    case RandomStage::kPasses:
      return "passes";
    case RandomStage::kSchedule:
      return "schedule";
    case RandomStage::kCpu:
      return "cpu";
    case RandomStage::kC:
      return "c";
  }
  POLYNAO_UNREACHABLE(static_cast<int>(stage));
}

void RandomTally::Add(const RandomTally& other) {
  programs += other.programs;
  changed += other.changed;
  refused += other.refused;
  for (size_t i = 0; i < compared.size(); ++i) compared[i] += other.compared[i];
  findings.insert(findings.end(), other.findings.begin(), other.findings.end());
}

std::string RandomTally::ToString(const RandomRunOptions& options) const {
  std::string text = StrCat("seeds ", options.first_seed, " to ",
                            options.first_seed + static_cast<uint64_t>(programs) - 1, ": ",
                            programs, " programs, ", changed, " changed, ", refused,
                            " refused by a pass; compared with the interpreter:");
  for (int i = 0; i < kRandomStages; ++i) {
    if (compared[static_cast<size_t>(i)] == 0) continue;
    StrAppend(&text, " ", StageName(static_cast<RandomStage>(i)), " ",
              compared[static_cast<size_t>(i)]);
  }
  const auto per_program = [&](double total) {
    return std::round(1e4 * total / std::max(1.0, static_cast<double>(programs))) / 10;
  };
  StrAppend(&text, "; ", static_cast<int64_t>(seconds), " s, ", per_program(seconds),
            " ms a program, ", per_program(cpu_seconds), " ms of CPU; ", findings.size(),
            " findings");
  return text;
}

RandomTally RunRandomPrograms(const RandomRunOptions& options,
                              const std::function<void(const RandomTally&)>& on_batch) {
  codegen::FindCCompiler(false).IgnoreError();  // once for all processes
  TestTarget();
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = CpuSeconds();
  RandomTally all;
  const uint64_t end = options.first_seed + static_cast<uint64_t>(options.programs);
  for (uint64_t first = options.first_seed; first < end;
       first += static_cast<uint64_t>(options.batch)) {
    const uint64_t last = std::min(first + static_cast<uint64_t>(options.batch), end) - 1;
    const int optimization = OptimizationOf(first);
    const auto run = [&](uint64_t from, uint64_t to, int seconds) {
      return InProcess([&] { return Write(RunBatch(from, to, options.schedules)); }, seconds);
    };
    const ProcessOutcome outcome = run(first, last, options.seconds_per_batch);
    RandomTally batch;
    if (!outcome.crashed) {
      batch = Read(outcome.output);
    } else {
      // One by one, to find which program it is.
      for (uint64_t seed = first; seed <= last; ++seed) {
        const ProcessOutcome one = run(seed, seed, kSecondsAlone);
        if (!one.crashed) {
          batch.Add(Read(one.output));
          continue;
        }
        ++batch.programs;
        const ir::Function program = ProgramOf(seed, options.schedules);
        RandomFinding finding = {
            seed, options.schedules ? RandomStage::kSchedule : RandomStage::kPasses, one.how};
        for (const RandomStage stage : {finding.stage, RandomStage::kCpu, RandomStage::kC}) {
          const std::string how = TryAlone(seed, program, stage, options.schedules, optimization);
          if (how.empty()) continue;
          finding = {seed, stage, how};
          break;
        }
        batch.findings.push_back(finding);
      }
    }
    for (RandomFinding& finding : batch.findings) {
      finding = Explained(finding, options, optimization);
    }
    all.Add(batch);
    all.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    all.cpu_seconds = CpuSeconds() - cpu_start;
    if (on_batch) on_batch(all);
  }
  return all;
}

}  // namespace polynao
