#include "compiler/codegen/llvm/back_end.h"

#include <memory>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "compiler/codegen/llvm/compile.h"

namespace polynao::codegen {
namespace {

class Cpu final : public BackEnd {
 public:
  std::string_view name() const override { return "cpu"; }

  absl::StatusOr<std::vector<OutputFile>> Write(const ir::Function& function, const Target&,
                                                const WriteOptions&) const override {
    const ir::Module module = {function.context, {function}};
    constexpr LlvmOutput kOutputs[] = {LlvmOutput::kOptimizedIr, LlvmOutput::kAssembly,
                                       LlvmOutput::kObject};
    constexpr const char* kSuffixes[] = {".ll", ".s", ".o"};
    ASSIGN_OR_RETURN(std::vector<std::string> texts,
                     EmitLlvm(module, kOutputs, {.wide_vectors = true}));
    std::vector<OutputFile> files;
    for (size_t i = 0; i < texts.size(); ++i) {
      files.push_back({StrCat(function.name, kSuffixes[i]), std::move(texts[i])});
    }
    return files;
  }

  absl::StatusOr<Executable> Load(const ir::Function& function,
                                  const LoadOptions& options) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<CompiledFunction> compiled,
                     Compile(function, {.checks = options.checks,
                                        .threads = options.threads,
                                        .wide_vectors = options.wide_vectors,
                                        .float_rules = options.float_rules}));
    const std::shared_ptr<CompiledFunction> code = std::move(compiled);
    return Executable{.run = [code](auto arguments) { return code->Run(arguments); },
                      .entry = code->entry(),
                      .to_status = [code](int32_t value) { return code->ToStatus(value); }};
  }
};

}  // namespace

const BackEnd& LlvmBackEnd() {
  static const auto& back_end = *new Cpu;
  return back_end;
}

}  // namespace polynao::codegen
