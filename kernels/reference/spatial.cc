#include "kernels/reference/spatial.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace polynao::kernels {
namespace {

// D, H, W of any problem.
std::array<SpatialAxis, 3> ThreeAxes(const SpatialProblem& p) {
  std::array<SpatialAxis, 3> axes;
  std::copy(p.axes.begin(), p.axes.end(), axes.end() - static_cast<int64_t>(p.axes.size()));
  return axes;
}

// sum[i] += w * x[i].
#if defined(__clang__) && defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
void Accumulate(double* sum, const double* x, double w, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] += w * x[i];
}

// A tap of a convolution that meets an element of the image: the places of the output, of the image and
// of the filter, each counted over its rows and columns; images of a batch stand one after another.
struct Tap {
  int64_t out, in, kernel;
};

// Calls `visit` for each tap of two axes.
template <typename Visit>
void ForEachTap(const SpatialProblem& p, const Visit& visit) {
  const SpatialAxis &h = p.axes[0], &v = p.axes[1];
  for (int64_t place = 0; place < p.n * h.out * v.out; ++place) {
    const int64_t n = place / v.out / h.out, y = place / v.out % h.out, x = place % v.out;
    for (int64_t k = 0; k < h.kernel * v.kernel; ++k) {
      const int64_t in_y = y * h.stride + k / v.kernel - h.before;
      const int64_t in_x = x * v.stride + k % v.kernel - v.before;
      if (in_y < 0 || in_y >= h.in || in_x < 0 || in_x >= v.in) continue;
      visit(Tap{.out = place, .in = (n * h.in + in_y) * v.in + in_x, .kernel = k});
    }
  }
}

void AccumulateStrided(double* sum, const double* x, double w, int64_t count, int64_t stride) {
  for (int64_t i = 0; i < count; ++i) sum[i] += w * x[i * stride];
}

}  // namespace

std::vector<double> InOrder(const ir::Tensor& tensor, std::string_view layout,
                            std::string_view order) {
  POLYNAO_CHECK(layout.size() == tensor.shape.size()) << std::string(layout);
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;
  for (const char letter : order) {
    const size_t d = layout.find(letter);
    if (d == std::string_view::npos) continue;
    int64_t stride = 1;
    for (size_t i = d + 1; i < layout.size(); ++i) stride *= tensor.shape[i];
    extents.push_back(tensor.shape[d]);
    strides.push_back(stride);
  }
  POLYNAO_CHECK(extents.size() == layout.size()) << std::string(layout);
  std::vector<double> values(tensor.element_count());
  std::vector<int64_t> index(extents.size(), 0);
  int64_t at = 0;
  for (double& value : values) {
    value = tensor.Value(at);
    for (size_t d = index.size(); d-- > 0;) {
      at += strides[d];
      if (++index[d] < extents[d]) break;
      at -= strides[d] * extents[d];
      index[d] = 0;
    }
  }
  return values;
}

std::vector<double> ReferenceSpatial(const SpatialProblem& p, const ir::Tensor& x,
                                     const ir::Tensor& w) {
  const auto [d, h, v] = ThreeAxes(p);
  const int64_t ci = p.ci / p.groups;
  const int64_t co = p.co / p.groups;
  const std::vector<double> in = InOrder(x, p.layout, "NCDHW");
  const std::vector<double> filter = InOrder(w, p.kernel_layout, "OIDHW");
  // Padded so that every place that is read exists.
  const auto padded = [](const SpatialAxis& a) {
    return std::max(a.before + a.in, (a.out - 1) * a.stride + (a.kernel - 1) * a.dilation + 1);
  };
  const int64_t pd = padded(d), ph = padded(h), pw = padded(v);
  std::vector<double> image(p.ci * pd * ph * pw);
  const bool is_dense = h.stride == 1 && v.stride == 1;
  // With stride 1 rows are added up together with what lies between them, in one run.
  const int64_t pitch = is_dense ? pw : v.out;
  std::vector<double> sums(d.out * h.out * pitch);
  std::vector<double> out;
  out.reserve(p.n * p.co * d.out * h.out * v.out);
  for (int64_t n = 0; n < p.n; ++n) {
    for (int64_t c = 0; c < p.ci * d.in * h.in; ++c) {
      const int64_t z = c / h.in % d.in, y = c % h.in, channel = c / h.in / d.in;
      const double* row = &in[(n * p.ci * d.in * h.in + c) * v.in];
      std::copy(row, row + v.in,
                &image[((channel * pd + z + d.before) * ph + y + h.before) * pw + v.before]);
    }
    for (int64_t o = 0; o < p.co; ++o) {
      std::fill(sums.begin(), sums.end(), 0);
      for (int64_t i = 0; i < ci; ++i) {
        const double* channel = &image[(o / co * ci + i) * pd * ph * pw];
        const double* weight = &filter[(o * ci + i) * d.kernel * h.kernel * v.kernel];
        for (int64_t k = 0; k < d.kernel * h.kernel * v.kernel; ++k) {
          const int64_t kz = k / v.kernel / h.kernel, ky = k / v.kernel % h.kernel;
          const int64_t kx = k % v.kernel;
          for (int64_t z = 0; z < d.out; ++z) {
            const double* plane = channel + (z * d.stride + kz * d.dilation) * ph * pw;
            double* sum = &sums[z * h.out * pitch];
            if (is_dense) {
              Accumulate(sum, plane + ky * h.dilation * pw + kx * v.dilation, weight[k],
                         (h.out - 1) * pw + v.out);
              continue;
            }
            for (int64_t y = 0; y < h.out; ++y) {
              AccumulateStrided(sum + y * pitch,
                                plane + (y * h.stride + ky * h.dilation) * pw + kx * v.dilation,
                                weight[k], v.out, v.stride);
            }
          }
        }
      }
      for (int64_t row = 0; row < d.out * h.out; ++row) {
        out.insert(out.end(), &sums[row * pitch], &sums[row * pitch] + v.out);
      }
    }
  }
  return out;
}

std::vector<double> ReferenceSpatialTransposed(const SpatialProblem& p, const ir::Tensor& x,
                                               const ir::Tensor& w) {
  const auto [d, h, v] = ThreeAxes(p);
  const std::vector<double> in = InOrder(x, p.layout, "NCDHW");
  const std::vector<double> filter = InOrder(w, p.kernel_layout, "OIDHW");
  const int64_t plane = h.out * v.out;
  std::vector<double> out(p.n * p.co * d.out * plane);
  const int64_t kernel = d.kernel * h.kernel * v.kernel;
  for (int64_t no = 0; no < p.n * p.co; ++no) {
    const int64_t n = no / p.co, o = no % p.co;
    for (int64_t ik = 0; ik < p.ci * kernel; ++ik) {
      const int64_t i = ik / kernel, k = ik % kernel;
      const int64_t kz = k / v.kernel / h.kernel, ky = k / v.kernel % h.kernel, kx = k % v.kernel;
      const double weight = filter[o * p.ci * kernel + ik];
      for (int64_t z = 0; z < d.in; ++z) {
        const int64_t to_z = z * d.stride + kz - d.before;
        if (to_z < 0 || to_z >= d.out) continue;
        for (int64_t y = 0; y < h.in; ++y) {
          const int64_t to_y = y * h.stride + ky - h.before;
          if (to_y < 0 || to_y >= h.out) continue;
          const double* row = &in[(((n * p.ci + i) * d.in + z) * h.in + y) * v.in];
          double* to = &out[(no * d.out + to_z) * plane + to_y * v.out];
          for (int64_t q = 0; q < v.in; ++q) {
            const int64_t to_x = q * v.stride + kx - v.before;
            if (to_x >= 0 && to_x < v.out) to[to_x] += weight * row[q];
          }
        }
      }
    }
  }
  return out;
}

void ReferenceDepthwiseBackInput(const SpatialProblem& p, const ir::Tensor& w,
                                 const ir::Tensor& out_grad, ir::Tensor& in_grad) {
  const SpatialAxis &h = p.axes[0], &v = p.axes[1];
  const int64_t m = p.co / p.ci;
  const std::vector<double> filter = InOrder(w, "HWCM", "HWCM");
  const std::vector<double> grad = InOrder(out_grad, "NHWC", "NHWC");
  std::vector<double> sums(p.n * h.in * v.in * p.ci);
  ForEachTap(p, [&](const Tap& tap) {
    double* to = &sums[tap.in * p.ci];
    for (int64_t c = 0; c < p.co; ++c) {
      to[c / m] += grad[tap.out * p.co + c] * filter[tap.kernel * p.co + c];
    }
  });
  for (size_t i = 0; i < sums.size(); ++i) in_grad.SetValue(static_cast<int64_t>(i), sums[i]);
}

void ReferenceDepthwiseBackWeight(const SpatialProblem& p, const ir::Tensor& x,
                                  const ir::Tensor& out_grad, ir::Tensor& w_grad) {
  const SpatialAxis &h = p.axes[0], &v = p.axes[1];
  const int64_t m = p.co / p.ci;
  const std::vector<double> in = InOrder(x, "NHWC", "NHWC");
  const std::vector<double> grad = InOrder(out_grad, "NHWC", "NHWC");
  std::vector<double> sums(h.kernel * v.kernel * p.co);
  ForEachTap(p, [&](const Tap& tap) {
    const double* from = &in[tap.in * p.ci];
    for (int64_t c = 0; c < p.co; ++c) {
      sums[tap.kernel * p.co + c] += grad[tap.out * p.co + c] * from[c / m];
    }
  });
  for (size_t i = 0; i < sums.size(); ++i) w_grad.SetValue(static_cast<int64_t>(i), sums[i]);
}

void ReferenceDeformable(const SpatialProblem& p, int64_t deformable_groups, const ir::Tensor& x,
                         const ir::Tensor& offset, const ir::Tensor& w, ir::Tensor& out) {
  const SpatialAxis &h = p.axes[0], &v = p.axes[1];
  const int64_t taps = h.kernel * v.kernel;
  // The value of channel c at a place between the elements.
  const auto sample = [&](int64_t n, int64_t c, double y, double x_place) {
    if (y < 0 || x_place < 0 || y >= static_cast<double>(h.in) ||
        x_place >= static_cast<double>(v.in)) {
      return 0.0;
    }
    const double y0 = std::floor(y), x0 = std::floor(x_place);
    const auto at = [&](double row, double column) {
      const int64_t r = std::min(static_cast<int64_t>(row), h.in - 1);
      const int64_t q = std::min(static_cast<int64_t>(column), v.in - 1);
      return x.Value(((n * p.ci + c) * h.in + r) * v.in + q);
    };
    const double dy = y - y0, dx = x_place - x0;
    return at(y0, x0) * (1 - dy) * (1 - dx) + at(y0, x0 + 1) * (1 - dy) * dx +
           at(y0 + 1, x0) * dy * (1 - dx) + at(y0 + 1, x0 + 1) * dy * dx;
  };
  for (int64_t n = 0; n < p.n; ++n) {
    for (int64_t place = 0; place < h.out * v.out; ++place) {
      std::vector<double> samples(p.ci * taps);
      for (int64_t i = 0; i < p.ci * taps; ++i) {
        const int64_t c = i / taps, k = i % taps;
        const int64_t group = c / (p.ci / deformable_groups);
        const auto distance = [&](int64_t which) {
          const int64_t channel = (group * taps + k) * 2 + which;
          return offset.Value((n * deformable_groups * taps * 2 + channel) * h.out * v.out + place);
        };
        const int64_t y = place / v.out * h.stride + k / v.kernel * h.dilation - h.before;
        const int64_t q = place % v.out * v.stride + k % v.kernel * v.dilation - v.before;
        samples[i] = sample(n, c, static_cast<double>(y) + distance(0),
                            static_cast<double>(q) + distance(1));
      }
      for (int64_t o = 0; o < p.co; ++o) {
        double sum = 0;
        for (int64_t i = 0; i < p.ci * taps; ++i) sum += samples[i] * w.Value(o * p.ci * taps + i);
        out.SetValue((n * p.co + o) * h.out * v.out + place, sum);
      }
    }
  }
}

}  // namespace polynao::kernels
