#include "kernels/library/library.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "kernels/library/kernels_text.h"

namespace polynao::kernels {
namespace {

constexpr std::string_view kBinary[] = {"add", "sub", "mul", "div", "max", "min"};
constexpr std::string_view kWithScalar[] = {"adds", "subs", "muls", "maxs", "mins"};
constexpr std::string_view kUnary[] = {"relu", "abs", "exp", "sigmoid", "tanh"};

template <size_t kCount>
bool Contains(const std::string_view (&names)[kCount], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// `value` as registers hold it: integers themselves, floats as bit patterns.
int64_t RegisterValue(ir::Type type, double value) {
  if (ir::IsInt(type)) return static_cast<int64_t>(value);
  int64_t bits = 0;
  ir::StoreFloat(type, &bits, value);
  return bits;
}

}  // namespace

absl::StatusOr<LibraryKernel> FindLibraryKernel(const OperatorCase& c, const Target& target) {
  ASSIGN_OR_RETURN(const Operator* op, FindOperator(c));
  const bool with_scalar = Contains(kWithScalar, c.op);
  const bool binary = Contains(kBinary, c.op);
  if (!binary && !with_scalar && !Contains(kUnary, c.op)) {
    return absl::NotFoundError(StrCat("the library has no kernel for '", c.op, "'"));
  }
  const std::string type(ir::TypeName(c.dtype));
  const std::string instruction = StrCat(c.op, ".", type);
  if (target.instructions->Find(instruction) == nullptr) {
    return InvalidInput("operator ", c.op, " of ", type, ": the card has no instruction ",
                        instruction);
  }
  const std::string whole =
      absl::StrReplaceAll(ToAbsl(binary ? BinaryKernelText() : UnaryKernelText()),
                          {{"$PARTITION", ToAbsl(PartitionText())}});
  const std::string text = absl::StrReplaceAll(whole, {{"$OP", c.op},
                                                       {"$VALUE", with_scalar ? "operand, " : ""},
                                                       {"$TYPE", type},
                                                       {"$BYTES", StrCat(ir::ByteSize(c.dtype))}});
  LibraryKernel kernel;
  ASSIGN_OR_RETURN(kernel.program, isa::Assemble(*target.instructions, text,
                                                 binary ? "binary.nasm" : "unary.nasm"));
  int64_t count = 1;
  for (int64_t extent : c.shape) count *= extent;
  for (const isa::ProgramParam& param : kernel.program.params) {
    const int64_t value = param.name == "n" ? count : RegisterValue(c.dtype, ScalarOf(*op, c));
    kernel.scalars.push_back(param.is_tensor ? 0 : value);
  }
  return kernel;
}

}  // namespace polynao::kernels
