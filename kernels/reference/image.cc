#include "kernels/reference/image.h"

#include <algorithm>
#include <cmath>

namespace polynao::kernels {
namespace {

// A place of the input and its weight.
struct Tap {
  int64_t at;
  double weight;
};
using Taps = std::array<Tap, 2>;

int64_t Limited(double place, int64_t extent) {
  return std::clamp<int64_t>(static_cast<int64_t>(place), 0, extent - 1);
}

Taps TapsOf(const ResizeProblem& p, size_t axis, int64_t o) {
  const int64_t in = p.in[axis], out = p.out[axis];
  const float place = static_cast<float>(o);
  float at = 0;
  if (p.mode == CoordinateMode::kAlignCorners) {
    const float scale = out == 1 ? 0 : static_cast<float>(in - 1) / static_cast<float>(out - 1);
    at = place * scale;
  } else {
    const float scale = static_cast<float>(in) / static_cast<float>(out);
    at = p.mode == CoordinateMode::kHalfPixel ? (place + 0.5F) * scale - 0.5F : place * scale;
  }
  if (p.nearest) {
    const float whole =
        p.mode == CoordinateMode::kAlignCorners ? std::nearbyint(at) : std::floor(at + 1e-5F);
    return {Tap{Limited(whole, in), 1}, Tap{0, 0}};
  }
  const float low = std::floor(at);
  return {Tap{Limited(low, in), 1 - static_cast<double>(at - low)},
          Tap{Limited(std::ceil(at), in), static_cast<double>(at - low)}};
}

}  // namespace

void ReferenceResize(const ResizeProblem& p, const ir::Tensor& x, ir::Tensor& out) {
  int64_t next = 0;
  for (int64_t o = 0; o < p.outer; ++o) {
    for (int64_t z = 0; z < p.out[0]; ++z) {
      for (int64_t y = 0; y < p.out[1]; ++y) {
        for (int64_t w = 0; w < p.out[2]; ++w) {
          const Taps zs = TapsOf(p, 0, z), ys = TapsOf(p, 1, y), ws = TapsOf(p, 2, w);
          for (int64_t i = 0; i < p.inner; ++i) {
            double sum = 0;
            for (const Tap& tz : zs) {
              for (const Tap& ty : ys) {
                for (const Tap& tw : ws) {
                  const double weight = tz.weight * ty.weight * tw.weight;
                  if (weight == 0) continue;
                  const int64_t place = ((o * p.in[0] + tz.at) * p.in[1] + ty.at) * p.in[2] + tw.at;
                  sum += weight * x.Value(place * p.inner + i);
                }
              }
            }
            out.SetValue(next++, sum);
          }
        }
      }
    }
  }
}

void ReferenceCropAndResize(bool channels_first, bool nearest, double outside, const ir::Tensor& x,
                            const ir::Tensor& boxes, const ir::Tensor& box_indices,
                            ir::Tensor& out) {
  const size_t h = channels_first ? 2 : 1, w = h + 1, c = channels_first ? 1 : 3;
  const int64_t height = x.shape[h], width = x.shape[w], channels = x.shape[c];
  const int64_t out_height = out.shape[h], out_width = out.shape[w];
  const auto offset = [&](int64_t n, int64_t channel, int64_t y, int64_t q, int64_t ys,
                          int64_t qs) {
    return channels_first ? ((n * channels + channel) * ys + y) * qs + q
                          : ((n * ys + y) * qs + q) * channels + channel;
  };
  // Where place o of an axis lies, and whether that is inside.
  const auto place = [&](int64_t box, size_t first, int64_t o, int64_t in, int64_t count) {
    const float begin = static_cast<float>(boxes.Value(box * 4 + static_cast<int64_t>(first)));
    const float end = static_cast<float>(boxes.Value(box * 4 + static_cast<int64_t>(first) + 2));
    const float size = static_cast<float>(in - 1) * (end - begin);
    const float scale = size / static_cast<float>(count - 1);
    return begin * static_cast<float>(in - 1) + scale * static_cast<float>(o);
  };
  for (int64_t b = 0; b < boxes.shape[0]; ++b) {
    const int64_t n = box_indices.Int(b);
    for (int64_t o = 0; o < out_height * out_width * channels; ++o) {
      const int64_t channel = o / out_width / out_height, oy = o / out_width % out_height;
      const int64_t ox = o % out_width;
      const float y = place(b, 0, oy, height, out_height);
      const float q = place(b, 1, ox, width, out_width);
      const auto at = [&](float row, float column) {
        return x.Value(
            offset(n, channel, Limited(row, height), Limited(column, width), height, width));
      };
      double value = outside;
      const bool inside = y >= 0 && q >= 0 && y <= static_cast<float>(height - 1) &&
                          q <= static_cast<float>(width - 1);
      if (inside && nearest) {
        value = at(std::nearbyint(y), std::nearbyint(q));
      } else if (inside) {
        const float y0 = std::floor(y), q0 = std::floor(q), y1 = std::ceil(y), q1 = std::ceil(q);
        const double dy = y - y0, dq = q - q0;
        value = (at(y0, q0) * (1 - dq) + at(y0, q1) * dq) * (1 - dy) +
                (at(y1, q0) * (1 - dq) + at(y1, q1) * dq) * dy;
      }
      out.SetValue(offset(b, channel, oy, ox, out_height, out_width), value);
    }
  }
}

void ReferenceAffineGrid(const ir::Tensor& matrix, ir::Tensor& out) {
  const int64_t h = out.shape[2], w = out.shape[3];
  for (int64_t i = 0; i < out.element_count(); ++i) {
    const int64_t row = i / w / h;  // of matrices: n, then which of two
    const double y = -1 + 2.0 * static_cast<double>(i / w % h) / static_cast<double>(h - 1);
    const double x = -1 + 2.0 * static_cast<double>(i % w) / static_cast<double>(w - 1);
    out.SetValue(
        i, matrix.Value(row * 3) * x + matrix.Value(row * 3 + 1) * y + matrix.Value(row * 3 + 2));
  }
}

void ReferenceGridSample(const ir::Tensor& x, const ir::Tensor& grid, ir::Tensor& out) {
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  const int64_t places = out.shape[2] * out.shape[3];
  for (int64_t n = 0; n < out.shape[0]; ++n) {
    for (int64_t place = 0; place < places; ++place) {
      const auto coordinate = [&](int64_t which, int64_t extent) {
        const float from = static_cast<float>(grid.Value((n * 2 + which) * places + place));
        return (from + 1.0F) * static_cast<float>(extent - 1) / 2.0F;
      };
      const float q = coordinate(0, width), y = coordinate(1, height);
      const float q0 = std::floor(q), y0 = std::floor(y);
      const double dq = q - q0, dy = y - y0;
      for (int64_t c = 0; c < channels; ++c) {
        const auto at = [&](float row, float column) {
          if (row < 0 || column < 0 || row >= static_cast<float>(height) ||
              column >= static_cast<float>(width)) {
            return 0.0;
          }
          return x.Value(((n * channels + c) * height + static_cast<int64_t>(row)) * width +
                         static_cast<int64_t>(column));
        };
        out.SetValue((n * channels + c) * places + place,
                     at(y0, q0) * (1 - dy) * (1 - dq) + at(y0, q0 + 1) * (1 - dy) * dq +
                         at(y0 + 1, q0) * dy * (1 - dq) + at(y0 + 1, q0 + 1) * dy * dq);
      }
    }
  }
}

}  // namespace polynao::kernels
