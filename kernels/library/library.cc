#include "kernels/library/library.h"

#include "base/status.h"
#include "kernels/library/conv2d.h"
#include "kernels/library/kernels_text.h"

namespace polynao::kernels {

absl::StatusOr<HandWrittenKernel> FindLibraryKernel(const OperatorCase& c, const Target& target) {
  ASSIGN_OR_RETURN(const Operator* op, FindOperator(c));
  if (op->name == "conv2d") return FindLibraryConv2d(c, target);
  ASSIGN_OR_RETURN(const ElementwiseKind kind, FindElementwiseKind(c, target, "the library"));
  const bool binary = kind.inputs == 2;
  const KernelWords words = {{"$OP", c.op},
                             {"$VALUE", kind.with_scalar ? "operand, " : ""},
                             {"$TYPE", std::string(ir::TypeName(c.dtype))},
                             {"$BYTES", StrCat(ir::ByteSize(c.dtype))}};
  HandWrittenKernel kernel;
  ASSIGN_OR_RETURN(kernel.program,
                   AssembleKernel(binary ? BinaryKernelText() : UnaryKernelText(), PartitionText(),
                                  words, binary ? "binary.nasm" : "unary.nasm", target));
  int64_t count = 1;
  for (int64_t extent : c.shape) count *= extent;
  for (const isa::ProgramParam& param : kernel.program.params) {
    const int64_t value = param.name == "n" ? count : RegisterValue(c.dtype, ScalarOf(*op, c));
    kernel.scalars.push_back(param.is_tensor ? 0 : value);
  }
  return kernel;
}

}  // namespace polynao::kernels
