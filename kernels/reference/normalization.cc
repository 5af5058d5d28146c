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

}  // namespace polynao::kernels
