#include "compiler/codegen/cuda/back_end.h"

#include <memory>
#include <utility>

#include "base/status.h"
#include "compiler/codegen/cuda/bundle.h"
#include "compiler/codegen/cuda/emit_cuda.h"
#include "compiler/codegen/cuda/nvcc.h"
#include "compiler/codegen/cuda/run_cuda.h"

namespace polynao::codegen {
namespace {

class Cuda final : public BackEnd {
 public:
  std::string_view name() const override { return "cuda"; }

  // A bundle without values.
  absl::StatusOr<std::vector<OutputFile>> Write(const ir::Function& function, const Target&,
                                                const WriteOptions& options) const override {
    ASSIGN_OR_RETURN(const CudaModule module, EmitCuda(function));
    BundleFacts facts;
    facts.operator_case["op"] = function.name;
    ASSIGN_OR_RETURN(facts.binary, CompileIfThereIsNvcc(module.source, options.nvcc));
    facts.arch = options.nvcc.arch;
    return MakeBundle(module, facts);
  }

  // By the shim. Its options are the interpreter's: no rule for floats is relaxed.
  absl::StatusOr<Executable> Load(const ir::Function& function, const LoadOptions&) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<ShimmedCuda> compiled, ShimmedCuda::Create({function}, 2));
    return Executable{.run = [code = std::shared_ptr(std::move(compiled))](auto arguments) {
      return code->Run(0, arguments);
    }};
  }
};

}  // namespace

const BackEnd& CudaBackEnd() {
  static const auto& back_end = *new Cuda;
  return back_end;
}

}  // namespace polynao::codegen
