#include "compiler/codegen/diannao/back_end.h"

#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "compiler/codegen/diannao/diannao.h"
#include "isa/check/check.h"
#include "isa/program.h"

namespace polynao::codegen {
namespace {

class DianNao final : public BackEnd {
 public:
  std::string_view name() const override { return "diannao"; }

  absl::StatusOr<std::vector<OutputFile>> Write(const ir::Function& function, const Target& target,
                                                const WriteOptions& options) const override {
    POLYNAO_CHECK(options.reads != nullptr) << function.name;
    ASSIGN_OR_RETURN(isa::Program program, GenerateDianNao(function, target));
    program.machine = options.reads->Values(*target.machine);
    RETURN_IF_ERROR(isa::CheckQuickly(*target.instructions, program, *target.machine));
    ASSIGN_OR_RETURN(std::string text, isa::Disassemble(*target.instructions, program));
    return std::vector<OutputFile>{{StrCat(function.name, ".bin"), isa::Serialize(program)},
                                   {StrCat(function.name, ".nasm"), std::move(text)}};
  }

  absl::StatusOr<Executable> Load(const ir::Function&, const LoadOptions&) const override {
    return InvalidInput(
        "expected a target that runs on this machine (cpu, c, cuda or interp), found 'diannao'");
  }
};

}  // namespace

const BackEnd& DianNaoBackEnd() {
  static const auto& back_end = *new DianNao;
  return back_end;
}

}  // namespace polynao::codegen
