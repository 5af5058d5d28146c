// Integer arithmetic on sizes and counts.
#ifndef BASE_MATH_H_
#define BASE_MATH_H_

#include <cstdint>

namespace polynao {

// a / b rounded up, for b > 0 and any a.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

// The least multiple of b that is at least a.
constexpr int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

static_assert(CeilDiv(7, 2) == 4 && CeilDiv(8, 2) == 4 && CeilDiv(0, 5) == 0);
static_assert(CeilDiv(-7, 2) == -3 && CeilDiv(INT64_MAX, 2) == (int64_t{1} << 62));
static_assert(RoundUp(9, 4) == 12 && RoundUp(8, 4) == 8);

}  // namespace polynao

#endif  // BASE_MATH_H_
