#include "isa/native_blocks.h"

#include <cmath>
#include <limits>

#include "base/check.h"
#include "isa/simd.h"

namespace polynao::isa::native {
namespace {

template <typename T>
void LoadInts(const uint8_t* from, int64_t stride, int32_t* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = ReadAs<T>(from + i * stride);
}

template <typename T>
void StoreInts(const int32_t* from, uint8_t* to, int64_t stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) WriteAs<T>(to + i * stride, static_cast<T>(from[i]));
}

// Truncates towards zero and saturates; NaN gives 0 (ir.h, Cast).
int32_t Saturate(float value, float low, float high) {
  if (std::isnan(value)) return 0;
  if (value <= low) return static_cast<int32_t>(low);
  // 2^31 - 1 is no float: `high` is then 2^31, which must not be converted.
  if (value >= high) {
    return high >= 0x1p31f ? std::numeric_limits<int32_t>::max() : static_cast<int32_t>(high);
  }
  return static_cast<int32_t>(value);
}

// Applies `f` to n pairs; small enough to be vectorised for each f.
template <typename T, typename R, typename F>
void Map2(const T* a, const T* b, R* out, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
}

int32_t WrapSub(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}
int32_t WrapMul(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}

}  // namespace

bool IsBlockType(Type type) {
  switch (type) {
    case Type::kF16:
    case Type::kF32:
    case Type::kI1:
    case Type::kI8:
    case Type::kU8:
    case Type::kI16:
    case Type::kI32:
      return true;
    case Type::kI64:
    case Type::kBF16:
    case Type::kF64:
    case Type::kU16:
    case Type::kU32:
    case Type::kU64:
      return false;
  }
  return false;
}

void LoadBlock(Type type, const uint8_t* from, int64_t stride, Slot& to, int64_t n) {
  switch (type) {
    case Type::kF16:
      if (stride == 2) return HalfToFloat(from, to.f, n);
      for (int64_t i = 0; i < n; ++i)
        to.f[i] = ir::HalfToFloat(ReadAs<uint16_t>(from + i * stride));
      return;
    case Type::kF32:
      if (stride == 4) {
        std::memcpy(to.f, from, n * 4);
        return;
      }
      for (int64_t i = 0; i < n; ++i) to.f[i] = ReadAs<float>(from + i * stride);
      return;
    case Type::kI1:
      for (int64_t i = 0; i < n; ++i) to.i[i] = from[i * stride] != 0;
      return;
    case Type::kI8:
      return stride == 1 ? LoadInts<int8_t>(from, 1, to.i, n)
                         : LoadInts<int8_t>(from, stride, to.i, n);
    case Type::kU8:
      return LoadInts<uint8_t>(from, stride, to.i, n);
    case Type::kI16:
      return stride == 2 ? LoadInts<int16_t>(from, 2, to.i, n)
                         : LoadInts<int16_t>(from, stride, to.i, n);
    case Type::kI32:
      if (stride == 4) {
        std::memcpy(to.i, from, n * 4);
        return;
      }
      return LoadInts<int32_t>(from, stride, to.i, n);
    default:
      POLYNAO_UNREACHABLE(TypeName(type));
  }
}

void StoreBlock(Type type, const Slot& from, uint8_t* to, int64_t stride, int64_t n) {
  switch (type) {
    case Type::kF16:
      if (stride == 2) return FloatToHalf(from.f, to, n);
      for (int64_t i = 0; i < n; ++i) WriteAs(to + i * stride, ir::FloatToHalf(from.f[i]));
      return;
    case Type::kF32:
      for (int64_t i = 0; i < n; ++i) WriteAs(to + i * stride, from.f[i]);
      return;
    case Type::kI1:
    case Type::kI8:
    case Type::kU8:
      return StoreInts<uint8_t>(from.i, to, stride, n);
    case Type::kI16:
      return StoreInts<uint16_t>(from.i, to, stride, n);
    case Type::kI32:
      return StoreInts<uint32_t>(from.i, to, stride, n);
    default:
      POLYNAO_UNREACHABLE(TypeName(type));
  }
}

void Normalize(Type type, Slot& slot, int64_t n) {
  switch (type) {
    case Type::kF16:
      return RoundToHalf(slot.f, n);
    case Type::kI1:
      for (int64_t i = 0; i < n; ++i) slot.i[i] &= 1;
      return;
    case Type::kI8:
      for (int64_t i = 0; i < n; ++i) slot.i[i] = static_cast<int8_t>(slot.i[i]);
      return;
    case Type::kU8:
      for (int64_t i = 0; i < n; ++i) slot.i[i] = static_cast<uint8_t>(slot.i[i]);
      return;
    case Type::kI16:
      for (int64_t i = 0; i < n; ++i) slot.i[i] = static_cast<int16_t>(slot.i[i]);
      return;
    default:
      return;
  }
}

void CastFloatToInt(Type type, const float* from, int32_t* to, int64_t n) {
  float low = -0x1p31f, high = 0x1p31f;
  if (type == Type::kI8) low = -128, high = 127;
  if (type == Type::kU8) low = 0, high = 255;
  if (type == Type::kI16) low = -32768, high = 32767;
  for (int64_t i = 0; i < n; ++i) {
    to[i] =
        type == Type::kI1 ? (from[i] != 0 && !std::isnan(from[i])) : Saturate(from[i], low, high);
  }
}

template <typename T>
void Compare(BlockOp op, const T* a, const T* b, int32_t* out, int64_t n) {
  switch (op) {
    case BlockOp::kEq:
      return Map2(a, b, out, n, [](T x, T y) { return x == y; });
    case BlockOp::kNe:
      return Map2(a, b, out, n, [](T x, T y) { return x != y; });
    case BlockOp::kLt:
      return Map2(a, b, out, n, [](T x, T y) { return x < y; });
    case BlockOp::kLe:
      return Map2(a, b, out, n, [](T x, T y) { return x <= y; });
    default:
      POLYNAO_UNREACHABLE(static_cast<int>(op));
  }
}

template void Compare(BlockOp, const float*, const float*, int32_t*, int64_t);
template void Compare(BlockOp, const int32_t*, const int32_t*, int32_t*, int64_t);

void FloatArithmetic(BlockOp op, const float* a, const float* b, float* out, int64_t n) {
  switch (op) {
    case BlockOp::kAdd:
      return Map2(a, b, out, n, [](float x, float y) { return x + y; });
    case BlockOp::kSub:
      return Map2(a, b, out, n, [](float x, float y) { return x - y; });
    case BlockOp::kMul:
      return Map2(a, b, out, n, [](float x, float y) { return x * y; });
    case BlockOp::kDiv:
      return Map2(a, b, out, n, [](float x, float y) { return x / y; });
    case BlockOp::kMin:
      return Map2(a, b, out, n, [](float x, float y) { return y < x ? y : x; });
    case BlockOp::kMax:
      return Map2(a, b, out, n, [](float x, float y) { return x < y ? y : x; });
    default:
      POLYNAO_UNREACHABLE(static_cast<int>(op));
  }
}

void IntArithmetic(BlockOp op, const int32_t* a, const int32_t* b, int32_t* out, int64_t n) {
  switch (op) {
    case BlockOp::kAdd:
      return Map2(a, b, out, n, WrapAdd);
    case BlockOp::kSub:
      return Map2(a, b, out, n, WrapSub);
    case BlockOp::kMul:
      return Map2(a, b, out, n, WrapMul);
    case BlockOp::kMin:
      return Map2(a, b, out, n, [](int32_t x, int32_t y) { return y < x ? y : x; });
    case BlockOp::kMax:
      return Map2(a, b, out, n, [](int32_t x, int32_t y) { return x < y ? y : x; });
    case BlockOp::kAnd:
      return Map2(a, b, out, n, [](int32_t x, int32_t y) { return x & y; });
    case BlockOp::kOr:
      return Map2(a, b, out, n, [](int32_t x, int32_t y) { return x | y; });
    default:
      POLYNAO_UNREACHABLE(static_cast<int>(op));
  }
}

}  // namespace polynao::isa::native
