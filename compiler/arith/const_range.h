// Intervals of integers with infinite ends: what is known about an expression's value.
#ifndef COMPILER_ARITH_CONST_RANGE_H_
#define COMPILER_ARITH_CONST_RANGE_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "compiler/ir/type.h"

namespace polynao::arith {

inline constexpr int64_t kMinusInfinity = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kInfinity = std::numeric_limits<int64_t>::max();

// All integers x with min <= x <= max. A lower end of -2^63 and an upper end of 2^63 - 1 stand for infinity, and
// arithmetic saturates there: the upper end of 2^62 * 4 is infinite, and the lower one 2^63 - 1, a bound like any
// other. So Point(2^63 - 1) holds all values from there on. `min > max` means that no value is possible.
//
// Operators give an interval that holds f(x, y) for every x and y of the operands' intervals, as
// mathematical integers; + - * min and max give the smallest one.
struct ConstRange {
  int64_t min = kMinusInfinity;
  int64_t max = kInfinity;

  static ConstRange Everything() { return {}; }
  static ConstRange Nothing() { return {kInfinity, kMinusInfinity}; }
  static ConstRange Point(int64_t value) { return {value, value}; }
  static ConstRange OfType(ir::Type type);  // `type` is an integer type

  bool IsEmpty() const { return min > max; }
  bool IsPoint() const { return min == max; }
  bool IsBounded() const { return min != kMinusInfinity && max != kInfinity; }
  bool Contains(int64_t value) const { return min <= value && value <= max; }
  bool Contains(ConstRange other) const {
    return other.IsEmpty() || (min <= other.min && other.max <= max);
  }
  // How many values, if that is finite and fits.
  std::optional<int64_t> Count() const;
  bool operator==(const ConstRange&) const = default;

  // "[0, 13]", "[-inf, 4]".
  std::string ToString() const;
};

ConstRange Intersect(ConstRange a, ConstRange b);
ConstRange Union(ConstRange a, ConstRange b);

ConstRange operator+(ConstRange a, ConstRange b);
ConstRange operator-(ConstRange a, ConstRange b);
ConstRange operator*(ConstRange a, ConstRange b);
// Floor division and its remainder. Divisions by zero yield nothing, so the zero in `b` is left
// out: [8, 9] / [0, 2] is [4, 9].
ConstRange FloorDiv(ConstRange a, ConstRange b);
ConstRange FloorMod(ConstRange a, ConstRange b);
ConstRange Min(ConstRange a, ConstRange b);
ConstRange Max(ConstRange a, ConstRange b);

// The single-value versions.
using ir::FloorDiv;
using ir::FloorMod;

}  // namespace polynao::arith

#endif  // COMPILER_ARITH_CONST_RANGE_H_
