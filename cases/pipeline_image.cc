#include "cases/pipeline_image.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/check.h"

namespace polynao::cases {
namespace {

using kernels::ImageKind;

// Red, green, blue or alpha of a pixel, in [0, 1].
double Colour(const Picture& picture, int64_t row, int64_t col, int colour) {
  const double white = picture.bits == 16 ? 65535 : 255;
  const bool has_alpha = picture.channels % 2 == 0;
  if (colour == 3) return has_alpha ? picture.Sample(row, col, picture.channels - 1) / white : 1;
  return picture.Sample(row, col, picture.channels < 3 ? 0 : colour) / white;
}

// What plane `plane` of the input has for the pixel, which is (x, y) there.
double Value(ImageKind kind, const Picture& picture, int64_t row, int64_t col, int plane, int64_t x,
             int64_t y) {
  const auto colour = [&](int c) { return Colour(picture, row, col, c); };
  switch (kind) {
    case ImageKind::kGray:
      if (picture.channels < 3) return colour(0);
      return 0.299 * colour(0) + 0.587 * colour(1) + 0.114 * colour(2);
    case ImageKind::kMosaic:
      if (x % 2 == y % 2) return colour(1);
      return colour(x % 2 == 0 ? 0 : 2);
    case ImageKind::kRgb:
    case ImageKind::kRgba:
      return colour(plane);
  }
  POLYNAO_UNREACHABLE("a kind of image");
}

}  // namespace

void StorePicture(const kernels::Pipeline& pipeline, const Picture& picture, ir::Tensor& image) {
  const size_t rank = image.shape.size();
  const int64_t planes = rank == 3 ? image.shape[0] : 1;
  const int64_t rows = image.shape[rank - 2], cols = image.shape[rank - 1];
  const bool is_float = ir::IsFloat(image.type);
  int64_t element = 0;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t x = 0; x < rows; ++x) {
      const int64_t row = std::clamp<int64_t>(x - pipeline.margin, 0, picture.rows - 1);
      for (int64_t y = 0; y < cols; ++y) {
        const int64_t col = std::clamp<int64_t>(y - pipeline.margin, 0, picture.cols - 1);
        const double value =
            Value(pipeline.image_kind, picture, row, col, static_cast<int>(plane), x, y);
        if (is_float) {
          image.SetValue(element++, value);
        } else {
          const double greatest = static_cast<double>(pipeline.image_levels - 1);
          image.SetInt(element++, static_cast<int64_t>(std::lround(value * greatest)));
        }
      }
    }
  }
}

Picture OutputPicture(const kernels::Pipeline& pipeline, const ir::Tensor& result, int bits) {
  const size_t rank = result.shape.size();
  Picture picture{.rows = result.shape[rank - 2],
                  .cols = result.shape[rank - 1],
                  .channels = rank == 3 ? static_cast<int>(result.shape[0]) : 1,
                  .bits = ir::IsFloat(result.type) ? bits : 8 * ir::ByteSize(result.type),
                  .samples = {}};
  const int64_t pixels = picture.rows * picture.cols, count = pixels * picture.channels;
  double white = 1;
  if (pipeline.is_measure) {
    white = std::numeric_limits<double>::min();
    for (int64_t i = 0; i < count; ++i) white = std::max(white, result.Value(i));
  }
  const double greatest = picture.bits == 16 ? 65535 : 255;
  picture.samples.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    double value = result.Value(i);
    if (ir::IsFloat(result.type)) {
      // A NaN fails the comparison.
      value = value > 0 ? std::lround(std::min(value / white, 1.0) * greatest) : 0;
    }
    const int64_t place = i % pixels * picture.channels + i / pixels;
    picture.samples[static_cast<size_t>(place)] = static_cast<uint16_t>(value);
  }
  return picture;
}

}  // namespace polynao::cases
