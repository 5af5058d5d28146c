// How fast the way from a tensor expression to simulated cycles is.
//
//   bazel run -c opt //benchmarks:pipeline_benchmark

#include "base/check.h"
#include "benchmark/benchmark.h"
#include "cases/build.h"
#include "cases/machines.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/counts.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/tensor.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "isa/program.h"
#include "kernels/operators.h"
#include "simulator/simulator.h"

namespace polynao {
namespace {

const isa::Machine& Mlu270() {
  static const auto* machine = new isa::Machine(*cases::LoadMachine("mlu270", {}));
  return *machine;
}

const Target& Card() {
  static const auto* target = new Target(*MakeTarget("diannao", &Mlu270()));
  return *target;
}

kernels::OperatorCase Add(std::vector<int64_t> shape) {
  return {.op = "add", .shape = std::move(shape), .dtype = ir::Type::kF16};
}

// Tensor expression to tensor-ISA program.
void CompileAdd(benchmark::State& state) {
  const kernels::OperatorCase c = Add({255, 27, 27});
  for (auto _ : state) {
    absl::StatusOr<cases::BuiltProgram> built = cases::BuildProgram(c, Card(), "compiled");
    POLYNAO_CHECK(built.ok()) << built.status();
    benchmark::DoNotOptimize(built->program.code.data());
  }
}
BENCHMARK(CompileAdd)->Unit(benchmark::kMillisecond);

// Operations that the interpreter counts, each second.
void InterpretAdd(benchmark::State& state) {
  const kernels::OperatorCase c = Add({255, 27, 27});
  Target target;
  target.name = "interp";
  absl::StatusOr<const kernels::Operator*> op = kernels::FindOperator(c);
  absl::StatusOr<ir::Function> function = (*op)->build(c, target);
  POLYNAO_CHECK(function.ok()) << function.status();
  auto interpreter = ir::Interpreter::Create(*function);
  std::vector<ir::Tensor> tensors;
  for (int i = 0; i < 3; ++i) tensors.push_back(ir::RandomTensor(c.dtype, {255 * 27 * 27}, i));
  std::vector<ir::Argument> arguments;
  for (ir::Tensor& tensor : tensors) arguments.push_back(ir::Argument::Of(&tensor));
  ir::Counts counts;
  for (auto _ : state) {
    const absl::Status status = (*interpreter)->Run(arguments, &counts);
    POLYNAO_CHECK(status.ok()) << status;
  }
  state.counters["operations"] =
      benchmark::Counter(static_cast<double>(counts.total()), benchmark::Counter::kIsRate);
}
BENCHMARK(InterpretAdd)->Unit(benchmark::kMillisecond);

// Cycles of the whole card each second: all 16 cores busy, values computed, hazards checked.
void SimulateAdd(benchmark::State& state) {
  const kernels::OperatorCase c = Add({255, 55, 55, 7});
  const int64_t n = 255 * 55 * 55 * 7;
  absl::StatusOr<cases::BuiltProgram> built =
      cases::BuildProgram(c, Card(), state.range(0) == 0 ? "compiled" : "library");
  POLYNAO_CHECK(built.ok()) << built.status();
  std::vector<ir::Tensor> tensors;
  for (int i = 0; i < 3; ++i) tensors.push_back(ir::RandomTensor(c.dtype, {n}, i));
  std::vector<simulator::Argument> arguments;
  for (ir::Tensor& tensor : tensors) arguments.push_back(simulator::Argument::Of(&tensor));
  if (built->program.params.size() > 3) arguments.push_back(simulator::Argument::Scalar(n));
  simulator::RunOptions options;
  options.machine = &Mlu270();
  int64_t cycles = 0;
  for (auto _ : state) {
    absl::StatusOr<simulator::RunResult> result =
        simulator::Run(isa::DianNao(), built->program, arguments, options);
    POLYNAO_CHECK(result.ok()) << result.status();
    cycles += result->cycles;
  }
  // The work is done in child processes, so wall time counts.
  state.counters["cycles"] =
      benchmark::Counter(static_cast<double>(cycles), benchmark::Counter::kIsRate);
}
BENCHMARK(SimulateAdd)
    ->Arg(0)
    ->Arg(1)
    ->ArgName("library")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace polynao

BENCHMARK_MAIN();
