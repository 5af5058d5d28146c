#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/polybench/reference.h"

namespace polynao::kernels::polybench {
namespace {

// Solves a tridiagonal system with `off` beside the diagonal of `diagonal`, between the values 1 at both ends:
// returns x[0 .. n). p and q are the coefficients of Thomas's algorithm, right_side has the elements 1 .. n - 2.
std::vector<double> SolveTridiagonal(double off, double diagonal,
                                     const std::vector<double>& right_side, std::vector<double>& p,
                                     std::vector<double>& q) {
  const int64_t n = static_cast<int64_t>(right_side.size());
  p.assign(n, 0);
  q.assign(n, 1);
  for (int64_t j = 1; j < n - 1; ++j) {
    const double pivot = off * p[j - 1] + diagonal;
    p[j] = -off / pivot;
    q[j] = (right_side[j] - off * q[j - 1]) / pivot;
  }
  std::vector<double> x(n, 1);
  for (int64_t j = n - 2; j > 0; --j) x[j] = p[j] * x[j + 1] + q[j];
  return x;
}

// One pass of Deriche's filter along a line, forward (y1) and backward (y2).
struct DericheLine {
  float k, decay, alpha;

  void Run(const std::vector<float>& x, std::vector<float>& y1, std::vector<float>& y2) const {
    const float a[] = {k, k * decay * (alpha - 1), k * decay * (alpha + 1),
                       -k * std::exp(-2 * alpha)};
    const float b1 = 2 * decay;
    const float b2 = -std::exp(-2 * alpha);
    const auto n = static_cast<int64_t>(x.size());
    const auto at = [n](const std::vector<float>& v, int64_t i) {
      return 0 <= i && i < n ? v[i] : 0;
    };
    for (int64_t i = 0; i < n; ++i) {
      y1[i] = a[0] * x[i] + a[1] * at(x, i - 1) + b1 * at(y1, i - 1) + b2 * at(y1, i - 2);
    }
    for (int64_t i = n - 1; i >= 0; --i) {
      y2[i] = a[2] * at(x, i + 1) + a[3] * at(x, i + 2) + b1 * at(y2, i + 1) + b2 * at(y2, i + 2);
    }
  }
};

// One half step of a stencil, from `from` to the inner elements of `to`.
void HeatStep(Cube from, Cube to, int64_t n) {
  for (int64_t i = 1; i < n - 1; ++i) {
    for (int64_t j = 1; j < n - 1; ++j) {
      for (int64_t k = 1; k < n - 1; ++k) {
        const double here = from(i, j, k);
        const double along_i = from(i + 1, j, k) - 2 * here + from(i - 1, j, k);
        const double along_j = from(i, j + 1, k) - 2 * here + from(i, j - 1, k);
        const double along_k = from(i, j, k + 1) - 2 * here + from(i, j, k - 1);
        to(i, j, k) = 0.125 * along_i + 0.125 * along_j + 0.125 * along_k + here;
      }
    }
  }
}

void MeanOfThree(Vector from, Vector to, int64_t n) {
  for (int64_t i = 1; i < n - 1; ++i) to(i) = 0.33333 * (from(i - 1) + from(i) + from(i + 1));
}

void MeanOfFive(Matrix from, Matrix to, int64_t n) {
  for (int64_t i = 1; i < n - 1; ++i) {
    for (int64_t j = 1; j < n - 1; ++j) {
      to(i, j) =
          0.2 * (from(i, j) + from(i, j - 1) + from(i, j + 1) + from(i + 1, j) + from(i - 1, j));
    }
  }
}

}  // namespace

void Adi(Matrix u, Matrix v, Matrix p, Matrix q, int64_t t, int64_t n) {
  const double step = 1.0 / static_cast<double>(n);
  const double time = 1.0 / static_cast<double>(t);
  const double ratio_x = 2.0 * time / (step * step);
  const double ratio_y = 1.0 * time / (step * step);
  std::vector<double> right(n), line_p, line_q;
  const auto keep_line = [&](int64_t i) {
    for (int64_t j = 0; j < n - 1; ++j) {
      p(i, j) = line_p[j];
      q(i, j) = line_q[j];
    }
  };
  for (int64_t round = 0; round < t; ++round) {
    for (int64_t i = 1; i < n - 1; ++i) {
      for (int64_t j = 1; j < n - 1; ++j) {
        right[j] = ratio_y / 2 * u(j, i - 1) + (1 - ratio_y) * u(j, i) + ratio_y / 2 * u(j, i + 1);
      }
      const auto x = SolveTridiagonal(-ratio_x / 2, 1 + ratio_x, right, line_p, line_q);
      for (int64_t j = 0; j < n; ++j) v(j, i) = x[j];
      keep_line(i);
    }
    for (int64_t i = 1; i < n - 1; ++i) {
      for (int64_t j = 1; j < n - 1; ++j) {
        right[j] = ratio_x / 2 * v(i - 1, j) + (1 - ratio_x) * v(i, j) + ratio_x / 2 * v(i + 1, j);
      }
      const auto x = SolveTridiagonal(-ratio_y / 2, 1 + ratio_y, right, line_p, line_q);
      for (int64_t j = 0; j < n; ++j) u(i, j) = x[j];
      keep_line(i);
    }
  }
}

void Deriche(View<float, 2> image, View<float, 2> result, View<float, 2> y1, View<float, 2> y2,
             int64_t w, int64_t h, float alpha) {
  const float decay = std::exp(-alpha);
  const float k = (1 - decay) * (1 - decay) / (1 + 2 * alpha * decay - std::exp(-2 * alpha));
  const DericheLine filter{k, decay, alpha};
  for (int64_t i = 0; i < w; ++i) {
    std::vector<float> x(h), forward(h), backward(h);
    for (int64_t j = 0; j < h; ++j) x[j] = image(i, j);
    filter.Run(x, forward, backward);
    for (int64_t j = 0; j < h; ++j) result(i, j) = forward[j] + backward[j];
  }
  for (int64_t j = 0; j < h; ++j) {
    std::vector<float> x(w), forward(w), backward(w);
    for (int64_t i = 0; i < w; ++i) x[i] = result(i, j);
    filter.Run(x, forward, backward);
    for (int64_t i = 0; i < w; ++i) {
      y1(i, j) = forward[i];
      y2(i, j) = backward[i];
      result(i, j) = forward[i] + backward[i];
    }
  }
}

void Fdtd2d(Matrix ex, Matrix ey, Matrix hz, Vector source, int64_t tmax, int64_t nx, int64_t ny) {
  for (int64_t t = 0; t < tmax; ++t) {
    for (int64_t i = 0; i < nx; ++i) {
      for (int64_t j = 0; j < ny; ++j) {
        ey(i, j) = i == 0 ? source(t) : ey(i, j) - 0.5 * (hz(i, j) - hz(i - 1, j));
        if (j > 0) ex(i, j) -= 0.5 * (hz(i, j) - hz(i, j - 1));
      }
    }
    for (int64_t i = 0; i + 1 < nx; ++i) {
      for (int64_t j = 0; j + 1 < ny; ++j) {
        hz(i, j) -= 0.7 * (ex(i, j + 1) - ex(i, j) + ey(i + 1, j) - ey(i, j));
      }
    }
  }
}

void FloydWarshall(View<int32_t, 2> path, int64_t n) {
  for (int64_t via = 0; via < n; ++via) {
    for (int64_t from = 0; from < n; ++from) {
      for (int64_t to = 0; to < n; ++to) {
        path(from, to) = std::min(path(from, to), path(from, via) + path(via, to));
      }
    }
  }
}

void Heat3d(Cube a, Cube b, int64_t steps, int64_t n) {
  for (int64_t t = 0; t < steps; ++t) {
    HeatStep(a, b, n);
    HeatStep(b, a, n);
  }
}

void Jacobi1d(Vector a, Vector b, int64_t steps, int64_t n) {
  for (int64_t t = 0; t < steps; ++t) {
    MeanOfThree(a, b, n);
    MeanOfThree(b, a, n);
  }
}

void Jacobi2d(Matrix a, Matrix b, int64_t steps, int64_t n) {
  for (int64_t t = 0; t < steps; ++t) {
    MeanOfFive(a, b, n);
    MeanOfFive(b, a, n);
  }
}

// By the length of the part: all shorter parts are known.
void Nussinov(View<int8_t, 1> seq, View<int32_t, 2> table, int64_t n) {
  for (int64_t length = 1; length < n; ++length) {
    for (int64_t i = 0; i + length < n; ++i) {
      const int64_t j = i + length;
      const bool pairs = length > 1 && seq(i) + seq(j) == 3;
      int32_t best = std::max(table(i, j), table(i + 1, j - 1) + (pairs ? 1 : 0));
      for (int64_t k = i; k < j; ++k) best = std::max(best, table(i, k) + table(k + 1, j));
      table(i, j) = best;
    }
  }
}

void Seidel2d(Matrix a, int64_t steps, int64_t n) {
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t i = 1; i < n - 1; ++i) {
      for (int64_t j = 1; j < n - 1; ++j) {
        double sum = 0;
        for (int64_t r = -1; r <= 1; ++r) {
          for (int64_t c = -1; c <= 1; ++c) sum += a(i + r, j + c);
        }
        a(i, j) = sum / 9;
      }
    }
  }
}

}  // namespace polynao::kernels::polybench
