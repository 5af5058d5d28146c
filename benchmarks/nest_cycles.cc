#include "benchmarks/nest_cycles.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/name_filter.h"
#include "benchmarks/nests_text.h"
#include "cases/build.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "cases/nest_on_card.h"
#include "cases/run_case.h"
#include "cases/run_nest.h"
#include "compiler/ir/text.h"
#include "compiler/target/target.h"
#include "isa/bound.h"
#include "kernels/pipelines/pipelines.h"
#include "kernels/polybench/polybench.h"
#include "simulator/simulator.h"

namespace polynao::benchmarks {
namespace {

constexpr double kMostScalarStores = 3e6;
constexpr size_t kMedium = 2;
constexpr int64_t kImage = 1024;

// A function with arguments for its scalars, or an operator's case.
struct Program {
  std::string name;
  std::function<absl::StatusOr<ir::Function>()> function = {};
  std::vector<std::string> arguments = {};
  cases::CaseText operator_case = {};
};

absl::StatusOr<std::vector<Program>> Programs() {
  std::vector<Program> programs;
  ASSIGN_OR_RETURN(const ir::Module module, ir::ParseModule(std::string(NestsText()), "nests.nir"));
  for (const ir::Function& function : module.functions) {
    programs.push_back({.name = StrCat("nest/", function.name),
                        .function = [function] { return absl::StatusOr<ir::Function>(function); }});
  }
  for (const kernels::Pipeline& pipeline : kernels::Pipelines()) {
    if (pipeline.name != "unsharp" && pipeline.name != "harris") continue;
    programs.push_back({.name = StrCat("pipeline/", pipeline.name), .function = [&pipeline] {
                          return kernels::PipelineFunction(pipeline, kImage, kImage);
                        }});
  }
  for (const kernels::PolyBenchKernel& kernel : kernels::PolyBenchKernels()) {
    Program program = {.name = StrCat("polybench/", kernel.name)};
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      program.arguments.push_back(StrCat(kernel.parameters[i], "=", kernel.sizes[kMedium][i]));
    }
    for (const auto& [name, value] : kernel.scalars) {
      program.arguments.push_back(StrCat(name, "=", value));
    }
    program.function = [&kernel] {
      return ir::ParseFunction(absl::StrReplaceAll(ToAbsl(kernel.text), {{"f64", "f32"}}));
    };
    programs.push_back(std::move(program));
  }
  const auto add = [&](const char* op, const char* shape, const char* type,
                       std::vector<std::string> attributes = {}) {
    std::string name = StrCat("operator/", op);
    for (const std::string& attribute : attributes) StrAppend(&name, "/", attribute);
    programs.push_back({.name = std::move(name)});
    cases::CaseText& text = programs.back().operator_case;
    text.op = op, text.shape = shape, text.dtype = type;
    text.attributes = std::move(attributes);
  };
  add("add", "1000", "f16");
  add("matmul", "1024x1024,1024x1024", "i8", {"out=i32"});
  add("conv2d", "58x58x64,64x3x3x64", "i8", {"out=i32", "pad=0"});
  add("softmax", "1024x1024", "f16");
  add("softmax", "1024x1024", "f16", {"axis=0"});
  add("layer_norm", "1024x1024", "f16");
  add("rms_norm", "1024x1024", "f16");
  add("group_norm", "1x56x56x256", "f16", {"groups=32"});
  add("instance_norm", "1x56x56x256", "f16");
  add("transpose", "1024x1024", "f16");
  add("flip", "1024x1024", "f16");
  add("attention", "8x512x64", "f16");
  add("conv2d_transpose", "28x28x128,64x4x4x128", "f16", {"pad=1"});
  return programs;
}

absl::Status MeasureFunction(const Program& program, const Target& target, CaseCycles& result) {
  ASSIGN_OR_RETURN(const ir::Function function, program.function());
  ASSIGN_OR_RETURN(const std::vector<ir::Argument> arguments,
                   cases::ScalarArguments(function, program.arguments));
  ASSIGN_OR_RETURN(const cases::NestOnCard nest,
                   cases::CompileForCard(function, arguments, target));
  result.scalar_stores = cases::ScalarStores(nest.function);
  if (const double stores = cases::StoredElements(nest.function.body); stores > kMostScalarStores) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("not simulated: the scalar unit stores about %.0f elements", stores));
  }
  std::vector<ir::Tensor> tensors;
  std::vector<simulator::Argument> of_run;
  isa::Work work;
  tensors.reserve(nest.program.params.size());
  for (const isa::ProgramParam& param : nest.program.params) {
    if (param.is_temporary) continue;
    tensors.push_back(simulator::ShapeOnly(param.type, param.shape));
    of_run.push_back(simulator::Argument::Of(&tensors.back()));
    int64_t bytes = ir::ByteSize(param.type);
    for (const int64_t extent : param.shape) bytes *= extent;
    work.gmem_bytes += bytes;
  }
  simulator::RunOptions options;
  options.machine = target.machine;
  ASSIGN_OR_RETURN(const simulator::RunResult run,
                   simulator::RunForTiming(*target.instructions, nest.program, of_run, options));
  ASSIGN_OR_RETURN(const isa::Bound bound, isa::BoundOf(*target.machine, work));
  result.cycles = run.cycles;
  result.bound = bound.cycles;
  return absl::OkStatus();
}

absl::Status MeasureOperator(const Program& program, const CyclesSettings& settings,
                             const Target& target, CaseCycles& result) {
  ASSIGN_OR_RETURN(const kernels::OperatorCase c, cases::ParseCase(program.operator_case, target));
  cases::CaseSettings of_case;
  of_case.config = settings.config;
  of_case.overrides = settings.overrides;
  of_case.check_values = false;
  of_case.timing_only = true;
  ASSIGN_OR_RETURN(const cases::CaseReport report, cases::RunCase(c, of_case));
  result.cycles = report.simulated->cycles;
  result.bound = report.bound_cycles;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<CaseCycles>> MeasureNestCycles(const CyclesSettings& settings) {
  ASSIGN_OR_RETURN(const isa::Machine machine,
                   cases::LoadMachine(settings.config, settings.overrides));
  ASSIGN_OR_RETURN(const Target target, MakeTarget("diannao", &machine));
  ASSIGN_OR_RETURN(const NameFilter filter, NameFilter::Create(settings.filter));
  ASSIGN_OR_RETURN(const std::vector<Program> programs, Programs());
  std::vector<CaseCycles> results;
  for (const Program& program : programs) {
    if (!filter.Passes(program.name)) continue;
    CaseCycles result = {.machine = machine.name, .suite = kNestSuite, .name = program.name};
    const absl::Status status = program.function
                                    ? MeasureFunction(program, target, result)
                                    : MeasureOperator(program, settings, target, result);
    if (!status.ok()) result.failure = std::string(status.message());
    results.push_back(std::move(result));
    if (settings.on_case) {
      settings.on_case(static_cast<int>(results.size()), static_cast<int>(programs.size()),
                       results.back());
    }
  }
  if (!results.empty()) return results;
  return InvalidInput("--filter='", settings.filter, "': no case of ", kNestSuite,
                      " has it in its name; the first is '", programs[0].name, "'");
}

}  // namespace polynao::benchmarks
