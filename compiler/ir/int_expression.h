// Integer expressions of the instruction table (constraints, costs, addresses), compiled so that
// evaluating one allocates nothing: it happens for every instruction that issues.
#ifndef COMPILER_IR_INT_EXPRESSION_H_
#define COMPILER_IR_INT_EXPRESSION_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao::ir {

// The leaves of an expression read these inputs.
struct IntInputs {
  const int64_t* operands = nullptr;    // of the instruction, in operand order
  const int64_t* parameters = nullptr;  // of the machine, in the order of the instruction set
  // The first byte of each buffer parameter of the meaning, by its position there.
  uint8_t* const* buffers = nullptr;
};

class IntExpression {
 public:
  // Where a variable, an address or a load comes from.
  struct Source {
    enum class Kind : uint8_t { kOperand, kParameter, kBuffer } kind;
    int index = 0;
  };
  // Maps a variable to kOperand or kParameter, a buffer of an address to the operand that holds its
  // first byte's address, and a buffer of a load to kBuffer.
  struct Resolver {
    std::function<absl::StatusOr<Source>(Var)> variable;
    std::function<absl::StatusOr<Source>(const BufferNode*)> address;
    std::function<absl::StatusOr<Source>(const BufferNode*)> load;  // may be null: no loads
  };

  // Error: floats, calls, a leaf that the resolver refuses.
  static absl::StatusOr<IntExpression> Compile(Expr e, const Resolver& resolver);

  // False if the evaluation divides by zero. Arithmetic wraps around, as in the IR.
  bool Evaluate(const IntInputs& inputs, int64_t* result) const {
    bool ok = true;
    *result = Eval(root_, inputs, ok);
    return ok;
  }
  // Returns true if it is a constant, and so needs no inputs.
  bool IsConstant(int64_t value) const;

 private:
  enum class Op : uint8_t {
    kConst,
    kOperand,
    kParameter,
    kLoad,
    kAdd,
    kSub,
    kMul,
    kDiv,
    kMod,
    kMin,
    kMax,
    kEq,
    kNe,
    kLt,
    kLe,
    kAnd,
    kOr,
    kNot,
    kBitAnd,
    kBitOr,
    kBitXor,
    kShiftLeft,
    kShiftRight,
    kSelect,
    kWrap,
  };
  struct Node {
    Op op;
    Type type = Type::kI64;   // of the result of kWrap and kLoad, else of the operands
    int a = 0, b = 0, c = 0;  // nodes; an index for leaves
    int64_t value = 0;        // kConst
  };
  struct Compiler;
  int64_t Eval(int node, const IntInputs& inputs, bool& ok) const;

  std::vector<Node> nodes_;
  int root_ = 0;
};

}  // namespace polynao::ir

#endif  // COMPILER_IR_INT_EXPRESSION_H_
