// LLVM IR for single operations on scalars, in the meaning of compiler/ir/ir.h; and on vectors of them, element by
// element, if all intrinsics have a vector form (ir::HasVectorForm), and no integer is cast to f16 or bf16.
//
// An f16 value is a `half` whose operations are done in float and rounded. A bf16 value is a float
// that bf16 holds, rounded by integer operations after each operation: x86 rounds to bf16 with
// denormals flushed, so its instructions are of no use.
#ifndef COMPILER_CODEGEN_LLVM_SCALAR_OPS_H_
#define COMPILER_CODEGEN_LLVM_SCALAR_OPS_H_

#include <string_view>

#include "absl/types/span.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/ir.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace polynao::codegen {

class ScalarOps {
 public:
  // Emits at the place of `builder`. `native_half`: the machine converts between f16 and f32; `native_fma`: it rounds
  // a * b + c once by one instruction.
  ScalarOps(llvm::IRBuilder<>& builder, llvm::Module& module, bool native_half, bool native_fma)
      : b_(builder), module_(module), native_half_(native_half), native_fma_(native_fma) {}

  // The type of a value in a register, and of an element in memory.
  llvm::Type* ValueType(ir::Type type);
  llvm::Type* MemoryType(ir::Type type);
  // A vector of `element` with as many as `value` has, or `element` if that is none.
  static llvm::Type* Like(llvm::Value* value, llvm::Type* element);
  llvm::Value* ToMemory(llvm::Value* value, ir::Type type);
  llvm::Value* FromMemory(llvm::Value* value, ir::Type type);

  // kEq to kLe of operands of `type`.
  llvm::Value* Compare(ir::ExprKind kind, ir::Type type, llvm::Value* a, llvm::Value* b);
  // kAdd to kShiftRight. A divisor is not 0. Unless `wraps`, + - * are known to fit.
  llvm::Value* IntBinary(ir::ExprKind kind, ir::Type type, llvm::Value* a, llvm::Value* b,
                         bool wraps);
  // kAdd to kDiv, kMin, kMax.
  llvm::Value* FloatBinary(ir::ExprKind kind, ir::Type type, llvm::Value* a, llvm::Value* b);
  llvm::Value* Cast(llvm::Value* value, ir::Type from, ir::Type to);
  llvm::Value* Intrinsic(const ir::PureIntrinsic& intrinsic, ir::Type type,
                         absl::Span<llvm::Value* const> arguments);

 private:
  llvm::Value* CompareHalves(ir::ExprKind kind, llvm::Value* a, llvm::Value* b);
  llvm::Value* MinMax(ir::ExprKind kind, ir::Type type, llvm::Value* a, llvm::Value* b);
  llvm::Value* Division(ir::ExprKind kind, ir::Type type, llvm::Value* a, llvm::Value* b);
  llvm::Value* Shift(ir::ExprKind kind, ir::Type type, llvm::Value* a, llvm::Value* b);

  // A value of a float type in the type that its operations are done in, and a result of one.
  llvm::Value* ToCompute(llvm::Value* value, ir::Type type);
  llvm::Value* FromCompute(llvm::Value* value, ir::Type type);
  llvm::Value* Bits32(llvm::Value* f);
  llvm::Value* RoundToBfloat(llvm::Value* f);
  llvm::Value* FloatToHalf(llvm::Value* f);
  llvm::Value* HalfToFloat(llvm::Value* half);
  llvm::Value* DoubleToFloatRoundedToOdd(llvm::Value* d);
  llvm::Value* FloatCast(llvm::Value* value, ir::Type from, ir::Type to);
  llvm::Value* IntToNarrowFloat(llvm::Value* value, ir::Type from, ir::Type to);
  llvm::Value* VectorToInt(llvm::Value* f, ir::Type to);
  llvm::Value* NarrowFma(ir::Type type, absl::Span<llvm::Value* const> arguments);
  llvm::Value* CallLibrary(std::string_view name, absl::Span<llvm::Value* const> arguments);

  llvm::IRBuilder<>& b_;
  llvm::Module& module_;
  const bool native_half_;
  const bool native_fma_;
};

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_LLVM_SCALAR_OPS_H_
