#include <cmath>

#include "kernels/polybench/reference.h"

namespace polynao::kernels::polybench {
namespace {

double MeanOfColumn(Matrix data, int64_t column, int64_t n) {
  double sum = 0;
  for (int64_t row = 0; row < n; ++row) sum += data(row, column);
  return sum / static_cast<double>(n);
}

double ProductOfColumns(Matrix data, int64_t a, int64_t b, int64_t n) {
  double sum = 0;
  for (int64_t row = 0; row < n; ++row) sum += data(row, a) * data(row, b);
  return sum;
}

}  // namespace

void Correlation(Matrix data, Matrix corr, Vector mean, Vector stddev, int64_t m, int64_t n) {
  for (int64_t j = 0; j < m; ++j) {
    mean(j) = MeanOfColumn(data, j, n);
    for (int64_t i = 0; i < n; ++i) data(i, j) -= mean(j);
    stddev(j) = std::sqrt(ProductOfColumns(data, j, j, n) / static_cast<double>(n));
    if (stddev(j) <= 0.1) stddev(j) = 1;
    for (int64_t i = 0; i < n; ++i) {
      data(i, j) /= std::sqrt(static_cast<double>(n)) * stddev(j);
    }
  }
  for (int64_t a = 0; a < m; ++a) {
    for (int64_t b = 0; b < m; ++b) {
      corr(a, b) = a == b ? 1 : ProductOfColumns(data, a, b, n);
    }
  }
}

void Covariance(Matrix data, Matrix cov, Vector mean, int64_t m, int64_t n) {
  for (int64_t j = 0; j < m; ++j) {
    mean(j) = MeanOfColumn(data, j, n);
    for (int64_t i = 0; i < n; ++i) data(i, j) -= mean(j);
  }
  for (int64_t a = 0; a < m; ++a) {
    for (int64_t b = 0; b < m; ++b) {
      cov(a, b) = ProductOfColumns(data, a, b, n) / (static_cast<double>(n) - 1);
    }
  }
}

}  // namespace polynao::kernels::polybench
