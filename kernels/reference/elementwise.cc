#include "kernels/reference/elementwise.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace polynao::kernels {
namespace {

template <typename T>
T Compute(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return a / b;
    case BinaryOp::kMax:
      return a < b ? b : a;
    case BinaryOp::kMin:
      return b < a ? b : a;
  }
  POLYNAO_UNREACHABLE(static_cast<int>(op));
}

// What a tensor of `type` holds after `value` was stored in it.
double Rounded(ir::Type type, double value) {
  ir::Tensor one(type, {});
  one.SetValue(0, value);
  return one.Value(0);
}

double Compute(UnaryOp op, ir::Type type, double x, double parameter) {
  switch (op) {
    case UnaryOp::kRelu:
      return x < 0 ? 0 : x;
    case UnaryOp::kLeakyRelu: {
      const double scaled = Rounded(type, x * parameter);
      return x < scaled ? scaled : x;
    }
    case UnaryOp::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case UnaryOp::kTanh:
      return std::tanh(x);
    case UnaryOp::kExp:
      return std::exp(x);
    case UnaryOp::kAbs:
      return std::abs(x);
  }
  POLYNAO_UNREACHABLE(static_cast<int>(op));
}

}  // namespace

void ReferenceBinary(BinaryOp op, const ir::Tensor& a, const ir::Tensor& b, ir::Tensor& c) {
  POLYNAO_CHECK(a.type == c.type && b.type == c.type && a.shape == c.shape && b.shape == c.shape);
  POLYNAO_CHECK(op != BinaryOp::kDiv || ir::IsFloat(c.type));
  const int64_t count = c.element_count();
  for (int64_t i = 0; i < count; ++i) {
    if (ir::IsFloat(c.type)) {
      // f64 holds sums, products and quotients of two narrower values closely enough that rounding
      // the result rounds once.
      c.SetValue(i, Compute<double>(op, a.Float(i), b.Float(i)));
    } else {
      // Unsigned, so that wrapping is defined; SetInt keeps the low bits.
      const bool compares = op == BinaryOp::kMax || op == BinaryOp::kMin;
      c.SetInt(i, compares
                      ? Compute<int64_t>(op, a.Int(i), b.Int(i))
                      : static_cast<int64_t>(Compute<uint64_t>(op, static_cast<uint64_t>(a.Int(i)),
                                                               static_cast<uint64_t>(b.Int(i)))));
    }
  }
}

void ReferenceScalar(BinaryOp op, const ir::Tensor& a, double scalar, ir::Tensor& c) {
  ir::Tensor b(a.type, a.shape);
  const int64_t count = b.element_count();
  for (int64_t i = 0; i < count; ++i) b.SetValue(i, scalar);
  ReferenceBinary(op, a, b, c);
}

void ReferenceUnary(UnaryOp op, const ir::Tensor& x, double parameter, ir::Tensor& y) {
  POLYNAO_CHECK(x.type == y.type && x.shape == y.shape);
  POLYNAO_CHECK(ir::IsFloat(x.type) || op == UnaryOp::kRelu);
  const double rounded = Rounded(x.type, parameter);
  const int64_t count = y.element_count();
  for (int64_t i = 0; i < count; ++i) {
    if (ir::IsFloat(x.type)) {
      y.SetValue(i, Compute(op, x.type, x.Float(i), rounded));
    } else {
      // Not by way of f64, which has no room for all 64-bit integers.
      y.SetInt(i, x.Int(i) < 0 ? 0 : x.Int(i));
    }
  }
}

void ReferenceQuantized(UnaryOp op, const ir::Tensor& x, double scale, double out_scale,
                        double zero, ir::Tensor& y) {
  POLYNAO_CHECK(x.type == ir::Type::kI8 && y.type == x.type && x.shape == y.shape);
  const int64_t count = y.element_count();
  for (int64_t i = 0; i < count; ++i) {
    const float scaled = static_cast<float>(x.Int(i)) * static_cast<float>(scale);
    const auto value = static_cast<float>(Compute(op, ir::Type::kF32, scaled, 0));
    const float result = value * static_cast<float>(out_scale) + static_cast<float>(zero);
    y.SetInt(i, static_cast<int64_t>(std::clamp(std::nearbyint(result), -128.0F, 127.0F)));
  }
}

}  // namespace polynao::kernels
