#include "compiler/ir/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/check.h"

namespace polynao::ir {

Difference Compare(const Tensor& a, const Tensor& b) {
  POLYNAO_CHECK(a.type == b.type && a.shape == b.shape) << "tensors of unlike shapes";
  Difference difference;
  if (a.bytes == b.bytes) return difference;
  const int64_t count = a.element_count();
  for (int64_t i = 0; i < count; ++i) {
    const double x = a.Value(i);
    const double y = b.Value(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    double error = std::abs(x - y);
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    const double scale = std::max({std::abs(x), std::abs(y), 1e-30});
    const double relative = std::isfinite(scale) ? error / scale : error;
    if (difference.where < 0 || error > difference.max_abs) {
      difference.max_abs = error;
      difference.where = i;
    }
    difference.max_rel = std::max(difference.max_rel, relative);
  }
  return difference;
}

}  // namespace polynao::ir
