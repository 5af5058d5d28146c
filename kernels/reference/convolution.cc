#include "kernels/reference/convolution.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace polynao::kernels {
namespace {

// The products of one window row: `count` neighbouring elements, all input channels of a group.
template <typename T, typename Sum>
Sum Dot(const T* a, const T* b, int64_t count, Sum sum, [[maybe_unused]] bool is_fused) {
  if constexpr (std::is_floating_point_v<Sum>) {
    for (int64_t i = 0; is_fused && i < count; ++i)
      sum = std::fma(static_cast<Sum>(a[i]), static_cast<Sum>(b[i]), sum);
    if (is_fused) return sum;
  }
  for (int64_t i = 0; i < count; ++i) sum += static_cast<Sum>(a[i]) * static_cast<Sum>(b[i]);
  return sum;
}

template <typename T>
std::vector<T> Elements(const ir::Tensor& tensor) {
  std::vector<T> elements(tensor.element_count());
  for (size_t i = 0; i < elements.size(); ++i) {
    if constexpr (std::is_integral_v<T>) {
      elements[i] = static_cast<T>(tensor.Int(i));
    } else {
      elements[i] = static_cast<T>(tensor.Float(i));
    }
  }
  return elements;
}

// A value as `type` holds it: integers truncate and saturate.
double Converted(ir::Type type, double value) {
  if (ir::IsFloat(type)) return value;  // SetValue rounds
  const int bits = 8 * ir::ByteSize(type);
  const double high = std::ldexp(1.0, bits - 1) - 1;
  return std::isnan(value) ? 0 : std::clamp(std::trunc(value), -high - 1, high);
}

// T: of input and filter, as the processor holds it; Sum: of the sums. Unsigned sums wrap.
template <typename T, typename Sum>
void Convolve(const ConvLayer& layer, const ir::Tensor& input, const ir::Tensor& filter,
              const ir::Tensor* bias, ir::Tensor& out) {
  const std::vector<T> x = Elements<T>(input);
  const std::vector<T> f = Elements<T>(filter);
  const int64_t group_ci = layer.group_ci();
  const int64_t group_co = layer.co / layer.groups;
  const std::vector<T> zeros(group_ci);
  int64_t at = 0;
  for (int64_t y = 0; y < layer.ho(); ++y) {
    for (int64_t column = 0; column < layer.wo(); ++column) {
      for (int64_t c = 0; c < layer.co; ++c, ++at) {
        Sum sum = 0;
        for (int64_t r = 0; r < layer.kh; ++r) {
          const int64_t iy = y * layer.stride + r * layer.dilation - layer.pad_h;
          for (int64_t s = 0; s < layer.kw; ++s) {
            const int64_t ix = column * layer.stride + s * layer.dilation - layer.pad_w;
            const bool outside = iy < 0 || iy >= layer.h || ix < 0 || ix >= layer.w;
            // A zero outside times an infinity or a NaN is a NaN.
            sum = Dot<T, Sum>(
                outside ? zeros.data()
                        : &x[(iy * layer.w + ix) * layer.ci + c / group_co * group_ci],
                &f[((c * layer.kh + r) * layer.kw + s) * group_ci], group_ci, sum, layer.is_fused);
          }
        }
        if constexpr (std::is_integral_v<T>) {
          if (bias != nullptr) sum += static_cast<Sum>(bias->Int(c));
          const int32_t value = static_cast<int32_t>(sum);
          if (out.type == ir::Type::kI32) {
            out.SetInt(at, layer.relu ? std::max(value, 0) : value);
            continue;
          }
          const float scaled = static_cast<float>(value) * static_cast<float>(layer.scale);
          out.SetValue(at, Converted(out.type, layer.relu && scaled < 0 ? 0 : scaled));
        } else {
          if (bias != nullptr) sum += static_cast<Sum>(bias->Float(c));
          const float scaled = sum * static_cast<float>(layer.scale);
          out.SetValue(at, Converted(out.type, layer.relu && scaled < 0 ? 0 : scaled));
        }
      }
    }
  }
}

}  // namespace

void ReferenceConv2d(const ConvLayer& layer, const ir::Tensor& input, const ir::Tensor& filter,
                     const ir::Tensor* bias, ir::Tensor& out) {
  switch (input.type) {
    case ir::Type::kI8:
      return Convolve<int8_t, uint32_t>(layer, input, filter, bias, out);
    case ir::Type::kI16:
      return Convolve<int16_t, uint32_t>(layer, input, filter, bias, out);
    case ir::Type::kF16:
    case ir::Type::kBF16:
    case ir::Type::kF32:
      return Convolve<float, float>(layer, input, filter, bias, out);
    default:
      POLYNAO_UNREACHABLE(static_cast<int>(input.type));
  }
}

}  // namespace polynao::kernels
