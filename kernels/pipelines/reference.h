// The pipelines by plain loops, stage after stage, in the coordinates and in the order of operations of
// docs/pipelines.md. They share no code with the .nir texts. Sizes are those of the nominal image (pipelines.h).
#ifndef KERNELS_PIPELINES_REFERENCE_H_
#define KERNELS_PIPELINES_REFERENCE_H_

#include <cstdint>

#include "kernels/polybench/view.h"

namespace polynao::kernels {

void BilateralGridReference(View<float, 2> image, View<float, 2> result);
void CameraPipeReference(View<int16_t, 2> image, View<int32_t, 2> matrix, View<uint8_t, 1> curve,
                         View<uint8_t, 3> result);
void HarrisReference(View<float, 2> image, View<float, 2> result);
void LocalLaplacianReference(View<uint16_t, 3> image, View<float, 1> remap,
                             View<uint16_t, 3> result);
void MultiscaleInterpReference(View<float, 3> image, View<float, 3> result);
void UnsharpReference(View<float, 3> image, View<float, 3> result);

}  // namespace polynao::kernels

#endif  // KERNELS_PIPELINES_REFERENCE_H_
