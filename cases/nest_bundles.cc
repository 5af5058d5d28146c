#include "cases/nest_bundles.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/status.h"
#include "base/text.h"
#include "cases/executable.h"
#include "cases/schedule.h"
#include "compiler/codegen/cuda/emit_cuda.h"
#include "compiler/ir/assertions.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/type.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"

namespace polynao::cases {
namespace {

// Of the largest value: nvcc contracts products and sums, and kernels add thousands of products.
double ToleranceOf(ir::Type type) {
  if (type == ir::Type::kF64) return 1e-7;
  if (type == ir::Type::kF32) return 1e-4;
  return 3e-2;
}

// Of integers that are made of floats: indices into tables, and pixels, may come out one away.
constexpr double kRoundedTolerance = 1e-3;

bool ComputesFloats(const ir::Function& function) {
  bool computes = false;
  ir::ForEachExprIn(function.body, [&](ir::Expr e) { computes |= ir::IsFloat(e.type()); });
  return computes;
}

struct Variant {
  codegen::CudaModule module;
  std::vector<std::string> notes;  // of the schedule
};

// As the pipeline for CUDA makes it, in kernels. The scheduler sees the function with symbolic sizes: its linear
// programs take minutes where constraints have large constants.
absl::StatusOr<Variant> CompileVariant(const ir::Function& function,
                                       const ir::RandomArguments& arguments,
                                       const std::string& schedule, bool copies) {
  ASSIGN_OR_RETURN(const Scheduled scheduled, ScheduleForCuda(function, schedule, copies));
  ASSIGN_OR_RETURN(ir::Function constant, WithScalars(scheduled.function, arguments));
  ASSIGN_OR_RETURN(const Target target, MakeTarget("cuda", nullptr));
  ASSIGN_OR_RETURN(const std::vector<PassSpec> passes, PipelineFor(target));
  RETURN_IF_ERROR(RunPasses(constant, passes, target, {.verify = false}));
  ASSIGN_OR_RETURN(codegen::CudaModule module, codegen::EmitCuda(constant));
  return Variant{std::move(module), scheduled.notes};
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
  RETURN_IF_ERROR(ir::CheckAssertions(function, arguments.arguments()));
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

absl::StatusOr<std::vector<codegen::OutputFile>> BuildNestBundles(
    const ir::Function& function, const ir::RandomArguments& arguments, const std::string& title,
    const NestBundleSettings& settings) {
  // Before anything runs on arguments that the function does not allow.
  RETURN_IF_ERROR(WithScalars(function, arguments).status());
  codegen::BundleFacts facts;
  facts.operator_case["op"] = title;
  nlohmann::ordered_json scalars = nlohmann::ordered_json::object();
  codegen::BundleReference& reference = facts.reference.emplace();
  ir::RandomArguments computed(arguments);
  ASSIGN_OR_RETURN(const Executable executable,
                   MakeExecutable(function, {.target = "cpu", .checks = settings.checks}));
  RETURN_IF_ERROR(executable.run(computed.arguments()));
  reference.tolerance = 0;
  if (ComputesFloats(function)) reference.integer_tolerance = kRoundedTolerance;
  if (settings.pixel_levels) reference.pixels = {settings.seed, *settings.pixel_levels};
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
  std::vector<NestVariant> variants = settings.variants;
  if (variants.empty() && settings.pair) {
    variants = {{"baseline/", settings.schedule, false}, {"optimised/", settings.schedule, true}};
  } else if (variants.empty()) {
    variants = {{"", settings.schedule, true}};
  }
  std::vector<codegen::OutputFile> files;
  for (const auto& [folder, schedule, copies] : variants) {
    ASSIGN_OR_RETURN(const Variant variant, CompileVariant(function, arguments, schedule, copies));
    const codegen::CudaModule& module = variant.module;
    facts.operator_case["schedule"] = schedule;
    facts.operator_case["copies"] = copies;
    facts.operator_case["notes"] = variant.notes;
    ASSIGN_OR_RETURN(facts.binary, codegen::CompileIfThereIsNvcc(module.source, settings.nvcc));
    facts.arch = settings.nvcc.arch;
    ASSIGN_OR_RETURN(std::vector<codegen::OutputFile> bundle, codegen::MakeBundle(module, facts));
    for (codegen::OutputFile& file : bundle) {
      files.push_back({StrCat(folder, file.name), std::move(file.contents)});
    }
  }
  return files;
}

}  // namespace polynao::cases
