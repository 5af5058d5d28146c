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
    case Type::kF16:
    case Type::kBF16:
    case Type::kF32:
    case Type::kF64:
      break;
  }
  POLYNAO_UNREACHABLE("WrapInt of " << TypeName(type));
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
