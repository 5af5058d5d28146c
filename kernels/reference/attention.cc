#include "kernels/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace polynao::kernels {
namespace {

std::vector<double> Elements(const ir::Tensor& tensor) {
  std::vector<double> elements(tensor.element_count());
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] = tensor.Float(static_cast<int64_t>(i));
  }
  return elements;
}

}  // namespace

void ReferenceAttention(double scale, const ir::Tensor& q, const ir::Tensor& k, const ir::Tensor& v,
                        ir::Tensor& y) {
  const int64_t heads = q.shape[0], rows = q.shape[1], size = q.shape[2], keys = k.shape[1];
  const std::vector<double> queries = Elements(q), of_keys = Elements(k), values = Elements(v);
  std::vector<double> scores(keys), sums(size);
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t row = h * rows; row < (h + 1) * rows; ++row) {
      double largest = -HUGE_VAL, all = 0;
      for (int64_t key = 0; key < keys; ++key) {
        double score = 0;
        for (int64_t i = 0; i < size; ++i) {
          score += queries[row * size + i] * of_keys[(h * keys + key) * size + i];
        }
        scores[key] = score * scale;
        largest = std::max(largest, scores[key]);
      }
      std::fill(sums.begin(), sums.end(), 0);
      for (int64_t key = 0; key < keys; ++key) {
        const double weight = std::exp(scores[key] - largest);
        all += weight;
        for (int64_t i = 0; i < size; ++i) sums[i] += weight * values[(h * keys + key) * size + i];
      }
      for (int64_t i = 0; i < size; ++i) y.SetValue(row * size + i, sums[i] / all);
    }
  }
}

}  // namespace polynao::kernels
