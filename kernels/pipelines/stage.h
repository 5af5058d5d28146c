// A stage's values in the references of pipelines.
#ifndef KERNELS_PIPELINES_STAGE_H_
#define KERNELS_PIPELINES_STAGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/polybench/view.h"

namespace polynao::kernels {

// An array of `kRank` dimensions, zero at first; S(x, y) is an element, and every index is checked.
template <typename T, size_t kRank>
class Stage {
 public:
  template <typename... Extent>
  explicit Stage(Extent... extents) : extents_{static_cast<int64_t>(extents)...} {
    static_assert(sizeof...(Extent) == kRank);
    int64_t count = 1;
    for (const int64_t extent : extents_) count *= extent;
    values_.resize(static_cast<size_t>(count));
  }

  template <typename... Index>
  T& operator()(Index... index) {
    return values_[static_cast<size_t>(CheckedOffset(extents_, index...))];
  }
  template <typename... Index>
  const T& operator()(Index... index) const {
    return values_[static_cast<size_t>(CheckedOffset(extents_, index...))];
  }

 private:
  std::array<int64_t, kRank> extents_;
  std::vector<T> values_;
};

}  // namespace polynao::kernels

#endif  // KERNELS_PIPELINES_STAGE_H_
