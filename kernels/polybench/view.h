// Buffers as references see them: A(i, j).
#ifndef KERNELS_POLYBENCH_VIEW_H_
#define KERNELS_POLYBENCH_VIEW_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "compiler/ir/tensor.h"

namespace polynao::kernels {

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
    static_assert(sizeof...(Index) == kRank);
    int64_t offset = 0;
    size_t dimension = 0;
    for (const int64_t i : {static_cast<int64_t>(index)...}) {
      POLYNAO_CHECK(0 <= i && i < extents_[dimension]) << i << " of " << extents_[dimension];
      offset = offset * extents_[dimension++] + i;
    }
    return data_[offset];
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
