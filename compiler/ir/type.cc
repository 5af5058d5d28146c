#include "compiler/ir/type.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace polynao::ir {
namespace {

struct TypeRow {
  std::string_view text;
  std::string_view alias;
  int bytes;
  bool is_float;
};

constexpr TypeRow kRows[] = {
#define V(name, text, alias, bytes, is_float) {text, alias, bytes, is_float},
    POLYNAO_TYPES(V)
#undef V
};
static_assert(std::size(kRows) == kTypeCount);

const TypeRow& Row(Type type) { return kRows[static_cast<int>(type)]; }

template <typename T>
T Read(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

template <typename T>
void Write(void* address, T value) {
  std::memcpy(address, &value, sizeof(T));
}

}  // namespace

std::string_view TypeName(Type type) { return Row(type).text; }

std::optional<Type> ParseType(std::string_view text) {
  for (int i = 0; i < kTypeCount; ++i) {
    if (text == kRows[i].text || text == kRows[i].alias) return static_cast<Type>(i);
  }
  return std::nullopt;
}

int ByteSize(Type type) { return Row(type).bytes; }

bool IsFloat(Type type) { return Row(type).is_float; }

bool IsUnsigned(Type type) {
  switch (type) {
    case Type::kI1:
    case Type::kU8:
    case Type::kU16:
    case Type::kU32:
    case Type::kU64:
      return true;
    case Type::kI8:
    case Type::kI16:
    case Type::kI32:
    case Type::kI64:
    case Type::kF16:
    case Type::kBF16:
    case Type::kF32:
    case Type::kF64:
      return false;
  }
  POLYNAO_UNREACHABLE(static_cast<int>(type));
}

int BitWidth(Type type) { return type == Type::kI1 ? 1 : 8 * ByteSize(type); }

int64_t WrapInt(Type type, int64_t value) {
  switch (type) {
    case Type::kI1:
      return value & 1;
    case Type::kI8:
      return static_cast<int8_t>(value);
    case Type::kI16:
      return static_cast<int16_t>(value);
    case Type::kI32:
      return static_cast<int32_t>(value);
    case Type::kI64:
      return value;
    case Type::kU8:
      return static_cast<uint8_t>(value);
    case Type::kU16:
      return static_cast<uint16_t>(value);
    case Type::kU32:
      return static_cast<uint32_t>(value);
    case Type::kU64:
      return value;
    case Type::kF16:
    case Type::kBF16:
    case Type::kF32:
    case Type::kF64:
      break;
  }
  POLYNAO_UNREACHABLE("WrapInt of " << TypeName(type));
}

int64_t LeastInt(Type type) { return IsUnsigned(type) ? 0 : INT64_MIN >> (64 - BitWidth(type)); }

int64_t GreatestInt(Type type) {
  const uint64_t all_bits = UINT64_MAX >> (64 - BitWidth(type));
  return static_cast<int64_t>(IsUnsigned(type) ? all_bits : all_bits >> 1);
}

std::string IntText(Type type, int64_t value) {
  return type == Type::kU64 ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value);
}

double IntToFloat(Type type, int64_t value, Type to) {
  const bool is_negative = value < 0 && type != Type::kU64;
  const uint64_t magnitude = is_negative ? 0 - static_cast<uint64_t>(value) : value;
  double rounded;
  if (to == Type::kF64) {
    rounded = static_cast<double>(magnitude);
  } else if (to == Type::kF32) {
    rounded = static_cast<float>(magnitude);
  } else {
    // Above 2^53 a double rounds too. A bit set in place of all that it drops keeps the rounding to
    // the 8 or 11 bits of the narrow type right.
    constexpr uint64_t kDropped = 0x7ff;
    const bool is_exact = magnitude >> 53 == 0 || (magnitude & kDropped) == 0;
    rounded = RoundFloat(
        to, static_cast<double>(is_exact ? magnitude : (magnitude & ~kDropped) | (kDropped + 1)));
  }
  return is_negative ? -rounded : rounded;
}

int64_t FloatToInt(Type type, double value) {
  if (std::isnan(value)) return 0;
  if (type == Type::kI1) return value != 0;
  const double low = IsUnsigned(type) ? 0 : -std::ldexp(1, BitWidth(type) - 1);
  const double limit = std::ldexp(1, BitWidth(type) - (IsUnsigned(type) ? 0 : 1));
  if (value <= low) return LeastInt(type);
  if (value >= limit) return GreatestInt(type);
  return type == Type::kU64 ? static_cast<int64_t>(static_cast<uint64_t>(value))
                            : static_cast<int64_t>(value);
}

int64_t DivInt(Type type, int64_t a, int64_t b) {
  if (type == Type::kU64) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
  }
  return WrapInt(type, FloorDiv(a, b));
}

int64_t ModInt(Type type, int64_t a, int64_t b) {
  if (type == Type::kU64) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) % static_cast<uint64_t>(b));
  }
  return FloorMod(a, b);
}

int64_t ShiftLeft(Type type, int64_t a, int64_t b) {
  const int width = BitWidth(type);
  if (b < 0 || b >= width) return 0;
  return WrapInt(type, static_cast<int64_t>(static_cast<uint64_t>(a) << b));
}

int64_t ShiftRight(Type type, int64_t a, int64_t b) {
  const int width = BitWidth(type);
  if (b < 0 || b >= width) return a < 0 && !IsUnsigned(type) ? -1 : 0;
  if (type == Type::kU64) return static_cast<int64_t>(static_cast<uint64_t>(a) >> b);
  return a >> b;
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);   // NaN
  if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | 0x7c00);  // >= 65536
  if (magnitude < 0x38800000) {
    // Subnormal in f16: adding 0.5 leaves the mantissa, rounded, in the low bits.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
  }
  const uint32_t odd = (magnitude >> 13) & 1;
  // Rebias the exponent (127 to 15), then round half to even; a carry overflows into infinity.
  const uint32_t rounded = magnitude - 0x38000000 + 0xfff + odd;
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t FloatToBfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  const uint32_t odd = (bits >> 16) & 1;
  return static_cast<uint16_t>((bits + 0x7fff + odd) >> 16);
}

float BfloatToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

namespace {

// `value` as the float that rounds to the same narrower type as `value` does: rounding to odd keeps
// the information that a second rounding needs.
float RoundToOdd(double value) {
  float nearest = static_cast<float>(value);
  if (std::isnan(value) || std::isinf(nearest) || static_cast<double>(nearest) == value) {
    if (std::isinf(nearest) && !std::isinf(value)) {
      return std::copysign(0x1.fffffep127f, nearest);
    }
    return nearest;
  }
  if (std::bit_cast<uint32_t>(nearest) & 1) return nearest;
  const bool go_up = static_cast<double>(nearest) < value;
  return std::nextafterf(nearest, go_up ? HUGE_VALF : -HUGE_VALF);
}

}  // namespace

double RoundFloat(Type type, double value) {
  switch (type) {
    case Type::kF16:
      return HalfToFloat(FloatToHalf(RoundToOdd(value)));
    case Type::kBF16:
      return BfloatToFloat(FloatToBfloat(RoundToOdd(value)));
    case Type::kF32:
      return static_cast<float>(value);
    case Type::kF64:
      return value;
    default:
      POLYNAO_UNREACHABLE("RoundFloat of " << TypeName(type));
  }
}

double LoadFloat(Type type, const void* address) {
  switch (type) {
    case Type::kF16:
      return HalfToFloat(Read<uint16_t>(address));
    case Type::kBF16:
      return BfloatToFloat(Read<uint16_t>(address));
    case Type::kF32:
      return Read<float>(address);
    case Type::kF64:
      return Read<double>(address);
    default:
      POLYNAO_UNREACHABLE("LoadFloat of " << TypeName(type));
  }
}

void StoreFloat(Type type, void* address, double value) {
  switch (type) {
    case Type::kF16:
      return Write(address, FloatToHalf(RoundToOdd(value)));
    case Type::kBF16:
      return Write(address, FloatToBfloat(RoundToOdd(value)));
    case Type::kF32:
      return Write(address, static_cast<float>(value));
    case Type::kF64:
      return Write(address, value);
    default:
      POLYNAO_UNREACHABLE("StoreFloat of " << TypeName(type));
  }
}

int64_t LoadInt(Type type, const void* address) {
  switch (type) {
    case Type::kI1:
      return Read<uint8_t>(address) != 0;
    case Type::kI8:
      return Read<int8_t>(address);
    case Type::kI16:
      return Read<int16_t>(address);
    case Type::kI32:
      return Read<int32_t>(address);
    case Type::kI64:
      return Read<int64_t>(address);
    case Type::kU8:
      return Read<uint8_t>(address);
    case Type::kU16:
      return Read<uint16_t>(address);
    case Type::kU32:
      return Read<uint32_t>(address);
    case Type::kU64:
      return static_cast<int64_t>(Read<uint64_t>(address));
    default:
      POLYNAO_UNREACHABLE("LoadInt of " << TypeName(type));
  }
}

void StoreInt(Type type, void* address, int64_t value) {
  switch (ByteSize(type)) {
    case 1:
      return Write(address, static_cast<uint8_t>(WrapInt(type, value)));
    case 2:
      return Write(address, static_cast<uint16_t>(value));
    case 4:
      return Write(address, static_cast<uint32_t>(value));
    default:
      return Write(address, value);
  }
}

}  // namespace polynao::ir
