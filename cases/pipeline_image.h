// Pictures as the input of image pipelines, and their output as pictures.
#ifndef CASES_PIPELINE_IMAGE_H_
#define CASES_PIPELINE_IMAGE_H_

#include "cases/png.h"
#include "compiler/ir/tensor.h"
#include "kernels/pipelines/pipelines.h"

namespace polynao::cases {

// Stores the picture as the pipeline's input. Pixel (margin, margin) is the picture's first one; what the picture does
// not reach repeats its edge, what is beyond the input is cut off. Colours become the brightness .299 R + .587 G + .114
// B where the pipeline wants gray, and the one that the mosaic has at the pixel where it wants a mosaic; gray is taken
// as it is. Pixels without alpha are opaque. The greatest sample becomes 1.0, or the greatest value of an integer
// image.
void StorePicture(const kernels::Pipeline& pipeline, const Picture& picture, ir::Tensor& image);

// The pipeline's output; floats with so many bits, 0.0 black and 1.0 white. A measure's greatest value is white, and
// what is negative black.
Picture OutputPicture(const kernels::Pipeline& pipeline, const ir::Tensor& result, int bits);

}  // namespace polynao::cases

#endif  // CASES_PIPELINE_IMAGE_H_
