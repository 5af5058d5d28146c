#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/pipelines/reference.h"
#include "kernels/pipelines/stage.h"

namespace polynao::kernels {
namespace {

constexpr size_t kLevels = 8;
constexpr int kBrightnesses = 8;

struct Size {
  int64_t rows, cols;
};

// A level of a pyramid, with a border of two zeros.
using Plane = Stage<float, 2>;
Plane MakePlane(Size size) { return Plane(size.rows + 4, size.cols + 4); }

Plane Down(const Plane& from, Size size, Size half) {
  const auto taps = [](float a, float b, float c, float d) { return (a + b * 3 + c * 3 + d) / 8; };
  Plane along_x = MakePlane({half.rows, size.cols});
  for (int64_t x = 2; x < half.rows + 2; ++x) {
    for (int64_t y = 2; y < size.cols + 2; ++y) {
      const int64_t at = 2 * (x - 1);
      along_x(x, y) = taps(from(at - 1, y), from(at, y), from(at + 1, y), from(at + 2, y));
    }
  }
  Plane result = MakePlane(half);
  for (int64_t x = 2; x < half.rows + 2; ++x) {
    for (int64_t y = 2; y < half.cols + 2; ++y) {
      const int64_t at = 2 * (y - 1);
      result(x, y) =
          taps(along_x(x, at - 1), along_x(x, at), along_x(x, at + 1), along_x(x, at + 2));
    }
  }
  return result;
}

Plane Up(const Plane& from, Size half, Size size) {
  // The far neighbour, and the near one.
  const auto mix = [](float far, float near) { return far / 4 + 0.75f * near; };
  const auto far_of = [](int64_t i) { return i % 2 == 0 ? i / 2 : i / 2 + 2; };
  Plane along_x = MakePlane({size.rows, half.cols});
  for (int64_t x = 2; x < size.rows + 2; ++x) {
    for (int64_t y = 2; y < half.cols + 2; ++y) {
      along_x(x, y) = mix(from(far_of(x), y), from(x / 2 + 1, y));
    }
  }
  Plane result = MakePlane(size);
  for (int64_t x = 2; x < size.rows + 2; ++x) {
    for (int64_t y = 2; y < size.cols + 2; ++y) {
      result(x, y) = mix(along_x(x, far_of(y)), along_x(x, y / 2 + 1));
    }
  }
  return result;
}

std::vector<Plane> Gaussian(Plane plane, const std::vector<Size>& sizes) {
  std::vector<Plane> levels = {std::move(plane)};
  for (size_t l = 1; l < kLevels; ++l) {
    levels.push_back(Down(levels[l - 1], sizes[l - 1], sizes[l]));
  }
  return levels;
}

// A function of all elements, border and all.
template <typename Function>
void Store(Plane& plane, Size size, const Function& function) {
  for (int64_t x = 0; x < size.rows + 4; ++x) {
    for (int64_t y = 0; y < size.cols + 4; ++y) plane(x, y) = function(x, y);
  }
}

}  // namespace

void LocalLaplacianReference(View<uint16_t, 3> image, View<float, 1> remap,
                             View<uint16_t, 3> result) {
  std::vector<Size> sizes = {{result.extent(1), result.extent(2)}};
  while (sizes.size() < kLevels) {
    sizes.push_back({sizes.back().rows / 2, sizes.back().cols / 2});
  }
  constexpr float kScale = 1.0f / 65535;
  Plane first = MakePlane(sizes[0]);
  Store(first, sizes[0], [&](int64_t x, int64_t y) {
    return (0.299f * image(0, x, y) + 0.587f * image(1, x, y) + 0.114f * image(2, x, y)) * kScale;
  });
  const std::vector<Plane> gray = Gaussian(std::move(first), sizes);

  // Laplacian pyramids, brightness by brightness; each pixel takes its share of the one below and the one above its
  // own.
  std::vector<Plane> output;
  for (size_t l = 0; l < kLevels; ++l) output.push_back(MakePlane(sizes[l]));
  for (int k = 0; k < kBrightnesses; ++k) {
    Plane remapped = MakePlane(sizes[0]);
    const float brightness = static_cast<float>(k) * (1.0f / (kBrightnesses - 1));
    Store(remapped, sizes[0], [&](int64_t x, int64_t y) {
      const int index = std::clamp(static_cast<int>(gray[0](x, y) * 1792), 0, 1791);
      return gray[0](x, y) - brightness + brightness + remap(index - 256 * k + 1792);
    });
    const std::vector<Plane> gauss = Gaussian(std::move(remapped), sizes);
    for (size_t l = 0; l < kLevels; ++l) {
      Plane up = MakePlane(sizes[l]);
      if (l + 1 < kLevels) up = Up(gauss[l + 1], sizes[l + 1], sizes[l]);
      Store(output[l], sizes[l], [&](int64_t x, int64_t y) {
        const float level = gray[l](x, y) * (kBrightnesses - 1);
        const int below = std::clamp(static_cast<int>(level), 0, kBrightnesses - 2);
        const float weight = level - static_cast<float>(below);
        const float laplacian = gauss[l](x, y) - up(x, y);
        if (k == below) return laplacian * (1 - weight);
        if (k == below + 1) return output[l](x, y) + laplacian * weight;
        return output[l](x, y);
      });
    }
  }
  for (size_t l = kLevels - 1; l-- > 0;) {
    const Plane up = Up(output[l + 1], sizes[l + 1], sizes[l]);
    Store(output[l], sizes[l], [&](int64_t x, int64_t y) { return up(x, y) + output[l](x, y); });
  }
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t x = 0; x < sizes[0].rows; ++x) {
      for (int64_t y = 0; y < sizes[0].cols; ++y) {
        const float colour = image(c, x + 2, y + 2) * kScale + 0.01f;
        const float value = output[0](x + 2, y + 2) * colour / (gray[0](x + 2, y + 2) + 0.01f);
        result(c, x, y) = static_cast<uint16_t>(std::clamp(value, 0.0f, 1.0f) * 65535);
      }
    }
  }
}

}  // namespace polynao::kernels
