#include "compiler/arith/const_range.h"

#include <algorithm>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace polynao::arith {
namespace {

using Wide = __int128;

// Larger than every int64_t, in products too.
constexpr Wide kBeyond = (Wide{1} << 63) + 1;

int64_t Saturate(Wide x) {
  if (x <= kMinusInfinity) return kMinusInfinity;
  if (x >= kInfinity) return kInfinity;
  return static_cast<int64_t>(x);
}

// The least int64_t is infinity as a lower end only, the greatest as an upper end only: [2^63 - 1, inf] + -5 is
// [2^63 - 6, inf].
bool IsOpen(const ConstRange& range) { return range.min == kMinusInfinity; }
bool IsEndless(const ConstRange& range) { return range.max == kInfinity; }

// The ends as numbers to multiply and divide by.
Wide Low(const ConstRange& range) { return IsOpen(range) ? -kBeyond : Wide{range.min}; }
Wide High(const ConstRange& range) { return IsEndless(range) ? kBeyond : Wide{range.max}; }

// An infinity over another one is infinite: the quotients of its finite neighbours are at other corners.
Wide DivEnds(Wide a, Wide b) {
  if (a == kBeyond || a == -kBeyond) return (a < 0) == (b < 0) ? kBeyond : -kBeyond;
  // A finite value over an ever larger divisor tends to 0, from below to -1 (floor).
  if (b == kBeyond || b == -kBeyond) return a == 0 || (a < 0) == (b < 0) ? 0 : -1;
  const Wide quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// An end that saturates is a bound where it is not infinite: all of [2^63, 2^64] is at least 2^63 - 1.
ConstRange Corners(std::initializer_list<Wide> corners) {
  return {Saturate(std::min(corners)), Saturate(std::max(corners))};
}

}  // namespace

ConstRange ConstRange::OfType(ir::Type type) {
  switch (type) {
    case ir::Type::kI1:
      return {0, 1};
    case ir::Type::kI8:
      return {-128, 127};
    case ir::Type::kU8:
      return {0, 255};
    case ir::Type::kU16:
      return {0, 65535};
    case ir::Type::kU32:
      return {0, std::numeric_limits<uint32_t>::max()};
    case ir::Type::kI16:
      return {-32768, 32767};
    case ir::Type::kI32:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    case ir::Type::kI64:
    case ir::Type::kU64:  // of its representation (type.h): nothing is known of its order
      return Everything();
    case ir::Type::kF16:
    case ir::Type::kBF16:
    case ir::Type::kF32:
    case ir::Type::kF64:
      break;
  }
  POLYNAO_UNREACHABLE("range of " << ir::TypeName(type));
}

std::optional<int64_t> ConstRange::Count() const {
  if (IsEmpty()) return 0;
  if (!IsBounded()) return std::nullopt;
  const Wide count = Wide{max} - min + 1;
  if (count > kInfinity) return std::nullopt;
  return static_cast<int64_t>(count);
}

std::string ConstRange::ToString() const {
  if (IsEmpty()) return "[]";
  return absl::StrCat("[", min == kMinusInfinity ? "-inf" : absl::StrCat(min), ", ",
                      max == kInfinity ? "inf" : absl::StrCat(max), "]");
}

ConstRange Intersect(ConstRange a, ConstRange b) {
  return {std::max(a.min, b.min), std::min(a.max, b.max)};
}

ConstRange Union(ConstRange a, ConstRange b) {
  if (a.IsEmpty()) return b;
  if (b.IsEmpty()) return a;
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

ConstRange operator+(ConstRange a, ConstRange b) {
  if (a.IsEmpty() || b.IsEmpty()) return ConstRange::Nothing();
  return {IsOpen(a) || IsOpen(b) ? kMinusInfinity : Saturate(Wide{a.min} + b.min),
          IsEndless(a) || IsEndless(b) ? kInfinity : Saturate(Wide{a.max} + b.max)};
}

ConstRange operator-(ConstRange a, ConstRange b) {
  if (a.IsEmpty() || b.IsEmpty()) return ConstRange::Nothing();
  return {IsOpen(a) || IsEndless(b) ? kMinusInfinity : Saturate(Wide{a.min} - b.max),
          IsEndless(a) || IsOpen(b) ? kInfinity : Saturate(Wide{a.max} - b.min)};
}

ConstRange operator*(ConstRange a, ConstRange b) {
  if (a.IsEmpty() || b.IsEmpty()) return ConstRange::Nothing();
  return Corners({Low(a) * Low(b), Low(a) * High(b), High(a) * Low(b), High(a) * High(b)});
}

ConstRange FloorDiv(ConstRange a, ConstRange b) {
  ConstRange result = ConstRange::Nothing();
  if (a.IsEmpty()) return result;
  // The quotient is monotonic in each operand while the divisor keeps its sign.
  for (ConstRange part : {Intersect(b, {kMinusInfinity, -1}), Intersect(b, {1, kInfinity})}) {
    if (part.IsEmpty()) continue;
    result = Union(result, Corners({DivEnds(Low(a), Low(part)), DivEnds(Low(a), High(part)),
                                    DivEnds(High(a), Low(part)), DivEnds(High(a), High(part))}));
  }
  return result;
}

ConstRange FloorMod(ConstRange a, ConstRange b) {
  ConstRange result = ConstRange::Nothing();
  if (a.IsEmpty() || b.IsEmpty()) return result;
  if (b.IsPoint() && b.min != 0 && a.IsBounded()) {
    // All of `a` between two multiples of the divisor: the remainder only shifts.
    if (FloorDiv(a.min, b.min) == FloorDiv(a.max, b.min)) {
      return {FloorMod(a.min, b.min), FloorMod(a.max, b.min)};
    }
  }
  if (b.max > 0) {
    // 0 <= a % b < b, and a % b <= a for a >= 0; a % b is a itself if 0 <= a < b throughout.
    ConstRange positive = {0, IsEndless(b) ? kInfinity : b.max - 1};
    if (a.min >= 0) positive.max = std::min(positive.max, a.max);
    if (a.min >= 0 && b.min > 0 && a.max < b.min) positive.min = a.min;
    result = Union(result, positive);
  }
  if (b.min < 0) {
    ConstRange negative = {IsOpen(b) ? kMinusInfinity : b.min + 1, 0};
    if (a.max <= 0) negative.min = std::max(negative.min, a.min);
    result = Union(result, negative);
  }
  return result;
}

ConstRange Min(ConstRange a, ConstRange b) {
  if (a.IsEmpty() || b.IsEmpty()) return ConstRange::Nothing();
  return {std::min(a.min, b.min), std::min(a.max, b.max)};
}

ConstRange Max(ConstRange a, ConstRange b) {
  if (a.IsEmpty() || b.IsEmpty()) return ConstRange::Nothing();
  return {std::max(a.min, b.min), std::max(a.max, b.max)};
}

}  // namespace polynao::arith
