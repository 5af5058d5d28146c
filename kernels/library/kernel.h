// All hand-written kernels have this in common: a program, and how the host calls it.
#ifndef KERNELS_LIBRARY_KERNEL_H_
#define KERNELS_LIBRARY_KERNEL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/tensor.h"
#include "compiler/target/target.h"
#include "isa/program.h"
#include "kernels/operators.h"

namespace polynao::kernels {

struct HandWrittenKernel {
  isa::Program program;
  // One per parameter of the program; 0 for tensors.
  std::vector<int64_t> scalars = {};
  // The host does this to an input before each run, or once if that is constant, by the function below. Its time is
  // not in the program's cycles. Empty: nothing.
  std::string host_step = "";
  size_t prepared_input = 0;
  std::function<ir::Tensor(const ir::Tensor&)> prepare = {};
  void Prepare(std::vector<ir::Tensor>& inputs) const {
    if (prepare) inputs[prepared_input] = prepare(inputs[prepared_input]);
  }
  // Of a compiled program: stores that were left to the scalar unit.
  int64_t scalar_stores = 0;
};

// The elementwise operators that have hand-written kernels.
struct ElementwiseKind {
  int inputs = 1;
  bool with_scalar = false;
};
// Errors: NotFound with `who` ("the library") if no kernel has that name, or the case has two shapes;
// InvalidArgument if the card lacks an instruction for the case's type.
absl::StatusOr<ElementwiseKind> FindElementwiseKind(const OperatorCase& c, const Target& target,
                                                    std::string_view who);

// `value` as registers hold it: integers themselves, floats as bit patterns.
int64_t RegisterValue(ir::Type type, double value);

// The $NAMES of a kernel's text and what replaces them.
using KernelWords = std::vector<std::pair<std::string, std::string>>;

// `text` with $PARTITION replaced by `partition`, then all `words` replaced, assembled. Errors name `file`.
absl::StatusOr<isa::Program> AssembleKernel(std::string_view text, std::string_view partition,
                                            const KernelWords& words, std::string_view file,
                                            const Target& target);

}  // namespace polynao::kernels

#endif  // KERNELS_LIBRARY_KERNEL_H_
