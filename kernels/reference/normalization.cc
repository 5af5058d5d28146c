#include "kernels/reference/normalization.h"

#include <algorithm>
#include <cmath>

namespace polynao::kernels {

void ReferenceSoftmax(int64_t outer, int64_t count, int64_t inner, const ir::Tensor& x,
                      ir::Tensor& y) {
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const auto at = [&](int64_t r) { return (o * count + r) * inner + i; };
      // Without it exp overflows; the quotient is the same.
      double largest = x.Float(at(0)), sum = 0;
      for (int64_t r = 1; r < count; ++r) largest = std::max(largest, x.Float(at(r)));
      for (int64_t r = 0; r < count; ++r) sum += std::exp(x.Float(at(r)) - largest);
      for (int64_t r = 0; r < count; ++r) {
        y.SetValue(at(r), std::exp(x.Float(at(r)) - largest) / sum);
      }
    }
  }
}

void ReferenceLayerNorm(double epsilon, const ir::Tensor& x, const ir::Tensor& gamma,
                        const ir::Tensor& beta, ir::Tensor& y) {
  const int64_t count = gamma.element_count();
  for (int64_t begin = 0; begin < x.element_count(); begin += count) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; ++i) sum += x.Float(begin + i);
    const double mean = sum / static_cast<double>(count);
    for (int64_t i = 0; i < count; ++i) squares += std::pow(x.Float(begin + i) - mean, 2);
    const double deviation = std::sqrt(squares / static_cast<double>(count) + epsilon);
    for (int64_t i = 0; i < count; ++i) {
      y.SetValue(begin + i,
                 (x.Float(begin + i) - mean) / deviation * gamma.Float(i) + beta.Float(i));
    }
  }
}

void ReferenceRmsNorm(double epsilon, const ir::Tensor& x, const ir::Tensor& gamma, ir::Tensor& y) {
  const int64_t count = gamma.element_count();
  for (int64_t begin = 0; begin < x.element_count(); begin += count) {
    double squares = 0;
    for (int64_t i = 0; i < count; ++i) squares += std::pow(x.Float(begin + i), 2);
    const double size = std::sqrt(squares / static_cast<double>(count) + epsilon);
    for (int64_t i = 0; i < count; ++i) {
      y.SetValue(begin + i, x.Float(begin + i) / size * gamma.Float(i));
    }
  }
}

void ReferenceGroupNorm(int64_t pixels, int64_t groups, double epsilon, const ir::Tensor& x,
                        const ir::Tensor& gamma, const ir::Tensor& beta, ir::Tensor& y) {
  const int64_t channels = gamma.element_count(), size = channels / groups;
  const double count = static_cast<double>(pixels * size);
  for (int64_t begin = 0; begin < x.element_count(); begin += pixels * channels) {
    for (int64_t g = 0; g < groups; ++g) {
      const auto for_all = [&](const auto& visit) {
        for (int64_t p = 0; p < pixels; ++p) {
          for (int64_t c = g * size; c < (g + 1) * size; ++c) visit(begin + p * channels + c, c);
        }
      };
      double sum = 0, squares = 0;
      for_all([&](int64_t i, int64_t) { sum += x.Float(i); });
      const double mean = sum / count;
      for_all([&](int64_t i, int64_t) { squares += std::pow(x.Float(i) - mean, 2); });
      const double deviation = std::sqrt(squares / count + epsilon);
      for_all([&](int64_t i, int64_t c) {
        y.SetValue(i, (x.Float(i) - mean) / deviation * gamma.Float(c) + beta.Float(c));
      });
    }
  }
}

}  // namespace polynao::kernels
