#include "kernels/pipelines/reference.h"
#include "kernels/pipelines/stage.h"

namespace polynao::kernels {
namespace {

using Grid = Stage<float, 3>;

struct Size {
  int64_t x, y, z;
};

// Five taps along one dimension; zero in the two cells at each end.
Grid Blur(const Grid& grid, Size size, int64_t dx, int64_t dy, int64_t dz) {
  constexpr float kTaps[] = {1, 4, 6, 4, 1};
  Grid result(size.x, size.y, size.z);
  for (int64_t x = 2; x < size.x - 2; ++x) {
    for (int64_t y = 2; y < size.y - 2; ++y) {
      for (int64_t z = 2; z < size.z - 2; ++z) {
        float sum = 0;
        for (int64_t i = -2; i <= 2; ++i) {
          sum += kTaps[i + 2] * grid(x + i * dx, y + i * dy, z + i * dz);
        }
        result(x, y, z) = sum;
      }
    }
  }
  return result;
}

float Lerp(float a, float b, float weight) { return a + weight * (b - a); }

}  // namespace

void BilateralGridReference(View<float, 2> image, View<float, 2> result) {
  constexpr int64_t kCell = 8, kBins = 10, kMargin = 24;
  const int64_t rows = image.extent(0), cols = image.extent(1);
  const Size size = {rows / kCell + 4, cols / kCell + 4, kBins + 4};
  const auto bin = [&](int64_t x, int64_t y) { return static_cast<int64_t>(image(x, y) * 10); };
  Grid sum(size.x, size.y, size.z), count(size.x, size.y, size.z);
  for (int64_t x = 0; x < rows; ++x) {
    for (int64_t y = 0; y < cols; ++y) {
      sum(2 + x / kCell, 2 + y / kCell, 2 + bin(x, y)) += image(x, y);
      count(2 + x / kCell, 2 + y / kCell, 2 + bin(x, y)) += 1;
    }
  }
  for (Grid* grid : {&sum, &count}) {
    *grid = Blur(*grid, size, 0, 0, 1);
    *grid = Blur(*grid, size, 1, 0, 0);
    *grid = Blur(*grid, size, 0, 1, 0);
  }
  for (int64_t i = 0; i < result.extent(0); ++i) {
    for (int64_t j = 0; j < result.extent(1); ++j) {
      const int64_t x = i + kMargin, y = j + kMargin, z = bin(x, y);
      const float xf = static_cast<float>(x % kCell) / kCell;
      const float yf = static_cast<float>(y % kCell) / kCell;
      const float zf = image(x, y) * 10 - static_cast<float>(z);
      const auto interpolated = [&](const Grid& grid) {
        const auto in_plane = [&](int64_t level) {
          const auto in_column = [&](int64_t column) {
            return Lerp(grid(2 + x / kCell, column, level), grid(3 + x / kCell, column, level), xf);
          };
          return Lerp(in_column(2 + y / kCell), in_column(3 + y / kCell), yf);
        };
        return Lerp(in_plane(2 + z), in_plane(3 + z), zf);
      };
      const float weight = interpolated(count);
      result(i, j) = weight > 0 ? interpolated(sum) / weight : image(x, y);
    }
  }
}

}  // namespace polynao::kernels
