#include "compiler/ir/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace polynao::ir {
namespace {

// |x - y| of two numbers.
double Distance(const Tensor& a, const Tensor& b, int64_t i) {
  if (!IsFloat(a.type)) {
    const int64_t x = a.Int(i);
    const int64_t y = b.Int(i);
    // The difference of two i64 fits a u64.
    const bool less =
        IsUnsigned(a.type) ? static_cast<uint64_t>(x) < static_cast<uint64_t>(y) : x < y;
    return static_cast<double>(less ? static_cast<uint64_t>(y) - static_cast<uint64_t>(x)
                                    : static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
  }
  const double x = a.Float(i);
  const double y = b.Float(i);
  if (x == y || (std::isnan(x) && std::isnan(y))) return 0;
  const double distance = std::abs(x - y);
  return std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
}

// The position of a float among all floats of its type, in order of value; -0 and 0 are one.
int64_t Ordinal(const Tensor& tensor, int64_t i) {
  const int size = ByteSize(tensor.type);
  uint64_t bits = 0;
  std::memcpy(&bits, &tensor.bytes[i * size], size);
  const uint64_t sign = uint64_t{1} << (8 * size - 1);
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

bool Agree(const Tensor& a, const Tensor& b, int64_t i, int64_t max_ulps) {
  const int size = ByteSize(a.type);
  if (std::memcmp(&a.bytes[i * size], &b.bytes[i * size], size) == 0) return true;
  if (!IsFloat(a.type)) return false;
  const bool a_nan = std::isnan(a.Float(i));
  const bool b_nan = std::isnan(b.Float(i));
  if (a_nan || b_nan) return a_nan && b_nan;
  if (max_ulps == 0) return false;
  const int64_t x = Ordinal(a, i);
  const int64_t y = Ordinal(b, i);
  // Of one sign the difference fits; of two signs each part must be small.
  if ((x < 0) == (y < 0)) return std::abs(x - y) <= max_ulps;
  return std::abs(x) <= max_ulps && std::abs(y) <= max_ulps - std::abs(x);
}

}  // namespace

Difference Compare(const Tensor& a, const Tensor& b) {
  POLYNAO_CHECK(a.type == b.type && a.shape == b.shape) << "tensors of unlike shapes";
  Difference difference;
  if (a.bytes == b.bytes) return difference;
  const int64_t count = a.element_count();
  for (int64_t i = 0; i < count; ++i) {
    const double error = Distance(a, b, i);
    if (error == 0) continue;
    const double scale = std::max({std::abs(a.Value(i)), std::abs(b.Value(i)), 1e-30});
    const double relative = std::isfinite(scale) ? error / scale : error;
    if (difference.where < 0 || error > difference.max_abs) {
      difference.max_abs = error;
      difference.where = i;
    }
    difference.max_rel = std::max(difference.max_rel, relative);
  }
  return difference;
}

int64_t FirstDifference(const Tensor& a, const Tensor& b, int64_t max_ulps) {
  POLYNAO_CHECK(a.type == b.type && a.bytes.size() == b.bytes.size()) << "tensors of unlike sizes";
  if (a.bytes == b.bytes) return -1;
  const int64_t count = a.element_count();
  for (int64_t i = 0; i < count; ++i) {
    if (!Agree(a, b, i, max_ulps)) return i;
  }
  return -1;
}

}  // namespace polynao::ir
