#include "kernels/library/kernel.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_replace.h"
#include "base/status.h"

namespace polynao::kernels {
namespace {

constexpr std::string_view kBinary[] = {"add", "sub", "mul", "div", "max", "min"};
constexpr std::string_view kWithScalar[] = {"adds", "subs", "muls", "maxs", "mins"};
constexpr std::string_view kUnary[] = {"relu", "abs", "exp", "sigmoid", "tanh"};

template <size_t kCount>
bool Contains(const std::string_view (&names)[kCount], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

absl::StatusOr<ElementwiseKind> FindElementwiseKind(const OperatorCase& c, const Target& target,
                                                    std::string_view who) {
  ElementwiseKind kind;
  kind.with_scalar = Contains(kWithScalar, c.op);
  if (Contains(kBinary, c.op)) {
    kind.inputs = 2;
  } else if (!kind.with_scalar && !Contains(kUnary, c.op)) {
    return absl::NotFoundError(StrCat(who, " has no kernel for '", c.op, "'"));
  }
  if (!c.operands.empty() && c.operands[0] != c.shape) {
    return absl::NotFoundError(StrCat(who, " has no kernel for '", c.op, "' of two shapes"));
  }
  const std::string instruction = StrCat(c.op, ".", ir::TypeName(c.dtype));
  if (target.instructions->Find(instruction) == nullptr) {
    return InvalidInput("operator ", c.op, " of ", ir::TypeName(c.dtype),
                        ": the card has no instruction ", instruction);
  }
  return kind;
}

int64_t RegisterValue(ir::Type type, double value) {
  if (ir::IsInt(type)) return static_cast<int64_t>(value);
  int64_t bits = 0;
  ir::StoreFloat(type, &bits, value);
  return bits;
}

absl::StatusOr<isa::Program> AssembleKernel(std::string_view text, std::string_view partition,
                                            const KernelWords& words, std::string_view file,
                                            const Target& target) {
  // In two steps, because the partition contains words, too.
  const std::string whole = absl::StrReplaceAll(ToAbsl(text), {{"$PARTITION", ToAbsl(partition)}});
  return isa::Assemble(*target.instructions, absl::StrReplaceAll(whole, words), file);
}

}  // namespace polynao::kernels
