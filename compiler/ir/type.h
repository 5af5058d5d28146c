// The scalar types of loop IR and what a value of each one is.
//
// Integers are two's complement; u8 to u64 are unsigned, and so is i1 (0 or 1). f16, bf16, f32 and f64 are IEEE 754
// binary16, bfloat16, binary32 and binary64; every float operation is rounded once, to nearest even, to its own type.
#ifndef COMPILER_IR_TYPE_H_
#define COMPILER_IR_TYPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace polynao::ir {

// V(name, text, long alias, bytes, is_float). Encoded programs (isa/program.h) hold a type's place in
// the list, so new types go to its end.
#define POLYNAO_TYPES(V)               \
  V(I1, "i1", "bool", 1, false)        \
  V(I8, "i8", "int8", 1, false)        \
  V(I16, "i16", "int16", 2, false)     \
  V(I32, "i32", "int32", 4, false)     \
  V(I64, "i64", "int64", 8, false)     \
  V(U8, "u8", "uint8", 1, false)       \
  V(F16, "f16", "float16", 2, true)    \
  V(BF16, "bf16", "bfloat16", 2, true) \
  V(F32, "f32", "float32", 4, true)    \
  V(F64, "f64", "float64", 8, true)    \
  V(U16, "u16", "uint16", 2, false)    \
  V(U32, "u32", "uint32", 4, false)    \
  V(U64, "u64", "uint64", 8, false)

enum class Type : uint8_t {
#define V(name, text, alias, bytes, is_float) k##name,
  POLYNAO_TYPES(V)
#undef V
};

inline constexpr int kTypeCount = 13;

// "f16" for Type::kF16.
std::string_view TypeName(Type type);

// The type named `text` ("f16" or its long alias "float16"), if there is one.
std::optional<Type> ParseType(std::string_view text);

// Bytes that one element takes in memory (1 for i1).
int ByteSize(Type type);

bool IsFloat(Type type);
inline bool IsInt(Type type) { return !IsFloat(type); }

// Returns true if `type` is an integer type without negative values: i1, u8, u16, u32, u64.
bool IsUnsigned(Type type);

// Bits of a value of an integer type: 1 for i1.
int BitWidth(Type type);

// ---- integer values -----------------------------------------------------------------------------
//
// An int64_t holds a value of any integer type: the number itself or, for u64, the number modulo
// 2^64, so that u64 values from 2^63 up are negative. Functions that take a type read it so.

// `value` wrapped around to `type`, which is an integer type: WrapInt(kI8, 130) == -126.
int64_t WrapInt(Type type, int64_t value);

// Returns true if `type` holds the number `value` without wrapping; u64 holds no negative one.
inline bool FitsInt(Type type, int64_t value) {
  return type == Type::kU64 ? value >= 0 : WrapInt(type, value) == value;
}

// Returns true if `type` fits in an int64_t as a number: every integer type but u64. Indices,
// extents, and bounds of loops have such types.
inline bool IsIndexable(Type type) {
  return IsInt(type) && type != Type::kI1 && type != Type::kU64;
}

// The least and the greatest value of an integer type; the greatest of u64 is -1 here.
int64_t LeastInt(Type type);
int64_t GreatestInt(Type type);

// a < b.
inline bool IntLess(Type type, int64_t a, int64_t b) {
  return type == Type::kU64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

// The number as text, in decimal.
std::string IntText(Type type, int64_t value);

// The number rounded once, to nearest even, to the float type `to`.
double IntToFloat(Type type, int64_t value, Type to);

// `value` truncated to an integer and saturated to `type`; NaN gives 0, and i1 asks for `!= 0`.
int64_t FloatToInt(Type type, double value);

// Floor division and its remainder, `/` and `%` of integers; `b` is not 0. The one quotient that
// int64_t does not hold, -2^63 / -1, wraps around.
inline int64_t FloorDiv(int64_t a, int64_t b) {
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
inline int64_t FloorMod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

// Floor division and its remainder in `type`; `b` is not 0. The quotient that the type does not
// hold, of its least value and -1, wraps around.
int64_t DivInt(Type type, int64_t a, int64_t b);
int64_t ModInt(Type type, int64_t a, int64_t b);

// `a` shifted by `b` places, `<<` and `>>`. `>>` copies the sign of a signed type. The count is
// read as an unsigned number of `type`; one of at least the type's width shifts everything out, so
// that 0 remains, or -1 of a negative number by `>>`.
int64_t ShiftLeft(Type type, int64_t a, int64_t b);
int64_t ShiftRight(Type type, int64_t a, int64_t b);

// ---- floats and memory --------------------------------------------------------------------------

// `value` rounded to nearest even in `type`, which is a float type.
double RoundFloat(Type type, double value);

// Bit patterns of f16 and bf16. Conversions to them round to nearest even; NaNs stay NaNs.
uint16_t FloatToHalf(float value);
float HalfToFloat(uint16_t bits);
uint16_t FloatToBfloat(float value);
float BfloatToFloat(uint16_t bits);

// One element of a buffer in memory, as the interpreter's wide value and back.
// `address` need not be aligned.
double LoadFloat(Type type, const void* address);
void StoreFloat(Type type, void* address, double value);
int64_t LoadInt(Type type, const void* address);
void StoreInt(Type type, void* address, int64_t value);

}  // namespace polynao::ir

#endif  // COMPILER_IR_TYPE_H_
