// The constants that pipelines take as inputs.
#ifndef KERNELS_PIPELINES_TABLES_H_
#define KERNELS_PIPELINES_TABLES_H_

#include <cstdint>

#include "kernels/polybench/view.h"

namespace polynao::kernels {

// The camera pipeline's: the 3 x 4 matrix from the sensor's colours to the screen's, in 1/256, for light of 3700 K; and
// its tone curve (gamma 2.0, contrast 50), whose element v + 32768 is the result for v. The colours are 10 bits.
void FillCameraTables(View<int32_t, 2> matrix, View<uint8_t, 1> curve);

// The local Laplacian's: element r + 1792 is what is added to a brightness that is r / 1792 from the one that it is
// remapped around (alpha 1/7).
void FillRemap(View<float, 1> remap);

}  // namespace polynao::kernels

#endif  // KERNELS_PIPELINES_TABLES_H_
