#include <vector>

#include "kernels/polybench/reference.h"

namespace polynao::kernels::polybench {
namespace {

// Row i of `a` times column j of `b`; both have `n` elements.
double Dot(Matrix a, int64_t i, Matrix b, int64_t j, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < n; ++k) sum += a(i, k) * b(k, j);
  return sum;
}

// c = a b, where a has `rows` rows, b has `columns` columns, and the sums have `n` terms.
void Multiply(Matrix c, Matrix a, Matrix b, int64_t rows, int64_t columns, int64_t n) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) c(i, j) = Dot(a, i, b, j, n);
  }
}

// Row i of `a` times `x`.
double Dot(Matrix a, int64_t i, Vector x, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < n; ++k) sum += a(i, k) * x(k);
  return sum;
}

// Column j of `a` times `x`.
double DotColumn(Matrix a, int64_t j, Vector x, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < n; ++k) sum += a(k, j) * x(k);
  return sum;
}

}  // namespace

void Mm2(Matrix tmp, Matrix a, Matrix b, Matrix c, Matrix d, int64_t ni, int64_t nj, int64_t nk,
         int64_t nl, double alpha, double beta) {
  for (int64_t i = 0; i < ni; ++i) {
    for (int64_t j = 0; j < nj; ++j) tmp(i, j) = alpha * Dot(a, i, b, j, nk);
    for (int64_t j = 0; j < nl; ++j) d(i, j) = beta * d(i, j) + Dot(tmp, i, c, j, nj);
  }
}

void Mm3(Matrix e, Matrix a, Matrix b, Matrix f, Matrix c, Matrix d, Matrix g, int64_t ni,
         int64_t nj, int64_t nk, int64_t nl, int64_t nm) {
  Multiply(e, a, b, ni, nj, nk);
  Multiply(f, c, d, nj, nl, nm);
  Multiply(g, e, f, ni, nl, nj);
}

void Atax(Matrix a, Vector x, Vector y, Vector tmp, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; ++i) tmp(i) = Dot(a, i, x, n);
  for (int64_t j = 0; j < n; ++j) y(j) = DotColumn(a, j, tmp, m);
}

void Bicg(Matrix a, Vector s, Vector q, Vector p, Vector r, int64_t m, int64_t n) {
  for (int64_t j = 0; j < m; ++j) s(j) = DotColumn(a, j, r, n);
  for (int64_t i = 0; i < n; ++i) q(i) = Dot(a, i, p, m);
}

void Doitgen(Cube a, Matrix c4, int64_t nr, int64_t nq, int64_t np) {
  for (int64_t r = 0; r < nr; ++r) {
    for (int64_t q = 0; q < nq; ++q) {
      std::vector<double> row(np);
      for (int64_t s = 0; s < np; ++s) row[s] = a(r, q, s);
      for (int64_t p = 0; p < np; ++p) {
        double sum = 0;
        for (int64_t s = 0; s < np; ++s) sum += row[s] * c4(s, p);
        a(r, q, p) = sum;
      }
    }
  }
}

void Gemm(Matrix c, Matrix a, Matrix b, int64_t ni, int64_t nj, int64_t nk, double alpha,
          double beta) {
  for (int64_t i = 0; i < ni; ++i) {
    for (int64_t j = 0; j < nj; ++j) c(i, j) = alpha * Dot(a, i, b, j, nk) + beta * c(i, j);
  }
}

void Gemver(Matrix a, Vector u1, Vector v1, Vector u2, Vector v2, Vector w, Vector x, Vector y,
            Vector z, int64_t n, double alpha, double beta) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) a(i, j) += u1(i) * v1(j) + u2(i) * v2(j);
  }
  for (int64_t i = 0; i < n; ++i) x(i) += beta * DotColumn(a, i, y, n) + z(i);
  for (int64_t i = 0; i < n; ++i) w(i) += alpha * Dot(a, i, x, n);
}

void Gesummv(Matrix a, Matrix b, Vector tmp, Vector x, Vector y, int64_t n, double alpha,
             double beta) {
  for (int64_t i = 0; i < n; ++i) {
    tmp(i) = Dot(a, i, x, n);
    y(i) = alpha * tmp(i) + beta * Dot(b, i, x, n);
  }
}

void Mvt(Vector x1, Vector x2, Vector y1, Vector y2, Matrix a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    x1(i) += Dot(a, i, y1, n);
    x2(i) += DotColumn(a, i, y2, n);
  }
}

void Symm(Matrix c, Matrix a, Matrix b, int64_t m, int64_t n, double alpha, double beta) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < m; ++k) sum += (k <= i ? a(i, k) : a(k, i)) * b(k, j);
      c(i, j) = alpha * sum + beta * c(i, j);
    }
  }
}

void Syr2k(Matrix c, Matrix a, Matrix b, int64_t m, int64_t n, double alpha, double beta) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < m; ++k) sum += a(i, k) * b(j, k) + b(i, k) * a(j, k);
      c(i, j) = alpha * sum + beta * c(i, j);
    }
  }
}

void Syrk(Matrix c, Matrix a, int64_t m, int64_t n, double alpha, double beta) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < m; ++k) sum += a(i, k) * a(j, k);
      c(i, j) = alpha * sum + beta * c(i, j);
    }
  }
}

void Trmm(Matrix a, Matrix b, int64_t m, int64_t n, double alpha) {
  for (int64_t j = 0; j < n; ++j) {
    // Row i of the product needs rows i, i + 1, ... of B only, which are not overwritten yet.
    for (int64_t i = 0; i < m; ++i) {
      double sum = b(i, j);
      for (int64_t k = i + 1; k < m; ++k) sum += a(k, i) * b(k, j);
      b(i, j) = alpha * sum;
    }
  }
}

}  // namespace polynao::kernels::polybench
