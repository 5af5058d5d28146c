#include "cases/bundles.h"

#include "base/status.h"
#include "cases/build.h"
#include "cases/case_json.h"
#include "compiler/codegen/cuda/emit_cuda.h"
#include "compiler/codegen/cuda/nvcc.h"
#include "compiler/target/target.h"
#include "isa/bound.h"

namespace polynao::cases {
namespace {

using kernels::Operator;
using kernels::OperatorCase;

}  // namespace

absl::StatusOr<std::vector<codegen::OutputFile>> BuildBundles(
    const OperatorCase& c, const codegen::NvccOptions& nvcc, uint64_t seed,
    const std::vector<BundleVariant>& variants) {
  ASSIGN_OR_RETURN(const Operator* op, kernels::FindOperator(c));
  ASSIGN_OR_RETURN(const Target target, MakeTarget("cuda", nullptr));
  std::vector<codegen::CudaModule> modules;
  for (const BundleVariant& variant : variants) {
    ASSIGN_OR_RETURN(const ir::Function function, BuildFunction(*op, c, target, variant.without));
    ASSIGN_OR_RETURN(codegen::CudaModule module, codegen::EmitCuda(function));
    modules.push_back(std::move(module));
  }
  codegen::BundleFacts facts;
  facts.operator_case = CaseJson(c);
  if (op->work) {
    const isa::Work work = op->work(c);
    facts.flops = 2.0 * static_cast<double>(work.macs) + static_cast<double>(work.vector_elements);
  }
  // The runner compares sums over many elements, and nvcc contracts products and sums: values for exact sums.
  std::vector<ir::Tensor> tensors = kernels::MakeTensors(*op, c, seed, ir::Values::kExact);
  for (const ir::Tensor& tensor : tensors) {
    facts.bytes += static_cast<double>(tensor.bytes.size());
  }
  codegen::BundleReference& reference = facts.reference.emplace();
  reference.seed = seed;
  reference.outputs = {tensors.back()};
  tensors.pop_back();
  reference.inputs = std::move(tensors);
  op->reference(c, reference.inputs, absl::MakeSpan(reference.outputs));
  const ir::Type type = reference.outputs[0].type;
  if (op->tolerance_of_largest > 0 && !op->only_card_reorders) {
    reference.tolerance = op->tolerance_of_largest;
  } else if (type == ir::Type::kF16 || type == ir::Type::kBF16) {
    // Narrow floats round after each operation, and nvcc may contract a product and a sum.
    reference.tolerance = type == ir::Type::kF16 ? 4e-3 : 3e-2;
  }
  std::vector<codegen::OutputFile> files;
  for (size_t i = 0; i < variants.size(); ++i) {
    facts.operator_case["without"] = variants[i].without;
    ASSIGN_OR_RETURN(facts.binary, codegen::CompileIfThereIsNvcc(modules[i].source, nvcc));
    facts.arch = nvcc.arch;
    ASSIGN_OR_RETURN(std::vector<codegen::OutputFile> bundle,
                     codegen::MakeBundle(modules[i], facts));
    for (codegen::OutputFile& file : bundle) {
      if (!variants[i].name.empty()) file.name = StrCat(variants[i].name, "/", file.name);
      files.push_back(std::move(file));
    }
  }
  return files;
}

}  // namespace polynao::cases
