// Buffers as references see them: A(i, j).
#ifndef KERNELS_POLYBENCH_VIEW_H_
#define KERNELS_POLYBENCH_VIEW_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "compiler/ir/tensor.h"

namespace polynao::kernels {

[[noreturn]] inline void FailOutOfRange(int64_t index, int64_t extent) {
  POLYNAO_CHECK(0 <= index && index < extent) << index << " of " << extent;
  POLYNAO_UNREACHABLE("an index in range");
}

// The place of an element in row-major order; every index is checked.
template <size_t kRank, typename... Index>
int64_t CheckedOffset(const std::array<int64_t, kRank>& extents, Index... index) {
  static_assert(sizeof...(Index) == kRank);
  int64_t offset = 0;
  size_t dimension = 0;
  const auto add = [&](int64_t i) {
    const int64_t extent = extents[dimension++];
    if (i < 0 || i >= extent) FailOutOfRange(i, extent);
    offset = offset * extent + i;
  };
  (add(static_cast<int64_t>(index)), ...);
  return offset;
}

// The elements of a tensor of `kRank` dimensions, row-major; every index is checked.
template <typename T, size_t kRank>
class View {
 public:
  using Element = T;

  explicit View(ir::Tensor& tensor) : data_(reinterpret_cast<T*>(tensor.bytes.data())) {
    POLYNAO_CHECK(tensor.shape.size() == kRank) << tensor.shape.size();
    POLYNAO_CHECK(tensor.bytes.size() == tensor.element_count() * sizeof(T));
    for (size_t i = 0; i < kRank; ++i) extents_[i] = tensor.shape[i];
  }

  template <typename... Index>
  T& operator()(Index... index) const {
    return data_[CheckedOffset(extents_, index...)];
  }
  int64_t extent(size_t dimension) const { return extents_[dimension]; }

 private:
  T* data_;
  std::array<int64_t, kRank> extents_;
};

using Vector = View<double, 1>;
using Matrix = View<double, 2>;
using Cube = View<double, 3>;

}  // namespace polynao::kernels

#endif  // KERNELS_POLYBENCH_VIEW_H_
