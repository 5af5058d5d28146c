// Simulated cycles per second of host time on the programs of each suite: timing alone, and with values.
//
//   bazel run //benchmarks:simulation_benchmark -- --benchmark_filter=timing
//
// One thread; a suite's programs run one after the other, and its rate is all of their cycles over all of their CPU
// time, that of child processes included, which a loaded machine changes less than wall time.
#include <deque>
#include <string>
#include <vector>

#include "base/check.h"
#include "benchmark/benchmark.h"
#include "benchmarks/suites.h"
#include "cases/build.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "compiler/ir/tensor.h"
#include "compiler/target/target.h"
#include "kernels/operators.h"
#include "simulator/simulator.h"
#include "testing/processes.h"

namespace polynao {
namespace {

// A suite's classes compiled for a machine, with elements of one type or of the cases' own.
struct Programs {
  std::string name;
  std::string suite = {};
  std::string op_class = {};  // "": all
  std::string machine = "mlu270";
  std::string dtype = {};  // "": the cases' own
};

struct Compiled {
  cases::BuiltProgram built;
  kernels::OperatorCase operator_case;
};

std::deque<Compiled> Compile(const Programs& what, const isa::Machine& machine) {
  const auto target = MakeTarget("diannao", &machine);
  POLYNAO_CHECK(target.ok()) << target.status();
  const auto suite = benchmarks::FindSuite(what.suite);
  POLYNAO_CHECK(suite.ok()) << suite.status();
  std::deque<Compiled> programs;
  for (const benchmarks::SuiteCase& c : (*suite)->cases) {
    if (!what.op_class.empty() && c.op_class != what.op_class) continue;
    const auto parsed = cases::ParseCase({.op = c.op,
                                          .shape = c.shape,
                                          .dtype = what.dtype.empty() ? c.dtype : what.dtype,
                                          .attributes = c.attributes});
    POLYNAO_CHECK(parsed.ok()) << parsed.status();
    auto built = cases::BuildProgram(*parsed, *target, "compiled");
    POLYNAO_CHECK(built.ok()) << c.Name() << ": " << built.status();
    programs.push_back({*std::move(built), *parsed});
  }
  return programs;
}

void Simulate(benchmark::State& state, const Programs& what, bool timing_only) {
  const auto machine = cases::LoadMachine(what.machine, {});
  POLYNAO_CHECK(machine.ok()) << machine.status();
  const std::deque<Compiled> programs = Compile(what, *machine);
  int64_t cycles = 0;
  for (auto _ : state) {
    double seconds = 0;
    for (const Compiled& program : programs) {
      const auto op = kernels::FindOperator(program.operator_case);
      std::vector<ir::Tensor> tensors;
      for (const kernels::TensorSpec& spec : (*op)->tensors(program.operator_case)) {
        if (timing_only) {
          tensors.push_back(simulator::ShapeOnly(spec.type, spec.shape));
        } else {
          tensors.emplace_back(spec.type, spec.shape);
        }
      }
      simulator::RunOptions options;
      options.machine = &*machine;
      options.timing_only = timing_only;
      const auto arguments = cases::ProgramArguments(program.built, tensors);
      const double start = CpuSeconds();
      const auto result = simulator::Run(isa::DianNao(), program.built.program, arguments, options);
      POLYNAO_CHECK(result.ok()) << result.status();
      cycles += result->cycles;
      seconds += CpuSeconds() - start;
    }
    state.SetIterationTime(seconds);
  }
  state.counters["cycles/s"] =
      benchmark::Counter(static_cast<double>(cycles), benchmark::Counter::kIsRate);
  state.counters["programs"] = static_cast<double>(programs.size());
}

void Register() {
  std::vector<Programs> all;
  for (const std::string op_class : {"binary", "unary", "conv"}) {
    all.push_back(
        {.name = "tensorize48/" + op_class, .suite = "tensorize48", .op_class = op_class});
  }
  all.push_back({.name = "resnet50", .suite = "resnet50"});
  all.push_back({.name = "resnet50_train", .suite = "resnet50_train"});
  all.push_back({.name = "tensorize48/conv/mlu370/f16",
                 .suite = "tensorize48",
                 .op_class = "conv",
                 .machine = "mlu370",
                 .dtype = "f16"});
  for (const Programs& what : all) {
    for (const bool timing_only : {true, false}) {
      benchmark::RegisterBenchmark(
          (what.name + (timing_only ? "/timing" : "/values")).c_str(),
          [=](benchmark::State& state) { Simulate(state, what, timing_only); })
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
}

}  // namespace
}  // namespace polynao

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  polynao::Register();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
