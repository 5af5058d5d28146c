#include "kernels/pipelines/tables.h"

#include <algorithm>
#include <cmath>

namespace polynao::kernels {

void FillCameraTables(View<int32_t, 2> matrix, View<uint8_t, 1> curve) {
  // Measured for two lights; in between, entries are linear in 1 / temperature.
  constexpr float kWarm[3][4] = {{1.6697f, -0.2693f, -0.4004f, -42.4346f},
                                 {-0.3576f, 1.0615f, 1.5949f, -37.1158f},
                                 {-0.2175f, -1.8751f, 6.9640f, -26.6970f}};
  constexpr float kCold[3][4] = {{2.2997f, -0.4478f, 0.1706f, -39.0923f},
                                 {-0.3826f, 1.5906f, -0.2080f, -25.4311f},
                                 {-0.0888f, -0.7344f, 2.2832f, -20.0826f}};
  constexpr float kWarmKelvin = 3200, kColdKelvin = 7000, kKelvin = 3700;
  const float cold = (1 / kKelvin - 1 / kWarmKelvin) / (1 / kColdKelvin - 1 / kWarmKelvin);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j) {
      const float entry = kWarm[i][j] * (1 - cold) + kCold[i][j] * cold;
      matrix(i, j) = static_cast<int32_t>(entry * 256);
    }
  }
  constexpr double kGamma = 2, kContrast = 50, kWhite = 1024;
  const double b = 2 - std::pow(2.0, kContrast / 100), a = 2 - 2 * b;
  for (int v = -32768; v < 32768; ++v) {
    const double g = std::pow(std::clamp(v / kWhite, 0.0, 1.0), 1 / kGamma);
    const double z = g > 0.5 ? 1 - (a * (1 - g) * (1 - g) + b * (1 - g)) : a * g * g + b * g;
    curve(v + 32768) = static_cast<uint8_t>(std::clamp(z * 256, 0.0, 255.0));
  }
}

void FillRemap(View<float, 1> remap) {
  constexpr double kAlpha = 1.0 / 7;
  for (int r = -1792; r < 1792; ++r) {
    const double x = r / 256.0;
    remap(r + 1792) = static_cast<float>(kAlpha * x * std::exp(-x * x / 2));
  }
}

}  // namespace polynao::kernels
