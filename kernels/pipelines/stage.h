// A stage's values in the references of pipelines.
#ifndef KERNELS_PIPELINES_STAGE_H_
#define KERNELS_PIPELINES_STAGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/check.h"

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
    return values_[Offset(index...)];
  }
  template <typename... Index>
  const T& operator()(Index... index) const {
    return values_[Offset(index...)];
  }

 private:
  template <typename... Index>
  size_t Offset(Index... index) const {
    static_assert(sizeof...(Index) == kRank);
    int64_t offset = 0;
    size_t dimension = 0;
    for (const int64_t i : {static_cast<int64_t>(index)...}) {
      POLYNAO_CHECK(0 <= i && i < extents_[dimension]) << i << " of " << extents_[dimension];
      offset = offset * extents_[dimension++] + i;
    }
    return static_cast<size_t>(offset);
  }

  std::array<int64_t, kRank> extents_;
  std::vector<T> values_;
};

}  // namespace polynao::kernels

#endif  // KERNELS_PIPELINES_STAGE_H_
