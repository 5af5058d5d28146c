// upsampling and image: resize2d, resize3d, crop_and_resize, affine_grid, grid_sample.
#ifndef KERNELS_TOPI_IMAGE_H_
#define KERNELS_TOPI_IMAGE_H_

#include <vector>

#include "kernels/te/operator.h"

namespace polynao::kernels {

std::vector<Operator> TopiImageOperators();

}  // namespace polynao::kernels

#endif  // KERNELS_TOPI_IMAGE_H_
