#include "compiler/codegen/c/run_c.h"

#include <string>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "compiler/codegen/c/emit_c.h"
#include "compiler/codegen/c/function_emitter.h"

namespace polynao::codegen {

absl::StatusOr<std::unique_ptr<CompiledC>> CompiledC::Create(
    absl::Span<const ir::Function> functions, const COptions& options) {
  bool contract = true;
  for (const ir::Function& function : functions) {
    contract &= options.float_rules.contract || ir::FloatRulesOf(function).contract;
  }
  ASSIGN_OR_RETURN(const std::string text, EmitC(functions));
  const bool parallel = options.openmp && text.find("#pragma omp parallel") != std::string::npos;
  auto result = std::unique_ptr<CompiledC>(new CompiledC());
  ASSIGN_OR_RETURN(result->compiler_, FindCCompiler(parallel));
  const bool with_openmp = parallel && result->compiler_.has_openmp;
  LoadedCode::Options how;
  how.compiler = result->compiler_;
  how.flags = {"-std=c11", StrCat("-O", options.optimization_level), "-march=native",
               contract ? "-ffp-contract=fast" : "-ffp-contract=off",
               with_openmp ? "-fopenmp" : "-fopenmp-simd"};
  how.flags.insert(how.flags.end(), options.flags.begin(), options.flags.end());
  // For the text, which otherwise forbids what the flag allows.
  if (contract) how.flags.push_back("-DNAO_CONTRACT");
  // The threads of an OpenMP library stay when its code goes away, so such a library stays too.
  how.stays = with_openmp;
  ASSIGN_OR_RETURN(result->code_, LoadedCode::Create(text, how));
  for (const ir::Function& function : functions) {
    ASSIGN_OR_RETURN(void* entry, result->code_->Find(StrCat(CName(function.name), "_entry")));
    result->entries_.push_back(reinterpret_cast<RawEntry>(entry));
    result->functions_.push_back(function);
  }
  return result;
}

absl::Status CompiledC::Run(size_t index, absl::Span<const ir::Argument> arguments) const {
  ASSIGN_OR_RETURN(const RawArguments raw, LayOutArguments(functions_[index], arguments));
  entries_[index](raw.buffers.data(), raw.scalars.data());
  return absl::OkStatus();
}

}  // namespace polynao::codegen
