// The time step by plain loops, one node after the other.
#ifndef KERNELS_EQUAKE_REFERENCE_H_
#define KERNELS_EQUAKE_REFERENCE_H_

#include <cstdint>

#include "kernels/polybench/view.h"

namespace polynao::kernels {

using Indices = View<int32_t, 1>;

struct EquakeState {
  Indices first, column;  // EquakeMesh
  Cube a;                 // (blocks, 3, 3)
  Matrix disp, disp_before, m, c, m23, c23, v23;
  Vector phi;
  Matrix disp_next, vel;  // stored
};

void EquakeStepOfHalf(const EquakeState& state);
void EquakeStepOfWhole(const EquakeState& state);

}  // namespace polynao::kernels

#endif  // KERNELS_EQUAKE_REFERENCE_H_
