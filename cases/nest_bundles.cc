#include "cases/nest_bundles.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/status.h"
#include "base/text.h"
#include "cases/executable.h"
#include "cases/machines.h"
#include "cases/schedule.h"
#include "compiler/codegen/cuda/emit_cuda.h"
#include "compiler/codegen/cuda/nvcc.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/text.h"
#include "compiler/ir/type.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/facts.h"
#include "compiler/passes/registry.h"

namespace polynao::cases {
namespace {

// Of the largest value: nvcc contracts products and sums, and kernels add thousands of products.
double ToleranceOf(ir::Type type) {
  if (type == ir::Type::kF64) return 1e-7;
  if (type == ir::Type::kF32) return 1e-4;
  return 3e-2;
}

// As the pipeline for CUDA makes it, in kernels. The scheduler sees the function with symbolic sizes: its linear programs take
// minutes where constraints have large constants.
absl::StatusOr<codegen::CudaModule> CompileVariant(const ir::Function& function,
                                                   const ir::RandomArguments& arguments,
                                                   const std::string& schedule, bool copies) {
  ASSIGN_OR_RETURN(const Scheduled scheduled, ScheduleForCuda(function, schedule, copies));
  ASSIGN_OR_RETURN(ir::Function constant, WithScalars(scheduled.function, arguments));
  ASSIGN_OR_RETURN(const Target target, MakeTarget("cuda", nullptr));
  ASSIGN_OR_RETURN(const std::vector<PassSpec> passes, PipelineFor(target));
  RETURN_IF_ERROR(RunPasses(constant, passes, target, {.verify = false}));
  return codegen::EmitCuda(constant);
}

}  // namespace

absl::StatusOr<ir::Function> WithScalars(const ir::Function& function,
                                         const ir::RandomArguments& arguments) {
  ir::Context& c = *function.context;
  ir::VarMap vars;
  ir::IntValues integers;
  for (size_t i = 0; i < function.params.size(); ++i) {
    const ir::Var var = function.params[i].var;
    if (!var) continue;
    const ir::Argument& value = arguments.arguments()[i];
    vars[var] = ir::IsFloat(var.type()) ? c.Float(var.type(), value.float_value)
                                        : c.Int(var.type(), value.int_value);
    if (ir::IsInt(var.type())) integers[var] = value.int_value;
  }
  for (ir::Expr fact : ParameterFacts(function)) {
    const absl::StatusOr<int64_t> holds = ir::EvaluateInt(fact, integers);
    if (holds.ok() && *holds == 0) {
      return InvalidInput("function '", function.name, "': '@assert(", ir::Print(fact),
                          ")' does not hold for these scalars");
    }
  }
  ASSIGN_OR_RETURN(const auto shapes, ir::ParameterShapes(function, integers));
  ir::Function result = function;
  result.params.clear();
  // What was asserted of the scalars holds of these.
  std::erase_if(result.attributes, [](const ir::Attribute& attribute) {
    return std::any_of(attribute.values.begin(), attribute.values.end(),
                       [](const auto& value) { return std::holds_alternative<ir::Expr>(value); });
  });
  ir::BufferMap buffers;
  for (const ir::Param& param : function.params) {
    if (!param.buffer) continue;
    ir::Param& made = result.params.emplace_back(param);
    std::vector<ir::Expr> extents;
    for (const int64_t extent : shapes[result.params.size() - 1]) {
      const ir::Type type = param.buffer->extents[extents.size()].type();
      extents.push_back(c.Int(type, extent));
    }
    made.buffer = c.NewBuffer(param.buffer->name, param.buffer->type, extents, param.buffer->scope);
    buffers[param.buffer] = made.buffer;
  }
  result.body = ir::Substitute(function.body, vars, buffers);
  RETURN_IF_ERROR(ir::Verify(result));
  return result;
}

absl::StatusOr<std::vector<codegen::BundleFile>> BuildNestBundles(
    const ir::Function& function, const ir::RandomArguments& arguments, const std::string& title,
    const NestBundleSettings& settings) {
  // Before anything runs on arguments that the function does not allow.
  RETURN_IF_ERROR(WithScalars(function, arguments).status());
  codegen::BundleFacts facts;
  facts.operator_case["op"] = title;
  facts.operator_case["schedule"] = settings.schedule;
  nlohmann::ordered_json scalars = nlohmann::ordered_json::object();
  codegen::BundleReference& reference = facts.reference.emplace();
  ir::RandomArguments computed(arguments);
  ASSIGN_OR_RETURN(const Executable executable, MakeExecutable(function, {.target = "cpu"}));
  RETURN_IF_ERROR(executable.run(computed.arguments()));
  reference.tolerance = 0;
  for (size_t i = 0; i < function.params.size(); ++i) {
    const ir::Param& param = function.params[i];
    const ir::Argument& argument = arguments.arguments()[i];
    if (param.var) {
      const std::string name(param.name());
      if (ir::IsFloat(param.var.type())) {
        scalars[name] = argument.float_value;
      } else {
        scalars[name] = argument.int_value;
      }
      continue;
    }
    facts.bytes += static_cast<double>(argument.tensor->bytes.size());
    reference.tolerance = std::max(reference.tolerance, ToleranceOf(param.buffer->type));
    if (param.access != ir::Access::kOut) {
      reference.inputs.push_back(*argument.tensor);
      reference.seeds.push_back(settings.seed * 1000 + i);
    }
    if (param.access != ir::Access::kIn) {
      reference.outputs.push_back(*computed.arguments()[i].tensor);
    }
  }
  facts.operator_case["scalars"] = std::move(scalars);
  std::vector<std::pair<std::string, bool>> variants = {{"", true}};
  if (settings.pair) variants = {{"baseline/", false}, {"optimised/", true}};
  std::vector<codegen::BundleFile> files;
  for (const auto& [folder, copies] : variants) {
    ASSIGN_OR_RETURN(const codegen::CudaModule module,
                     CompileVariant(function, arguments, settings.schedule, copies));
    facts.operator_case["copies"] = copies;
    if (settings.arch != "none" && codegen::FindNvcc().ok()) {
      ASSIGN_OR_RETURN(facts.binary, codegen::CompileWithNvcc(module.source, settings.arch));
      facts.arch = settings.arch;
    }
    ASSIGN_OR_RETURN(std::vector<codegen::BundleFile> bundle, codegen::MakeBundle(module, facts));
    for (codegen::BundleFile& file : bundle) {
      files.push_back({StrCat(folder, file.name), std::move(file.contents)});
    }
  }
  return files;
}

}  // namespace polynao::cases
