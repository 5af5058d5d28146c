#include "compiler/codegen/interp/back_end.h"

#include <memory>
#include <utility>

#include "base/status.h"
#include "compiler/ir/interpreter.h"

namespace polynao::codegen {
namespace {

class Interpreter final : public BackEnd {
 public:
  std::string_view name() const override { return "interp"; }

  absl::StatusOr<std::vector<OutputFile>> Write(const ir::Function&, const Target&,
                                                const WriteOptions&) const override {
    return std::vector<OutputFile>{};
  }

  absl::StatusOr<Executable> Load(const ir::Function& function, const LoadOptions&) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<ir::Interpreter> interpreter,
                     ir::Interpreter::Create(function));
    return Executable{.run = [code = std::shared_ptr(std::move(interpreter))](auto arguments) {
      return code->Run({arguments.begin(), arguments.end()});
    }};
  }
};

}  // namespace

const BackEnd& InterpreterBackEnd() {
  static const auto& back_end = *new Interpreter;
  return back_end;
}

}  // namespace polynao::codegen
