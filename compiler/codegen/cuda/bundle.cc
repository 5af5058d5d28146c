#include "compiler/codegen/cuda/bundle.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "compiler/codegen/cuda/bundle_places.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/random_value.h"
#include "compiler/ir/type.h"

namespace polynao::codegen {
namespace {

using nlohmann::ordered_json;

absl::StatusOr<std::vector<int64_t>> ConstantExtents(ir::Buffer buffer) {
  std::vector<int64_t> extents;
  for (ir::Expr extent : buffer->extents) {
    if (!extent.IsConst()) {
      return InvalidInput("bundle: '", buffer->name, "' has an extent that is not constant");
    }
    extents.push_back(std::max<int64_t>(0, extent.int_value()));
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
ordered_json CheckJson(const ir::Tensor& expected, double tolerance) {
  const int64_t count = expected.element_count();
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(expected.Value(i)));
  ordered_json json;
  json["largest"] = largest;
  json["tolerance"] = ir::IsInt(expected.type) ? 0.0 : tolerance * largest;
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

}  // namespace

absl::StatusOr<std::vector<BundleFile>> MakeBundle(const CudaModule& module,
                                                   const BundleFacts& facts) {
  if (module.functions.size() != 1) {
    return InvalidInput("bundle: expected one function, found ", module.functions.size());
  }
  const CudaFunction& function = module.functions[0];
  std::vector<BundleFile> files;
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
    const bool is_input = !value.is_workspace && value.param.access != ir::Access::kOut;
    const bool is_output = !value.is_workspace && value.param.access != ir::Access::kIn;
    row["kind"] = value.is_workspace      ? "workspace"
                  : is_input && is_output ? "inout"
                  : is_input              ? "in"
                                          : "out";
    if (is_input && facts.reference) {
      const uint64_t seed = facts.reference->seed + input;
      if (input >= facts.reference->inputs.size()) {
        return InvalidInput("bundle: no input is given for '", buffer->name, "'");
      }
      const ir::Tensor& tensor = facts.reference->inputs[input];
      if (ir::RandomTensor(tensor.type, tensor.shape, seed, ir::Values::kExact).bytes ==
          tensor.bytes) {
        row["seed"] = seed;
      } else if (IsUniform(tensor, seed)) {
        row["uniform_seed"] = seed;
      } else {
        const std::string name = StrCat("input", input, ".bin");
        row["file"] = name;
        files.push_back({name, std::string(tensor.bytes.begin(), tensor.bytes.end())});
      }
      ++input;
    }
    if (is_output && facts.reference) {
      if (output >= facts.reference->outputs.size()) {
        return InvalidInput("bundle: no output is given for '", buffer->name, "'");
      }
      row["check"] = CheckJson(facts.reference->outputs[output++], facts.reference->tolerance);
    }
    values.push_back(std::move(row));
  }
  json["values"] = std::move(values);
  ordered_json kernels = ordered_json::array();
  for (const CudaKernel& kernel : function.kernels) {
    kernels.push_back(KernelJson(kernel, facts.binary));
  }
  json["kernels"] = std::move(kernels);
  files.push_back({"kernel.cu", module.source});
  if (facts.binary) {
    files.push_back({"kernel.ptx", facts.binary->ptx});
    files.push_back({"kernel.cubin", facts.binary->cubin});
  }
  files.push_back({"bundle.json", json.dump(1) + "\n"});
  return files;
}

}  // namespace polynao::codegen
