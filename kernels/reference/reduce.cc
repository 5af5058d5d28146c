#include "kernels/reference/reduce.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "base/check.h"

namespace polynao::kernels {
namespace {

// One result, from values in their order. T: what it is made in; unsigned, so that sums may wrap.
template <typename T>
class Accumulator {
 public:
  explicit Accumulator(ReduceOp op)
      : op_(op), best_(op == ReduceOp::kMax ? -kGreatest : kGreatest) {
    if (std::is_integral_v<T> && op == ReduceOp::kMax) best_ = std::numeric_limits<T>::lowest();
  }

  void Take(T value) {
    ++count_;
    if (op_ == ReduceOp::kSum || op_ == ReduceOp::kMean) {
      sum_ += value;
    } else if (op_ == ReduceOp::kMax ? best_ < value : value < best_) {
      best_ = value;
    }
  }
  T Result() const {
    if (op_ == ReduceOp::kSum) return sum_;
    if constexpr (std::is_integral_v<T>) {
      if (op_ == ReduceOp::kMean) return static_cast<T>(RoundedMean());
    }
    if (op_ == ReduceOp::kMean) return sum_ * static_cast<T>(1.0 / static_cast<double>(count_));
    return best_;
  }

 private:
  // Of bytes, which need no saturation. Sums are of 32 bits.
  int64_t RoundedMean() const {
    const float factor = static_cast<float>(1.0 / static_cast<double>(count_));
    const float mean = static_cast<float>(static_cast<int32_t>(sum_)) * factor;
    return static_cast<int64_t>(std::nearbyint(mean));
  }

  static constexpr T kGreatest = std::numeric_limits<T>::has_infinity
                                     ? std::numeric_limits<T>::infinity()
                                     : std::numeric_limits<T>::max();

  ReduceOp op_;
  int64_t count_ = 0;
  T sum_ = 0;
  T best_;
};

// Calls reduce(accumulator, element): `element` reads one element of x, the accumulator is made in
// what sums of the type are made in.
template <typename F>
void WithType(ReduceOp op, const ir::Tensor& x, const F& reduce) {
  const auto as_float = [&x](int64_t i) { return static_cast<float>(x.Float(i)); };
  const auto as_double = [&x](int64_t i) { return x.Float(i); };
  if (x.type == ir::Type::kF64) return reduce(Accumulator<double>(op), as_double);
  if (ir::IsFloat(x.type)) return reduce(Accumulator<float>(op), as_float);
  POLYNAO_CHECK(op != ReduceOp::kMean || x.type == ir::Type::kI8);
  if (op == ReduceOp::kSum || op == ReduceOp::kMean) {
    return reduce(Accumulator<uint64_t>(op),
                  [&x](int64_t i) { return static_cast<uint64_t>(x.Int(i)); });
  }
  reduce(Accumulator<int64_t>(op), [&x](int64_t i) { return x.Int(i); });
}

template <typename T>
void Set(ir::Tensor& y, int64_t i, T value) {
  if constexpr (std::is_integral_v<T>) {
    y.SetInt(i, static_cast<int64_t>(value));
  } else {
    y.SetValue(i, value);
  }
}

}  // namespace

void ReferenceReduce(ReduceOp op, int64_t outer, int64_t count, int64_t inner, const ir::Tensor& x,
                     ir::Tensor& y) {
  POLYNAO_CHECK(x.type == y.type && count >= 1);
  POLYNAO_CHECK(x.element_count() == outer * count * inner && y.element_count() == outer * inner);
  WithType(op, x, [&](const auto& empty, const auto& element) {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        auto result = empty;
        for (int64_t r = 0; r < count; ++r) result.Take(element((o * count + r) * inner + i));
        Set(y, o * inner + i, result.Result());
      }
    }
  });
}

void ReferencePool2d(ReduceOp op, const PoolLayer& layer, const ir::Tensor& x, ir::Tensor& y) {
  POLYNAO_CHECK(op == ReduceOp::kMax || op == ReduceOp::kMean);
  POLYNAO_CHECK(x.type == y.type);
  WithType(op, x, [&](const auto& empty, const auto& element) {
    int64_t at = 0;
    for (int64_t yy = 0; yy < layer.ho(); ++yy) {
      for (int64_t xx = 0; xx < layer.wo(); ++xx) {
        for (int64_t c = 0; c < layer.c; ++c) {
          auto result = empty;
          for (int64_t r = 0; r < layer.window; ++r) {
            for (int64_t s = 0; s < layer.window; ++s) {
              const int64_t row = yy * layer.stride + r - layer.pad;
              const int64_t column = xx * layer.stride + s - layer.pad;
              if (row >= 0 && row < layer.h && column >= 0 && column < layer.w) {
                result.Take(element((row * layer.w + column) * layer.c + c));
              } else if (op == ReduceOp::kMean) {
                result.Take(0);
              }
            }
          }
          Set(y, at++, result.Result());
        }
      }
    }
  });
}

}  // namespace polynao::kernels
