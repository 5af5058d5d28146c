#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/polybench/reference.h"

namespace polynao::kernels::polybench {

// Row by row: the dot product of two finished parts of rows is what an element lacks.
void Cholesky(Matrix a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < j; ++k) sum += a(i, k) * a(j, k);
      a(i, j) = i == j ? std::sqrt(a(i, i) - sum) : (a(i, j) - sum) / a(j, j);
    }
  }
}

void Durbin(Vector r, Vector y, int64_t n) {
  // The solution for k equations; each round extends it by one.
  std::vector<double> solution = {-r(0)};
  double error = 1;
  for (int64_t k = 1; k < n; ++k) {
    const double last = solution.back();
    error *= 1 - last * last;
    double sum = r(k);
    for (int64_t i = 0; i < k; ++i) sum += r(k - 1 - i) * solution[i];
    const double reflection = -sum / error;
    std::vector<double> reversed(solution.rbegin(), solution.rend());
    for (int64_t i = 0; i < k; ++i) solution[i] += reflection * reversed[i];
    solution.push_back(reflection);
  }
  for (int64_t i = 0; i < n; ++i) y(i) = solution[i];
}

void Gramschmidt(Matrix a, Matrix r, Matrix q, int64_t m, int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    double squares = 0;
    for (int64_t i = 0; i < m; ++i) squares += a(i, k) * a(i, k);
    r(k, k) = std::sqrt(squares);
    for (int64_t i = 0; i < m; ++i) q(i, k) = a(i, k) / r(k, k);
    for (int64_t j = k + 1; j < n; ++j) {
      double projection = 0;
      for (int64_t i = 0; i < m; ++i) projection += q(i, k) * a(i, j);
      r(k, j) = projection;
      for (int64_t i = 0; i < m; ++i) a(i, j) -= projection * q(i, k);
    }
  }
}

// Crout's order: a row of U, then a column of L.
void Lu(Matrix a, int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t j = k; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += a(k, p) * a(p, j);
      a(k, j) -= sum;
    }
    for (int64_t i = k + 1; i < n; ++i) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += a(i, p) * a(p, k);
      a(i, k) = (a(i, k) - sum) / a(k, k);
    }
  }
}

void Ludcmp(Matrix a, Vector b, Vector x, Vector y, int64_t n) {
  Lu(a, n);
  for (int64_t i = 0; i < n; ++i) {
    double sum = b(i);
    for (int64_t j = 0; j < i; ++j) sum -= a(i, j) * y(j);
    y(i) = sum;
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    double sum = y(i);
    for (int64_t j = i + 1; j < n; ++j) sum -= a(i, j) * x(j);
    x(i) = sum / a(i, i);
  }
}

void Trisolv(Matrix l, Vector x, Vector b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < i; ++j) sum += l(i, j) * x(j);
    x(i) = (b(i) - sum) / l(i, i);
  }
}

}  // namespace polynao::kernels::polybench
