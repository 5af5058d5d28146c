// The .nir texts of the pipelines, for sizes that they take (pipelines.h).
#ifndef KERNELS_PIPELINES_TEXTS_H_
#define KERNELS_PIPELINES_TEXTS_H_

#include <cstdint>
#include <string>

namespace polynao::kernels {

std::string BilateralGridText(int64_t rows, int64_t cols);
std::string CameraPipeText(int64_t rows, int64_t cols);
std::string HarrisText(int64_t rows, int64_t cols);
std::string LocalLaplacianText(int64_t rows, int64_t cols);
std::string MultiscaleInterpText(int64_t rows, int64_t cols);
std::string UnsharpText(int64_t rows, int64_t cols);

}  // namespace polynao::kernels

#endif  // KERNELS_PIPELINES_TEXTS_H_
