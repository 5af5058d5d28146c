#include "kernels/library/library.h"

#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "kernels/library/kernels_text.h"

namespace polynao::kernels {

absl::StatusOr<LibraryKernel> FindLibraryKernel(const OperatorCase& c, const Target& target) {
  const bool binary =
      c.op == "add" || c.op == "sub" || c.op == "mul" || c.op == "max" || c.op == "min";
  if (!binary) return absl::NotFoundError(StrCat("the library has no kernel for '", c.op, "'"));
  const std::string type(ir::TypeName(c.dtype));
  const std::string instruction = StrCat(c.op, ".", type);
  if (target.instructions->Find(instruction) == nullptr) {
    return InvalidInput("operator ", c.op, " of ", type, ": the card has no instruction ",
                        instruction);
  }
  const std::string text = absl::StrReplaceAll(
      ToAbsl(BinaryKernelText()),
      {{"$OP", c.op}, {"$TYPE", type}, {"$BYTES", StrCat(ir::ByteSize(c.dtype))}});
  LibraryKernel kernel;
  ASSIGN_OR_RETURN(kernel.program, isa::Assemble(*target.instructions, text, "binary.nasm"));
  int64_t count = 1;
  for (int64_t extent : c.shape) count *= extent;
  for (const isa::ProgramParam& param : kernel.program.params) {
    kernel.scalars.push_back(param.is_tensor ? 0 : count);
  }
  return kernel;
}

}  // namespace polynao::kernels
