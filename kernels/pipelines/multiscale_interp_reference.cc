#include <utility>
#include <vector>

#include "kernels/pipelines/reference.h"
#include "kernels/pipelines/stage.h"

namespace polynao::kernels {
namespace {

// A channel of a level, with a border of one zero.
using Plane = Stage<float, 2>;

struct Size {
  int64_t rows, cols;
};

Plane Down(const Plane& from, Size size, Size half) {
  Plane along_x(half.rows + 2, size.cols + 2);
  for (int64_t x = 1; x <= half.rows; ++x) {
    for (int64_t y = 1; y <= size.cols; ++y) {
      along_x(x, y) = (from(2 * x - 2, y) + 2 * from(2 * x - 1, y) + from(2 * x, y)) / 4;
    }
  }
  Plane result(half.rows + 2, half.cols + 2);
  for (int64_t x = 1; x <= half.rows; ++x) {
    for (int64_t y = 1; y <= half.cols; ++y) {
      result(x, y) = (along_x(x, 2 * y - 2) + 2 * along_x(x, 2 * y - 1) + along_x(x, 2 * y)) / 4;
    }
  }
  return result;
}

Plane Up(const Plane& from, Size half, Size size) {
  Plane along_x(size.rows + 2, half.cols + 2);
  for (int64_t x = 1; x <= size.rows; ++x) {
    for (int64_t y = 1; y <= half.cols; ++y) {
      along_x(x, y) = (from((x + 1) / 2, y) + from((x + 2) / 2, y)) / 2;
    }
  }
  Plane result(size.rows + 2, size.cols + 2);
  for (int64_t x = 1; x <= size.rows; ++x) {
    for (int64_t y = 1; y <= size.cols; ++y) {
      result(x, y) = (along_x(x, (y + 1) / 2) + along_x(x, (y + 2) / 2)) / 2;
    }
  }
  return result;
}

}  // namespace

void MultiscaleInterpReference(View<float, 3> image, View<float, 3> result) {
  constexpr size_t kLevels = 10, kAlpha = 3;
  std::vector<Size> sizes = {{result.extent(1), result.extent(2)}};
  while (sizes.size() < kLevels) {
    sizes.push_back({sizes.back().rows / 2, sizes.back().cols / 2});
  }
  // The pyramid of one channel, weighted by alpha.
  const auto pyramid = [&](size_t channel) {
    std::vector<Plane> levels = {Plane(sizes[0].rows + 2, sizes[0].cols + 2)};
    for (int64_t x = 0; x < sizes[0].rows + 2; ++x) {
      for (int64_t y = 0; y < sizes[0].cols + 2; ++y) {
        levels[0](x, y) = image(channel, x, y) * image(kAlpha, x, y);
      }
    }
    for (size_t i = 1; i < kLevels; ++i) {
      levels.push_back(Down(levels[i - 1], sizes[i - 1], sizes[i]));
    }
    return levels;
  };
  const std::vector<Plane> alpha = pyramid(kAlpha);
  const auto filled = [&](const std::vector<Plane>& levels) {
    Plane above = levels[kLevels - 1];
    for (size_t i = kLevels - 1; i-- > 0;) {
      Plane level = Up(above, sizes[i + 1], sizes[i]);
      for (int64_t x = 1; x <= sizes[i].rows; ++x) {
        for (int64_t y = 1; y <= sizes[i].cols; ++y) {
          level(x, y) = levels[i](x, y) + (1 - alpha[i](x, y)) * level(x, y);
        }
      }
      above = std::move(level);
    }
    return above;
  };
  const Plane filled_alpha = filled(alpha);
  for (size_t channel = 0; channel < 3; ++channel) {
    const Plane filled_channel = filled(pyramid(channel));
    for (int64_t x = 0; x < sizes[0].rows; ++x) {
      for (int64_t y = 0; y < sizes[0].cols; ++y) {
        result(channel, x, y) = filled_channel(x + 1, y + 1) / filled_alpha(x + 1, y + 1);
      }
    }
  }
}

}  // namespace polynao::kernels
