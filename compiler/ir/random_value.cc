#include "compiler/ir/random_value.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/check.h"

namespace polynao::ir {
namespace {

// std::ldexp, which is a large part of the time that random tensors take. A product with a power of two is rounded as
// ldexp rounds.
double Scaled(double value, int exponent) {
  if (exponent < -1022 || exponent > 1023) return std::ldexp(value, exponent);
  return value * std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// Hands out parts of a few random words.
class Bits {
 public:
  Bits(uint64_t seed, uint64_t i) : word_(Splitmix(seed, i)) {}
  // A number from 0 to n - 1.
  uint64_t Below(uint64_t n) {
    word_ = Splitmix(word_, 0);
    return (word_ >> 8) % n;
  }
  uint64_t All() { return word_ = Splitmix(word_, 1); }

 private:
  uint64_t word_;
};

// A binary floating-point format: values are below 2^(max_exponent + 1), normal ones are at least
// 2^min_exponent, and 1 + 2^-mantissa_bits follows 1.
struct Format {
  int mantissa_bits;
  int min_exponent;
  int max_exponent;
};

Format FormatOf(Type type) {
  switch (type) {
    case Type::kF16:
      return {10, -14, 15};
    case Type::kBF16:
      return {7, -126, 127};
    case Type::kF32:
      return {23, -126, 127};
    case Type::kF64:
      return {52, -1022, 1023};
    default:
      POLYNAO_UNREACHABLE("FormatOf " << TypeName(type));
  }
}

// A number in [1, 2) with all bits of the mantissa random, times 2^exponent.
double FullMantissa(const Format& f, int exponent, Bits& bits) {
  const double fraction =
      Scaled(static_cast<double>(bits.All() >> (64 - f.mantissa_bits)), -f.mantissa_bits);
  return Scaled(1 + fraction, exponent);
}

// An edge that neither overflows nor poisons a sum.
double FiniteEdge(const Format& f, Bits& bits) {
  const double least_normal = Scaled(1.0, f.min_exponent);
  const double least = Scaled(1.0, f.min_exponent - f.mantissa_bits);
  switch (bits.Below(8)) {
    case 0:
    case 1:
      return 0;
    case 2:
      return least;
    case 3:
      return least_normal;
    case 4:
      return least_normal - least;  // the greatest subnormal
    case 5:
      return static_cast<double>(bits.Below(130)) + 0.5;  // ties of conversions to integers
    case 6:
      return 1;
    default: {
      // A power of two that is still one after a few products, or a neighbour of it.
      const int range = f.max_exponent < 20 ? 4 : 20;
      const double power = Scaled(1.0, static_cast<int>(bits.Below(2 * range + 1)) - range);
      const double step = Scaled(power, -f.mantissa_bits);
      const uint64_t side = bits.Below(3);
      return side == 0 ? power : side == 1 ? power + step : power - step / 2;
    }
  }
}

// A value that ends up in every sum that it is part of, or any bit pattern.
double WildFloat(Type type, const Format& f, Bits& bits) {
  const double greatest = Scaled(2 - Scaled(1.0, -f.mantissa_bits), f.max_exponent);
  switch (bits.Below(6)) {
    case 0:
      return std::numeric_limits<double>::quiet_NaN();
    case 1:
      return std::numeric_limits<double>::infinity();
    case 2:
      return greatest;
    case 3:
      return Scaled(1.5, f.max_exponent);  // two of them overflow
    case 4: {
      // The ends of the integer types, where conversions saturate.
      const double end = Scaled(1.0, 7 + 8 * static_cast<int>(bits.Below(8)));
      return RoundFloat(type, end);
    }
    default: {
      const uint64_t pattern = bits.All();
      return LoadFloat(type, &pattern);
    }
  }
}

int64_t EdgeInt(int width, Bits& bits) {
  const uint64_t sign = uint64_t{1} << (width - 1);
  // As bit patterns: the sign bit is the least signed value, all ones the greatest unsigned one.
  const uint64_t edges[] = {0, sign, sign - 1, ~uint64_t{0}, uint64_t{1} << bits.Below(width)};
  const uint64_t edge = edges[bits.Below(5)];
  return static_cast<int64_t>(edge + bits.Below(3) - 1);
}

// The element of the first period, and the values, that element i repeats.
void Repeat(uint64_t& i, Values& values) {
  if (i < kRandomPeriod) return;
  i %= kRandomPeriod;
  if (values == Values::kAll) values = Values::kFinite;
}

}  // namespace

double RandomFloat(Type type, uint64_t seed, uint64_t i, Values values) {
  Repeat(i, values);
  if (values == Values::kExact) return (static_cast<int>(Splitmix(seed, i) % 129) - 64) / 16.0;
  const Format f = FormatOf(type);
  Bits bits(seed, i);
  const bool negative = bits.Below(2) != 0;
  double value;
  if (values == Values::kAll && bits.Below(8 + i / 16) == 0) {
    value = WildFloat(type, f, bits);
  } else if (bits.Below(4) == 0) {
    value = FiniteEdge(f, bits);
  } else {
    value = FullMantissa(f, static_cast<int>(bits.Below(8)) - 4, bits);
  }
  return negative ? -value : value;
}

int64_t RandomInt(Type type, uint64_t seed, uint64_t i, Values values) {
  Repeat(i, values);
  Bits bits(seed, i);
  if (type == Type::kI1) return static_cast<int64_t>(bits.Below(2));
  const int64_t small = IsUnsigned(type) ? static_cast<int64_t>(bits.Below(16))
                                         : static_cast<int64_t>(bits.Below(33)) - 16;
  if (values == Values::kExact) return small;
  switch (bits.Below(8)) {
    case 0:
    case 1:
      return WrapInt(type, EdgeInt(8 * ByteSize(type), bits));
    case 2:
    case 3:
      return small;
    default:
      return WrapInt(type, static_cast<int64_t>(bits.All()));
  }
}

}  // namespace polynao::ir
