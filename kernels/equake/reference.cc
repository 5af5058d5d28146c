#include "kernels/equake/reference.h"

namespace polynao::kernels {

namespace {

constexpr double kStep = 0.0024;

// Element d of the block k, or of its transpose, times the displacements of node j.
double Product(const EquakeState& s, int64_t k, int64_t d, int64_t j, bool transposed) {
  double sum = 0;
  for (int64_t e = 0; e < 3; ++e) {
    sum += (transposed ? s.a(k, e, d) : s.a(k, d, e)) * s.disp(j, e);
  }
  return sum;
}

// From the product of matrix and displacements in disp_next to displacements and velocities.
void Advance(const EquakeState& s) {
  for (int64_t i = 0; i < s.disp.extent(0); ++i) {
    for (int64_t d = 0; d < 3; ++d) {
      const double mass = s.m(i, d), damping = kStep / 2 * s.c(i, d);
      const double force = s.m23(i, d) * s.phi(2) + s.c23(i, d) * s.phi(1) + s.v23(i, d) * s.phi(0);
      double& next = s.disp_next(i, d);
      next = -kStep * kStep * next + 2 * mass * s.disp(i, d) -
             (mass - damping) * s.disp_before(i, d) - kStep * kStep * force / 2;
      next /= mass + damping;
      s.vel(i, d) = (next - s.disp_before(i, d)) * 0.5 / kStep;
    }
  }
}

}  // namespace

void EquakeStepOfHalf(const EquakeState& s) {
  const int64_t nodes = s.disp.extent(0);
  for (int64_t i = 0; i < nodes; ++i) {
    for (int64_t d = 0; d < 3; ++d) s.disp_next(i, d) = 0;
  }
  for (int64_t i = 0; i < nodes; ++i) {
    for (int64_t k = s.first(i); k < s.first(i + 1); ++k) {
      const int64_t j = s.column(k);
      for (int64_t d = 0; d < 3; ++d) {
        s.disp_next(i, d) += Product(s, k, d, j, false);
        if (j != i) s.disp_next(j, d) += Product(s, k, d, i, true);
      }
    }
  }
  Advance(s);
}

void EquakeStepOfWhole(const EquakeState& s) {
  const int64_t nodes = s.disp.extent(0);
  for (int64_t i = 0; i < nodes; ++i) {
    for (int64_t d = 0; d < 3; ++d) {
      s.disp_next(i, d) = 0;
      for (int64_t k = s.first(i); k < s.first(i + 1); ++k) {
        s.disp_next(i, d) += Product(s, k, d, s.column(k), false);
      }
    }
  }
  Advance(s);
}

}  // namespace polynao::kernels
