// Fast execution of an instruction's meaning, derived from the meaning itself.
//
// These forms run natively, whatever the instruction's name:
//   * integer statements without loops: scalar arithmetic and bit operations, branches, scalar loads and stores;
//   * loop nests over affine accesses whose innermost statements are stores: copies, fills,
//     elementwise arithmetic, reductions, integer dot products (convolution, matrix product).
// Everything else is interpreted. A routine gives the interpreter's bits, except for the payload of
// NaNs.
#ifndef ISA_NATIVE_H_
#define ISA_NATIVE_H_

#include <memory>

#include "compiler/ir/int_expression.h"
#include "isa/instruction_set.h"

namespace polynao::isa {

using ir::IntExpression;
using ir::IntInputs;

class NativeRoutine {
 public:
  virtual ~NativeRoutine() = default;
  // Null if the meaning has no such form. `resolver` maps parameters to positions in `IntInputs`.
  static std::unique_ptr<NativeRoutine> Create(const Instruction& instruction,
                                               const IntExpression::Resolver& resolver);
  // Executes the meaning; registers and pc are buffers like memories. False, with nothing done, if
  // these operands need the interpreter. Threads may share a routine.
  virtual bool Run(const IntInputs& inputs) const = 0;
};

}  // namespace polynao::isa

#endif  // ISA_NATIVE_H_
