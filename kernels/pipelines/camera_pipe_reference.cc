#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "kernels/pipelines/reference.h"
#include "kernels/pipelines/stage.h"

namespace polynao::kernels {
namespace {

using Plane = Stage<int, 2>;

// What the mosaic has at a pixel.
enum class Site { kGreenInRed, kRed, kBlue, kGreenInBlue };
Site SiteOf(int64_t x, int64_t y) {
  if (x % 2 == 0) return y % 2 == 0 ? Site::kGreenInRed : Site::kRed;
  return y % 2 == 0 ? Site::kBlue : Site::kGreenInBlue;
}

// Floor division; sums of neighbours may be negative where the input is.
int Half(int sum) { return sum >> 1; }

}  // namespace

// Pixel by pixel on the whole mosaic: neighbours of one colour are two apart, so that no colour has an array of its
// own.
void CameraPipeReference(View<int16_t, 2> image, View<int32_t, 2> matrix, View<uint8_t, 1> curve,
                         View<uint8_t, 3> result) {
  const int64_t rows = image.extent(0), cols = image.extent(1);
  // Pixels of the output, in the input; the stages before reach some pixels further.
  const int64_t x0 = 12, x1 = rows - 36, y0 = 16, y1 = cols - 48;
  Plane mosaic(rows, cols);
  for (int64_t x = x0 - 4; x < x1 + 4; ++x) {
    for (int64_t y = y0 - 4; y < y1 + 4; ++y) {
      const std::initializer_list<int> around = {image(x - 2, y), image(x + 2, y), image(x, y - 2),
                                                 image(x, y + 2)};
      mosaic(x, y) = std::max(std::min(around), std::min<int>(std::max(around), image(x, y)));
    }
  }
  // Green at every pixel.
  Plane green(rows, cols);
  for (int64_t x = x0 - 3; x < x1 + 3; ++x) {
    for (int64_t y = y0 - 3; y < y1 + 3; ++y) {
      const Site site = SiteOf(x, y);
      if (site == Site::kGreenInRed || site == Site::kGreenInBlue) {
        green(x, y) = mosaic(x, y);
        continue;
      }
      const int left = mosaic(x, y - 1), right = mosaic(x, y + 1);
      const int above = mosaic(x - 1, y), below = mosaic(x + 1, y);
      const bool horizontal = std::abs(left - right) < std::abs(above - below);
      green(x, y) = Half(horizontal ? left + right : above + below);
    }
  }
  for (int64_t x = x0; x < x1; ++x) {
    for (int64_t y = y0; y < y1; ++y) {
      // A colour between two pixels that have it, corrected by the error that green has there.
      const auto between = [&](int64_t xa, int64_t ya, int64_t xb, int64_t yb) {
        return green(x, y) - Half(green(xa, ya) + green(xb, yb)) +
               Half(mosaic(xa, ya) + mosaic(xb, yb));
      };
      const auto difference = [&](int64_t xa, int64_t ya, int64_t xb, int64_t yb) {
        return std::abs(mosaic(xa, ya) - mosaic(xb, yb));
      };
      const auto in_row = [&] { return between(x, y - 1, x, y + 1); };
      const auto in_column = [&] { return between(x - 1, y, x + 1, y); };
      const auto on_diagonal = [&] {
        const bool rising =
            difference(x + 1, y - 1, x - 1, y + 1) < difference(x - 1, y - 1, x + 1, y + 1);
        return rising ? between(x + 1, y - 1, x - 1, y + 1) : between(x - 1, y - 1, x + 1, y + 1);
      };
      int red = 0, blue = 0;
      switch (SiteOf(x, y)) {
        case Site::kGreenInRed:
          red = in_row();
          blue = in_column();
          break;
        case Site::kRed:
          red = mosaic(x, y);
          blue = on_diagonal();
          break;
        case Site::kBlue:
          red = on_diagonal();
          blue = mosaic(x, y);
          break;
        case Site::kGreenInBlue:
          red = in_column();
          blue = in_row();
          break;
      }
      for (int c = 0; c < 3; ++c) {
        const int corrected =
            matrix(c, 3) + matrix(c, 0) * red + matrix(c, 1) * green(x, y) + matrix(c, 2) * blue;
        result(c, x - x0, y - y0) = curve((corrected >> 8) + 32768);
      }
    }
  }
}

}  // namespace polynao::kernels
