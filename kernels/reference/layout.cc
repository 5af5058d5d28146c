#include "kernels/reference/layout.h"

#include <algorithm>

#include "base/check.h"

namespace polynao::kernels {
namespace {

// Not by way of f64, which has no room for all 64-bit integers.
void Copy(const ir::Tensor& x, int64_t from, ir::Tensor& y, int64_t to) {
  if (ir::IsFloat(x.type)) {
    y.SetValue(to, x.Value(from));
  } else {
    y.SetInt(to, x.Int(from));
  }
}

}  // namespace

void ReferencePad(int64_t before, int64_t after, double value, const ir::Tensor& x, ir::Tensor& y) {
  const int64_t h = x.shape[0], w = x.shape[1], c = x.shape[2];
  POLYNAO_CHECK(y.type == x.type &&
                y.element_count() == (before + h + after) * (before + w + after) * c);
  int64_t at = 0;
  for (int64_t row = -before; row < h + after; ++row) {
    for (int64_t column = -before; column < w + after; ++column) {
      for (int64_t i = 0; i < c; ++i, ++at) {
        if (row >= 0 && row < h && column >= 0 && column < w) {
          Copy(x, (row * w + column) * c + i, y, at);
        } else {
          y.SetValue(at, value);
        }
      }
    }
  }
}

ir::Tensor ReferenceBroadcast(const ir::Tensor& x, const std::vector<int64_t>& shape) {
  ir::Tensor y(x.type, shape);
  const size_t new_axes = shape.size() - x.shape.size();
  const int64_t count = y.element_count();
  for (int64_t at = 0; at < count; ++at) {
    int64_t from = 0, rest = at, stride = 1;
    for (size_t axis = shape.size(); axis-- > new_axes;) {
      const int64_t extent = x.shape[axis - new_axes];
      POLYNAO_CHECK(extent == shape[axis] || extent == 1);
      if (extent != 1) from += rest % shape[axis] * stride;
      rest /= shape[axis];
      stride *= extent;
    }
    Copy(x, from, y, at);
  }
  return y;
}

void ReferenceBatchToSpace(const std::vector<int64_t>& block, const std::vector<int64_t>& begin,
                           const ir::Tensor& x, ir::Tensor& out) {
  const size_t rank = x.shape.size();
  for (int64_t from = 0; from < x.element_count(); ++from) {
    std::vector<int64_t> at(rank);
    int64_t rest = from;
    for (size_t d = rank; d-- > 0; rest /= x.shape[d]) at[d] = rest % x.shape[d];
    // Its place in a block, the last axis counting fastest.
    int64_t place = at[0] / out.shape[0];
    at[0] %= out.shape[0];
    bool inside = true;
    for (size_t a = block.size(); a-- > 0; place /= block[a]) {
      at[a + 1] = at[a + 1] * block[a] + place % block[a] - begin[a];
      inside = inside && at[a + 1] >= 0 && at[a + 1] < out.shape[a + 1];
    }
    if (!inside) continue;
    int64_t to = 0;
    for (size_t d = 0; d < rank; ++d) to = to * out.shape[d] + at[d];
    out.SetValue(to, x.Value(from));
  }
}

void ReferenceWalk(const std::vector<int64_t>& from, const std::vector<int64_t>& begin,
                   const std::vector<int64_t>& step, const ir::Tensor& x, ir::Tensor& y) {
  const size_t rank = y.shape.size();
  POLYNAO_CHECK(x.shape.size() == rank && from.size() == rank);
  for (int64_t at = 0; at < y.element_count(); ++at) {
    std::vector<int64_t> place(rank);
    int64_t rest = at;
    for (size_t d = rank; d-- > 0; rest /= y.shape[d]) {
      place[from[d]] = begin[d] + step[d] * (rest % y.shape[d]);
    }
    int64_t element = 0;
    for (size_t d = 0; d < rank; ++d) {
      POLYNAO_CHECK(place[d] >= 0 && place[d] < x.shape[d]);
      element = element * x.shape[d] + place[d];
    }
    Copy(x, element, y, at);
  }
}

void ReferenceConcat(int64_t axis, const ir::Tensor& a, const ir::Tensor& b, ir::Tensor& y) {
  int64_t outer = 1;
  for (int64_t d = 0; d < axis; ++d) outer *= y.shape[d];
  const int64_t of_a = a.element_count() / outer, of_b = b.element_count() / outer;
  int64_t at = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < of_a; ++i) Copy(a, o * of_a + i, y, at++);
    for (int64_t i = 0; i < of_b; ++i) Copy(b, o * of_b + i, y, at++);
  }
}

void ReferenceResizeNearest(int64_t scale, const ir::Tensor& x, ir::Tensor& y) {
  const int64_t h = x.shape[0], w = x.shape[1], c = x.shape[2];
  int64_t at = 0;
  for (int64_t row = 0; row < h * scale; ++row) {
    for (int64_t column = 0; column < w * scale; ++column) {
      for (int64_t i = 0; i < c; ++i) {
        Copy(x, (row / scale * w + column / scale) * c + i, y, at++);
      }
    }
  }
}

void ReferenceResizeBilinear(const ir::Tensor& x, ir::Tensor& y) {
  const auto round = [&x](double value) { return ir::RoundFloat(x.type, value); };
  // (outer, n, inner) to (outer, n * 2, inner).
  const auto twice = [&](const ir::Tensor& from, int64_t outer, int64_t n, ir::Tensor& to) {
    const int64_t inner = from.element_count() / outer / n;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < n * 2; ++i) {
        const int64_t near = i / 2;
        const int64_t far =
            i % 2 == 0 ? (near > 0 ? near - 1 : 0) : (near + 1 < n ? near + 1 : near);
        for (int64_t k = 0; k < inner; ++k) {
          const double a = from.Float((o * n + near) * inner + k);
          const double b = from.Float((o * n + far) * inner + k);
          to.SetValue((o * n * 2 + i) * inner + k, round(round(a * 0.75) + round(b * 0.25)));
        }
      }
    }
  };
  const int64_t h = x.shape[0], w = x.shape[1], c = x.shape[2];
  ir::Tensor rows(x.type, {h * 2, w, c});
  twice(x, 1, h, rows);
  twice(rows, h * 2, w, y);
}

void ReferenceGather(const ir::Tensor& x, const ir::Tensor& numbers, ir::Tensor& y) {
  const int64_t row = x.element_count() / x.shape[0];
  for (int64_t i = 0; i < numbers.element_count(); ++i) {
    const int64_t from = std::clamp<int64_t>(numbers.Int(i), 0, x.shape[0] - 1);
    for (int64_t k = 0; k < row; ++k) Copy(x, from * row + k, y, i * row + k);
  }
}

}  // namespace polynao::kernels
