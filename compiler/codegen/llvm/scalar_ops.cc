#include "compiler/codegen/llvm/scalar_ops.h"

#include <cmath>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "compiler/codegen/llvm/elementary.h"
#include "llvm/IR/Intrinsics.h"

namespace polynao::codegen {

using ir::ExprKind;
using ir::IsUnsigned;
using ir::Type;
using llvm::Value;

// ---- types --------------------------------------------------------------------------------------

llvm::Type* ScalarOps::ValueType(Type type) {
  switch (type) {
    case Type::kF16:
      return b_.getHalfTy();
    case Type::kBF16:
    case Type::kF32:
      return b_.getFloatTy();
    case Type::kF64:
      return b_.getDoubleTy();
    default:
      return b_.getIntNTy(ir::BitWidth(type));
  }
}

llvm::Type* ScalarOps::MemoryType(Type type) {
  if (type == Type::kI1) return b_.getInt8Ty();
  if (type == Type::kF16 || type == Type::kBF16) return b_.getInt16Ty();
  return ValueType(type);
}

llvm::Type* ScalarOps::Like(Value* value, llvm::Type* element) {
  auto* vector = llvm::dyn_cast<llvm::VectorType>(value->getType());
  return vector == nullptr ? element : llvm::VectorType::get(element, vector->getElementCount());
}

Value* ScalarOps::ToMemory(Value* value, Type type) {
  if (type == Type::kI1) return b_.CreateZExt(value, Like(value, b_.getInt8Ty()));
  if (type == Type::kF16) return b_.CreateBitCast(value, Like(value, b_.getInt16Ty()));
  if (type != Type::kBF16) return value;
  return b_.CreateTrunc(b_.CreateLShr(Bits32(value), 16), Like(value, b_.getInt16Ty()));
}

Value* ScalarOps::FromMemory(Value* value, Type type) {
  if (type == Type::kI1) return b_.CreateIsNotNull(value);
  if (type == Type::kF16) return b_.CreateBitCast(value, Like(value, b_.getHalfTy()));
  if (type != Type::kBF16) return value;
  Value* bits = b_.CreateShl(b_.CreateZExt(value, Like(value, b_.getInt32Ty())), 16);
  return b_.CreateBitCast(bits, Like(bits, b_.getFloatTy()));
}

// ---- integers -----------------------------------------------------------------------------------

Value* ScalarOps::Compare(ExprKind kind, Type type, Value* a, Value* b) {
  if (type == Type::kF16 && a->getType()->isVectorTy()) return CompareHalves(kind, a, b);
  switch (kind) {
    case ExprKind::kEq:
      return ir::IsFloat(type) ? b_.CreateFCmpOEQ(a, b) : b_.CreateICmpEQ(a, b);
    case ExprKind::kNe:
      return ir::IsFloat(type) ? b_.CreateFCmpUNE(a, b) : b_.CreateICmpNE(a, b);
    case ExprKind::kLt:
      if (ir::IsFloat(type)) return b_.CreateFCmpOLT(a, b);
      return IsUnsigned(type) ? b_.CreateICmpULT(a, b) : b_.CreateICmpSLT(a, b);
    case ExprKind::kLe:
      if (ir::IsFloat(type)) return b_.CreateFCmpOLE(a, b);
      return IsUnsigned(type) ? b_.CreateICmpULE(a, b) : b_.CreateICmpSLE(a, b);
    default:
      POLYNAO_UNREACHABLE(ExprKindName(kind));
  }
}

// min(a, b) is b < a ? b : a, max(a, b) is a < b ? b : a.
Value* ScalarOps::MinMax(ExprKind kind, Type type, Value* a, Value* b) {
  Value* take_b = kind == ExprKind::kMin ? Compare(ExprKind::kLt, type, b, a)
                                         : Compare(ExprKind::kLt, type, a, b);
  return b_.CreateSelect(take_b, b, a);
}

// LLVM compares vectors of f16 one element at a time where the processor does not compute in f16, even if they are
// widened for it. (A million maxima took 2.0 ms, and take 0.1.) So by integers: -x of a number with a sign, whose order
// is that of the floats.
Value* ScalarOps::CompareHalves(ExprKind kind, Value* a, Value* b) {
  llvm::Type* integer = Like(a, b_.getInt16Ty());
  Value* largest = llvm::ConstantInt::get(integer, 0x7fff);
  const auto magnitude = [&](Value* x) { return b_.CreateAnd(x, largest); };
  const auto key = [&](Value* x) {
    Value* sign = b_.CreateAShr(x, 15);
    return b_.CreateSub(b_.CreateXor(magnitude(x), sign), sign);
  };
  a = b_.CreateBitCast(a, integer), b = b_.CreateBitCast(b, integer);
  Value* infinity = llvm::ConstantInt::get(integer, 0x7c00);
  Value* are_numbers = b_.CreateICmpULE(
      b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, magnitude(a), magnitude(b)), infinity);
  const bool is_ne = kind == ExprKind::kNe;
  Value* holds = Compare(is_ne ? ExprKind::kEq : kind, Type::kI16, key(a), key(b));
  Value* both = b_.CreateAnd(holds, are_numbers);
  return is_ne ? b_.CreateNot(both) : both;
}

Value* ScalarOps::IntBinary(ExprKind kind, Type type, Value* a, Value* b, bool wraps) {
  switch (kind) {
    case ExprKind::kAdd:
      return b_.CreateAdd(a, b, "", false, !wraps);
    case ExprKind::kSub:
      return b_.CreateSub(a, b, "", false, !wraps);
    case ExprKind::kMul:
      return b_.CreateMul(a, b, "", false, !wraps);
    case ExprKind::kMin:
    case ExprKind::kMax:
      return MinMax(kind, type, a, b);
    case ExprKind::kDiv:
    case ExprKind::kMod:
      return Division(kind, type, a, b);
    case ExprKind::kBitAnd:
      return b_.CreateAnd(a, b);
    case ExprKind::kBitOr:
      return b_.CreateOr(a, b);
    case ExprKind::kBitXor:
      return b_.CreateXor(a, b);
    case ExprKind::kShiftLeft:
    case ExprKind::kShiftRight:
      return Shift(kind, type, a, b);
    default:
      POLYNAO_UNREACHABLE(ExprKindName(kind));
  }
}

// LLVM leaves shifts by at least the width undefined.
Value* ScalarOps::Shift(ExprKind kind, Type type, Value* a, Value* b) {
  llvm::Type* t = a->getType();
  const unsigned width = t->getScalarSizeInBits();
  if (kind == ExprKind::kShiftRight && !IsUnsigned(type)) {
    // Shifting by width - 1 leaves only copies of the sign, as every larger count must.
    Value* most = llvm::ConstantInt::get(t, width - 1);
    return b_.CreateAShr(a, b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b, most));
  }
  Value* in_range = b_.CreateICmpULT(b, llvm::ConstantInt::get(t, width));
  Value* shifted = kind == ExprKind::kShiftLeft ? b_.CreateShl(a, b) : b_.CreateLShr(a, b);
  return b_.CreateSelect(in_range, shifted, llvm::ConstantInt::get(t, 0));
}

Value* ScalarOps::Division(ExprKind kind, Type type, Value* a, Value* b) {
  const bool div = kind == ExprKind::kDiv;
  llvm::Type* t = a->getType();
  Value* zero = llvm::ConstantInt::get(t, 0);
  auto* same = llvm::dyn_cast<llvm::Constant>(b);
  if (same != nullptr && t->isVectorTy()) same = same->getSplatValue();
  auto* constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(same);
  if (type == Type::kI1) return div ? a : zero;  // the divisor is 1
  if (IsUnsigned(type)) return div ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b);
  if (constant != nullptr && constant->getValue().isPowerOf2() && !constant->isNegative()) {
    // Shifting right rounds down, and the low bits are the floor remainder.
    if (div) return b_.CreateAShr(a, llvm::ConstantInt::get(t, constant->getValue().logBase2()));
    return b_.CreateAnd(a, b_.CreateSub(b, llvm::ConstantInt::get(t, 1)));
  }
  // The machine's division traps on the smallest integer by -1, which here wraps.
  Value* minus_one = llvm::ConstantInt::getSigned(t, -1);
  Value* by_minus_one = b_.CreateICmpEQ(b, minus_one);
  Value* divisor = b_.CreateSelect(by_minus_one, llvm::ConstantInt::get(t, 1), b);
  Value* remainder = b_.CreateSRem(a, divisor);
  Value* inexact = b_.CreateICmpNE(remainder, zero);
  Value* signs_differ = b_.CreateICmpSLT(b_.CreateXor(remainder, divisor), zero);
  Value* adjust = b_.CreateAnd(inexact, signs_differ);
  if (!div) return b_.CreateSelect(adjust, b_.CreateAdd(remainder, divisor), remainder);
  Value* quotient = b_.CreateSub(b_.CreateSDiv(a, divisor), b_.CreateZExt(adjust, t));
  return b_.CreateSelect(by_minus_one, b_.CreateNeg(a), quotient);
}

// ---- floats -------------------------------------------------------------------------------------

Value* ScalarOps::ToCompute(Value* value, Type type) {
  return type == Type::kF16 ? HalfToFloat(value) : value;
}
// Rounding twice, to f32 and then to f16 or bf16, gives the same result as rounding once for + - * /
// and sqrt, because 24 >= 2 * 11 + 2.
Value* ScalarOps::FromCompute(Value* value, Type type) {
  if (type == Type::kF16) return FloatToHalf(value);
  if (type == Type::kBF16) return RoundToBfloat(value);
  return value;
}

Value* ScalarOps::Bits32(Value* f) { return b_.CreateBitCast(f, Like(f, b_.getInt32Ty())); }

// A float rounded to nearest even in bf16, as a float.
Value* ScalarOps::RoundToBfloat(Value* f) {
  Value* bits = Bits32(f);
  Value* odd = b_.CreateAnd(b_.CreateLShr(bits, 16), 1);
  Value* half = llvm::ConstantInt::get(bits->getType(), 0x7fff);
  Value* rounded = b_.CreateAdd(b_.CreateAdd(bits, half), odd);
  Value* kept = b_.CreateSelect(b_.CreateFCmpUNO(f, f), b_.CreateOr(bits, 0x400000), rounded);
  return b_.CreateBitCast(b_.CreateAnd(kept, 0xffff0000), f->getType());
}

// The same steps as ir::FloatToHalf, without branches.
Value* ScalarOps::FloatToHalf(Value* f) {
  llvm::Type* half = Like(f, b_.getHalfTy());
  if (native_half_) return b_.CreateFPTrunc(f, half);
  Value* bits = Bits32(f);
  const auto number = [&](uint32_t n) { return llvm::ConstantInt::get(bits->getType(), n); };
  Value* sign = b_.CreateAnd(b_.CreateLShr(bits, 16), 0x8000);
  Value* magnitude = b_.CreateAnd(bits, 0x7fffffff);
  Value* as_float = b_.CreateBitCast(magnitude, f->getType());
  Value* shifted = b_.CreateFAdd(as_float, llvm::ConstantFP::get(f->getType(), 0.5));
  Value* subnormal = b_.CreateSub(Bits32(shifted), number(0x3f000000));
  Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, 13), 1);
  Value* rebiased = b_.CreateSub(magnitude, number(0x38000000 - 0xfff));
  Value* normal = b_.CreateLShr(b_.CreateAdd(rebiased, odd), 13);
  Value* result =
      b_.CreateSelect(b_.CreateICmpULT(magnitude, number(0x38800000)), subnormal, normal);
  result = b_.CreateSelect(b_.CreateICmpUGE(magnitude, number(0x47800000)), number(0x7c00), result);
  result = b_.CreateSelect(b_.CreateICmpUGT(magnitude, number(0x7f800000)), number(0x7e00), result);
  return b_.CreateBitCast(b_.CreateTrunc(b_.CreateOr(result, sign), Like(f, b_.getInt16Ty())),
                          half);
}

Value* ScalarOps::HalfToFloat(Value* half) {
  llvm::Type* to = Like(half, b_.getFloatTy());
  if (native_half_) return b_.CreateFPExt(half, to);
  Value* bits = b_.CreateZExt(b_.CreateBitCast(half, Like(half, b_.getInt16Ty())),
                              Like(half, b_.getInt32Ty()));
  const auto number = [&](uint32_t n) { return llvm::ConstantInt::get(bits->getType(), n); };
  Value* sign = b_.CreateShl(b_.CreateAnd(bits, 0x8000), 16);
  Value* exponent = b_.CreateAnd(bits, 0x7c00);
  Value* mantissa = b_.CreateAnd(bits, 0x3ff);
  Value* magnitude = b_.CreateShl(b_.CreateAnd(bits, 0x7fff), 13);
  Value* normal = b_.CreateAdd(magnitude, number(112 << 23));
  Value* special = b_.CreateOr(magnitude, 0x7f800000);
  Value* small = b_.CreateFMul(b_.CreateUIToFP(mantissa, to), llvm::ConstantFP::get(to, 0x1p-24));
  Value* result = b_.CreateSelect(b_.CreateICmpEQ(exponent, number(0)), Bits32(small), normal);
  result = b_.CreateSelect(b_.CreateICmpEQ(exponent, number(0x7c00)), special, result);
  return b_.CreateBitCast(b_.CreateOr(result, sign), to);
}

// A float that rounds to f16 and bf16 as the double does: rounding to odd keeps the information that
// the second rounding needs.
Value* ScalarOps::DoubleToFloatRoundedToOdd(Value* d) {
  Value* nearest = b_.CreateFPTrunc(d, Like(d, b_.getFloatTy()));
  Value* back = b_.CreateFPExt(nearest, d->getType());
  Value* bits = Bits32(nearest);
  Value* one = llvm::ConstantInt::get(bits->getType(), 1);
  // For both signs, larger bits mean a larger magnitude.
  Value* d_magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, d);
  Value* back_magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back);
  Value* rounded_up = b_.CreateFCmpOGT(back_magnitude, d_magnitude);
  Value* toward_zero = b_.CreateSelect(rounded_up, b_.CreateSub(bits, one), bits);
  Value* inexact = b_.CreateFCmpONE(back, d);
  Value* odd = b_.CreateSelect(inexact, b_.CreateOr(toward_zero, one), bits);
  return b_.CreateBitCast(odd, nearest->getType());
}

Value* ScalarOps::FloatCast(Value* value, Type from, Type to) {
  if (from == to) return value;
  if (to == Type::kF64) {
    return b_.CreateFPExt(ToCompute(value, from), Like(value, b_.getDoubleTy()));
  }
  if (from == Type::kF64) {
    if (to == Type::kF32) return b_.CreateFPTrunc(value, Like(value, b_.getFloatTy()));
    return FromCompute(DoubleToFloatRoundedToOdd(value), to);
  }
  return FromCompute(ToCompute(value, from), to);
}

// LLVM takes saturating conversions of vectors apart.
Value* ScalarOps::VectorToInt(Value* f, Type to) {
  const int bits = ir::BitWidth(to);
  const bool is_unsigned = IsUnsigned(to);
  const auto power = [&](int exponent) {
    return llvm::ConstantFP::get(f->getType(), std::ldexp(1.0, exponent));
  };
  Value* lowest =
      is_unsigned ? llvm::ConstantFP::get(f->getType(), 0.0) : b_.CreateFNeg(power(bits - 1));
  Value* is_high = b_.CreateFCmpOGE(f, power(is_unsigned ? bits : bits - 1));
  Value* is_low = b_.CreateFCmpULE(f, lowest);  // or NaN
  Value* in_range = b_.CreateSelect(b_.CreateOr(is_high, is_low), lowest, f);
  llvm::Type* t = Like(f, b_.getIntNTy(bits));
  Value* result = nullptr;
  if (bits < 32) {
    result = b_.CreateTrunc(b_.CreateFPToSI(in_range, Like(f, b_.getInt32Ty())), t);
  } else {
    result = is_unsigned ? b_.CreateFPToUI(in_range, t) : b_.CreateFPToSI(in_range, t);
  }
  const llvm::APInt most = is_unsigned
                               ? llvm::APInt::getMaxValue(static_cast<unsigned>(bits))
                               : llvm::APInt::getSignedMaxValue(static_cast<unsigned>(bits));
  result = b_.CreateSelect(is_high, llvm::ConstantInt::get(t, most), result);
  if (is_unsigned) return result;
  return b_.CreateSelect(b_.CreateFCmpUNO(f, f), llvm::ConstantInt::get(t, 0), result);
}

Value* ScalarOps::Cast(Value* value, Type from, Type to) {
  if (from == to) return value;
  llvm::Type* t = Like(value, ValueType(to));
  if (to == Type::kI1) {  // NaN gives 0, as to the other integers
    if (ir::IsInt(from)) return b_.CreateIsNotNull(value);
    return b_.CreateFCmpONE(value, llvm::ConstantFP::get(value->getType(), 0.0));
  }
  if (ir::IsFloat(from) && ir::IsFloat(to)) return FloatCast(value, from, to);
  if (ir::IsInt(from) && ir::IsInt(to)) {
    return IsUnsigned(from) ? b_.CreateZExtOrTrunc(value, t) : b_.CreateSExtOrTrunc(value, t);
  }
  if (ir::IsFloat(from)) {
    const llvm::Intrinsic::ID cast =
        IsUnsigned(to) ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat;
    Value* computed = ToCompute(value, from);
    if (t->isVectorTy()) return VectorToInt(computed, to);
    return b_.CreateIntrinsic(cast, {t, computed->getType()}, {computed});
  }
  if (to == Type::kF16 || to == Type::kBF16) return IntToNarrowFloat(value, from, to);
  return IsUnsigned(from) ? b_.CreateUIToFP(value, t) : b_.CreateSIToFP(value, t);
}

// Goes through f64, which holds all integers but the largest 64-bit ones.
Value* ScalarOps::IntToNarrowFloat(Value* value, Type from, Type to) {
  if (ir::BitWidth(from) == 64) {
    // In those, one bit is set in place of all bits that f64 would drop, so that the second rounding
    // is right (as in ir::IntToFloat).
    Value* dropped = b_.CreateAnd(value, 0x7ff);
    Value* sticky = b_.CreateOr(b_.CreateAnd(value, ~uint64_t{0x7ff}), 0x800);
    Value* is_small = IsUnsigned(from)
                          ? b_.CreateICmpULT(value, b_.getInt64(uint64_t{1} << 53))
                          : b_.CreateICmpULT(b_.CreateAdd(value, b_.getInt64(uint64_t{1} << 53)),
                                             b_.getInt64(uint64_t{1} << 54));
    Value* is_exact = b_.CreateOr(is_small, b_.CreateIsNull(dropped));
    value = b_.CreateSelect(is_exact, value, sticky);
  }
  Value* wide = IsUnsigned(from) ? b_.CreateUIToFP(value, b_.getDoubleTy())
                                 : b_.CreateSIToFP(value, b_.getDoubleTy());
  return FloatCast(wide, Type::kF64, to);
}

Value* ScalarOps::FloatBinary(ExprKind kind, Type type, Value* a, Value* b) {
  if (kind == ExprKind::kMin || kind == ExprKind::kMax) return MinMax(kind, type, a, b);
  a = ToCompute(a, type);
  b = ToCompute(b, type);
  switch (kind) {
    case ExprKind::kAdd:
      return FromCompute(b_.CreateFAdd(a, b), type);
    case ExprKind::kSub:
      return FromCompute(b_.CreateFSub(a, b), type);
    case ExprKind::kMul:
      return FromCompute(b_.CreateFMul(a, b), type);
    case ExprKind::kDiv:
      return FromCompute(b_.CreateFDiv(a, b), type);
    default:
      POLYNAO_UNREACHABLE(ExprKindName(kind));
  }
}

Value* ScalarOps::CallLibrary(std::string_view name, absl::Span<Value* const> arguments) {
  llvm::Type* type = arguments[0]->getType();
  const std::string symbol = StrCat(name, type->isFloatTy() ? "f" : "");
  std::vector<llvm::Type*> types(arguments.size(), type);
  llvm::FunctionCallee callee =
      module_.getOrInsertFunction(symbol, llvm::FunctionType::get(type, types, false));
  auto* f = llvm::cast<llvm::Function>(callee.getCallee());
  f->setDoesNotThrow();
  f->setDoesNotAccessMemory();
  f->setWillReturn();
  return b_.CreateCall(callee, llvm::ArrayRef<Value*>(arguments.data(), arguments.size()));
}

// Of a type narrower than f32, whose product is exact in f64: the sum rounded to odd there, as ir::FusedMultiplyAdd has
// it, then to the type.
Value* ScalarOps::NarrowFma(Type type, absl::Span<Value* const> arguments) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
  b_.clearFastMathFlags();
  std::vector<Value*> wide;
  for (Value* argument : arguments) wide.push_back(Cast(argument, type, Type::kF64));
  Value* product = b_.CreateFMul(wide[0], wide[1]);
  Value* sum = b_.CreateFAdd(product, wide[2]);
  Value* part = b_.CreateFSub(sum, product);
  Value* error =
      b_.CreateFAdd(b_.CreateFSub(product, b_.CreateFSub(sum, part)), b_.CreateFSub(wide[2], part));
  Value* zero = llvm::ConstantFP::get(sum->getType(), 0.0);
  llvm::Type* integer = Like(sum, b_.getInt64Ty());
  Value* bits = b_.CreateBitCast(sum, integer);
  Value* one = llvm::ConstantInt::get(integer, 1);
  // False for a NaN, which the error of an infinite sum is.
  Value* is_inexact = b_.CreateFCmpONE(error, zero);
  Value* is_even = b_.CreateICmpEQ(b_.CreateAnd(bits, one), llvm::ConstantInt::get(integer, 0));
  Value* is_larger = b_.CreateICmpEQ(b_.CreateFCmpOGT(error, zero), b_.CreateFCmpOGT(sum, zero));
  Value* next = b_.CreateSelect(is_larger, b_.CreateAdd(bits, one), b_.CreateSub(bits, one));
  Value* odd = b_.CreateSelect(b_.CreateAnd(is_inexact, is_even), next, bits);
  return Cast(b_.CreateBitCast(odd, sum->getType()), Type::kF64, type);
}

Value* ScalarOps::Intrinsic(const ir::PureIntrinsic& intrinsic, Type type,
                            absl::Span<Value* const> arguments) {
  const bool is_narrow = type != Type::kF32 && type != Type::kF64;
  if (intrinsic.name == "fma" && is_narrow) return NarrowFma(type, arguments);
  std::vector<Value*> computed;
  for (Value* argument : arguments) computed.push_back(ToCompute(argument, type));
  const std::string_view name = intrinsic.name;
  Value* x = computed[0];
  if (type != Type::kF64 && IsElementary(name)) {
    return Cast(EmitElementary(b_, name, x, native_fma_), Type::kF64, type);
  }
  Value* one = llvm::ConstantFP::get(x->getType(), 1.0);
  Value* result = nullptr;
  if (name == "fma") {
    result = b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, computed);
  } else if (name == "sqrt") {
    result = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
  } else if (name == "abs") {
    result = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  } else if (name == "floor") {
    result = b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
  } else if (name == "ceil") {
    result = b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, x);
  } else if (name == "round") {
    result = b_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x);
  } else if (name == "rsqrt") {
    result = b_.CreateFDiv(one, b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
  } else if (name == "sigmoid") {
    // exp(-|x|) can not overflow, so the quotient is right where exp(-x) would be infinite.
    Value* magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    Value* e = CallLibrary("exp", {b_.CreateFNeg(magnitude)});
    Value* positive = b_.CreateFCmpOLT(llvm::ConstantFP::get(x->getType(), 0.0), x);
    result = b_.CreateFDiv(b_.CreateSelect(positive, one, e), b_.CreateFAdd(one, e));
  } else {
    result = CallLibrary(name, computed);
  }
  return FromCompute(result, type);
}

}  // namespace polynao::codegen
