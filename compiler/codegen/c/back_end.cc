#include "compiler/codegen/c/back_end.h"

#include <memory>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "compiler/codegen/c/emit_c.h"
#include "compiler/codegen/c/run_c.h"

namespace polynao::codegen {
namespace {

class C final : public BackEnd {
 public:
  std::string_view name() const override { return "c"; }

  absl::StatusOr<std::vector<OutputFile>> Write(const ir::Function& function, const Target&,
                                                const WriteOptions&) const override {
    ASSIGN_OR_RETURN(std::string text, EmitC(function));
    return std::vector<OutputFile>{{StrCat(function.name, ".c"), std::move(text)}};
  }

  absl::StatusOr<Executable> Load(const ir::Function& function,
                                  const LoadOptions& options) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<CompiledC> compiled,
                     CompiledC::Create({function}, {.float_rules = options.float_rules}));
    const std::shared_ptr<CompiledC> code = std::move(compiled);
    return Executable{.run = [code](auto arguments) { return code->Run(0, arguments); },
                      .entry = code->entry(0),
                      .to_status = [code](int32_t) { return absl::OkStatus(); }};
  }
};

}  // namespace

const BackEnd& CBackEnd() {
  static const auto& back_end = *new C;
  return back_end;
}

}  // namespace polynao::codegen
