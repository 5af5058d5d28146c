#include <cmath>

#include "kernels/pipelines/reference.h"
#include "kernels/pipelines/stage.h"

namespace polynao::kernels {

void HarrisReference(View<float, 2> image, View<float, 2> result) {
  const int64_t rows = image.extent(0), cols = image.extent(1);
  Stage<float, 2> ix(rows, cols), iy(rows, cols);
  for (int64_t x = 1; x < rows - 1; ++x) {
    for (int64_t y = 1; y < cols - 1; ++y) {
      // The difference along one dimension, with weights 1 2 1 along the other.
      const auto sobel = [&](int64_t dx, int64_t dy) {
        const auto difference = [&](int64_t i) {
          return image(x + dx + i * dy, y + dy + i * dx) - image(x - dx + i * dy, y - dy + i * dx);
        };
        return (difference(-1) + difference(0) * 2 + difference(1)) * (1.0f / 12);
      };
      ix(x, y) = sobel(1, 0);
      iy(x, y) = sobel(0, 1);
    }
  }
  for (int64_t x = 2; x < rows - 2; ++x) {
    for (int64_t y = 2; y < cols - 2; ++y) {
      float sxx = 0, syy = 0, sxy = 0;
      for (int64_t i = x - 1; i <= x + 1; ++i) {
        for (int64_t j = y - 1; j <= y + 1; ++j) {
          sxx += ix(i, j) * ix(i, j);
          syy += iy(i, j) * iy(i, j);
          sxy += ix(i, j) * iy(i, j);
        }
      }
      const float det = sxx * syy - sxy * sxy;
      const float trace = sxx + syy;
      result(x - 2, y - 2) = det - 0.04f * trace * trace;
    }
  }
}

void UnsharpReference(View<float, 3> image, View<float, 3> result) {
  constexpr float kThreshold = 0.001f, kWeight = 3;
  constexpr float kTaps[] = {1, 4, 6, 4, 1};
  const int64_t rows = result.extent(1), cols = result.extent(2);
  for (int64_t c = 0; c < 3; ++c) {
    Stage<float, 2> blurx(rows, cols + 4);
    for (int64_t x = 0; x < rows; ++x) {
      for (int64_t y = 0; y < cols + 4; ++y) {
        float sum = 0;
        for (int64_t tap = 0; tap < 5; ++tap) sum += image(c, x + tap, y) * kTaps[tap];
        blurx(x, y) = sum / 16;
      }
    }
    for (int64_t x = 0; x < rows; ++x) {
      for (int64_t y = 0; y < cols; ++y) {
        float sum = 0;
        for (int64_t tap = 0; tap < 5; ++tap) sum += blurx(x, y + tap) * kTaps[tap];
        const float blury = sum / 16;
        const float pixel = image(c, x + 2, y + 2);
        const float sharpen = pixel * (1 + kWeight) - blury * kWeight;
        result(c, x, y) = std::abs(pixel - blury) < kThreshold ? pixel : sharpen;
      }
    }
  }
}

}  // namespace polynao::kernels
