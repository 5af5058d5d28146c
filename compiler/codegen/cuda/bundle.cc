#include "compiler/codegen/cuda/bundle.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "compiler/codegen/cuda/bundle_places.h"
#include "compiler/codegen/cuda/launches.h"
#include "compiler/ir/random_pixel.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/random_value.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/type.h"

namespace polynao::codegen {
namespace {

using nlohmann::ordered_json;

// A row of launches takes about 30 bytes of text.
constexpr size_t kMostBundleLaunches = 1'000'000;

absl::StatusOr<std::vector<int64_t>> ConstantExtents(ir::Buffer buffer) {
  std::vector<int64_t> extents;
  for (ir::Expr extent : buffer->extents) {
    const absl::StatusOr<int64_t> value = ir::EvaluateInt(extent, {});
    if (!value.ok()) {
      return InvalidInput("bundle: '", buffer->name, "' has an extent that is not constant");
    }
    extents.push_back(std::max<int64_t>(0, *value));
  }
  return extents;
}

// Whether the elements are those of UniformFloat and UniformInt.
bool IsUniform(const ir::Tensor& tensor, uint64_t seed) {
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    const auto place = static_cast<uint64_t>(i);
    const bool same =
        ir::IsFloat(tensor.type)
            ? tensor.Float(i) == ir::RoundFloat(tensor.type, ir::UniformFloat(seed, place))
            : tensor.Int(i) == ir::WrapInt(tensor.type, ir::UniformInt(tensor.type, seed, place));
    if (!same) return false;
  }
  return true;
}

bool IsPixels(const ir::Tensor& tensor, const BundleReference::Pixels& pixels) {
  if (ir::IsInt(tensor.type) && pixels.levels <= 0) return false;
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    const auto place = static_cast<uint64_t>(i);
    const bool same =
        ir::IsFloat(tensor.type)
            ? tensor.Float(i) == ir::RoundFloat(tensor.type, ir::PixelFloat(pixels.seed, place))
            : tensor.Int(i) ==
                  ir::WrapInt(tensor.type, ir::PixelInt(pixels.levels, pixels.seed, place));
    if (!same) return false;
  }
  return true;
}

// Whether each kernel runs once, in order, with a grid of constant extents.
bool IsPlainSequence(const CudaFunction& function) {
  if (function.host.size() != function.kernels.size()) return false;
  for (size_t i = 0; i < function.host.size(); ++i) {
    if (function.host[i].around || function.host[i].kernel != i) return false;
    for (ir::Expr extent : function.kernels[i].grid_extents) {
      if (extent) return false;
    }
  }
  return true;
}

// One row for each launch: the kernel's number, its grid, the values of its arguments that are scalars.
absl::StatusOr<ordered_json> LaunchesJson(const CudaFunction& function) {
  ordered_json rows = ordered_json::array();
  RETURN_IF_ERROR(ForEachLaunch(function, {}, [&](const CudaLaunch& launch) -> absl::Status {
    if (rows.size() == kMostBundleLaunches) {
      return InvalidInput("bundle: '", function.name, "' has more than ", kMostBundleLaunches,
                          " launches");
    }
    ordered_json row = {launch.kernel, launch.grid[0], launch.grid[1], launch.grid[2]};
    for (int64_t value : launch.host_values) row.push_back(value);
    rows.push_back(std::move(row));
    return absl::OkStatus();
  }));
  return rows;
}

ordered_json KernelJson(const CudaKernel& kernel, const std::optional<CudaBinary>& binary) {
  ordered_json json;
  json["name"] = kernel.name;
  json["grid"] = kernel.grid;
  json["block"] = kernel.block;
  json["shared_bytes"] = kernel.shared_bytes;
  json["barriers"] = kernel.barriers;
  json["arguments"] = kernel.arguments;
  if (!binary) return json;
  for (const CompiledKernel& compiled : binary->kernels) {
    if (compiled.name != kernel.name) continue;
    json["registers"] = compiled.registers;
    json["spill_bytes"] = compiled.spill_bytes;
    json["ptx"] = compiled.ptx;
    if (!compiled.sass.empty()) json["sass"] = compiled.sass;
  }
  return json;
}

// What an output must be: samples, and sums over runs of elements, by which no run is left out.
ordered_json CheckJson(const ir::Tensor& expected, const BundleReference& reference) {
  const int64_t count = expected.element_count();
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(expected.Value(i)));
  ordered_json json;
  json["largest"] = largest;
  json["tolerance"] =
      largest * (ir::IsInt(expected.type) ? reference.integer_tolerance : reference.tolerance);
  ordered_json samples = ordered_json::array();
  for (int64_t place : BundleSamples(count)) samples.push_back(expected.Value(place));
  json["samples"] = std::move(samples);
  const int64_t run = BundleRun(count);
  ordered_json sums = ordered_json::array();
  for (int64_t begin = 0; begin < count; begin += run) {
    double sum = 0;
    for (int64_t i = begin; i < std::min(count, begin + run); ++i) sum += expected.Value(i);
    sums.push_back(sum);
  }
  json["sums"] = std::move(sums);
  return json;
}

// Where the values of input number `input` come from: what they are drawn from, or a file.
void AddInput(const BundleReference& reference, size_t input, ordered_json& row,
              std::vector<OutputFile>& files) {
  const uint64_t seed =
      input < reference.seeds.size() ? reference.seeds[input] : reference.seed + input;
  const ir::Tensor& tensor = reference.inputs[input];
  if (ir::RandomTensor(tensor.type, tensor.shape, seed, ir::Values::kExact).bytes == tensor.bytes) {
    row["seed"] = seed;
  } else if (IsUniform(tensor, seed)) {
    row["uniform_seed"] = seed;
  } else if (input == 0 && reference.pixels && IsPixels(tensor, *reference.pixels)) {
    row["pixel_seed"] = reference.pixels->seed;
    row["levels"] = reference.pixels->levels;
  } else {
    const std::string name = StrCat("input", input, ".bin");
    row["file"] = name;
    files.push_back({name, std::string(tensor.bytes.begin(), tensor.bytes.end())});
  }
}

}  // namespace

absl::StatusOr<std::vector<OutputFile>> MakeBundle(const CudaModule& module,
                                                   const BundleFacts& facts) {
  if (module.functions.size() != 1) {
    return InvalidInput("bundle: expected one function, found ", module.functions.size());
  }
  const CudaFunction& function = module.functions[0];
  std::vector<OutputFile> files;
  ordered_json json;
  json["format"] = 1;
  json["function"] = function.name;
  json["case"] = facts.operator_case;
  json["flops"] = facts.flops;
  json["bytes"] = facts.bytes;
  if (facts.binary) json["arch"] = facts.arch;
  size_t input = 0;
  size_t output = 0;
  ordered_json values = ordered_json::array();
  for (const CudaValue& value : function.values) {
    if (value.kind == CudaValue::Kind::kHostVariable) {
      values.push_back({{"name", std::string(value.param.name())},
                        {"type", std::string(ir::TypeName(value.param.var.type()))},
                        {"kind", "scalar"}});
      continue;
    }
    if (!value.param.buffer) {
      return InvalidInput("bundle: '", value.param.name(),
                          "' is a scalar: expected a function of buffers only");
    }
    const ir::Buffer buffer = value.param.buffer;
    ASSIGN_OR_RETURN(const std::vector<int64_t> extents, ConstantExtents(buffer));
    ordered_json row;
    row["name"] = buffer->name;
    row["type"] = std::string(ir::TypeName(buffer->type));
    row["extents"] = extents;
    const bool is_input = !value.is_workspace() && value.param.access != ir::Access::kOut;
    const bool is_output = !value.is_workspace() && value.param.access != ir::Access::kIn;
    row["kind"] = value.is_workspace()    ? "workspace"
                  : is_input && is_output ? "inout"
                  : is_input              ? "in"
                                          : "out";
    if (is_input && facts.reference) {
      if (input >= facts.reference->inputs.size()) {
        return InvalidInput("bundle: no input is given for '", buffer->name, "'");
      }
      AddInput(*facts.reference, input, row, files);
      ++input;
    }
    if (is_output && facts.reference) {
      if (output >= facts.reference->outputs.size()) {
        return InvalidInput("bundle: no output is given for '", buffer->name, "'");
      }
      row["check"] = CheckJson(facts.reference->outputs[output++], *facts.reference);
    }
    values.push_back(std::move(row));
  }
  json["values"] = std::move(values);
  ordered_json kernels = ordered_json::array();
  for (const CudaKernel& kernel : function.kernels) {
    kernels.push_back(KernelJson(kernel, facts.binary));
  }
  json["kernels"] = std::move(kernels);
  if (!IsPlainSequence(function)) {
    ASSIGN_OR_RETURN(json["launches"], LaunchesJson(function));
  }
  files.push_back({"kernel.cu", module.source});
  if (facts.binary) {
    files.push_back({"kernel.ptx", facts.binary->ptx});
    files.push_back({"kernel.cubin", facts.binary->cubin});
  }
  files.push_back({"bundle.json", json.dump(1) + "\n"});
  return files;
}

}  // namespace polynao::codegen
