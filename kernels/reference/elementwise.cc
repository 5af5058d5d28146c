#include "kernels/reference/elementwise.h"

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
    case BinaryOp::kMax:
      return a < b ? b : a;
    case BinaryOp::kMin:
      return b < a ? b : a;
  }
  POLYNAO_UNREACHABLE(static_cast<int>(op));
}

}  // namespace

void ReferenceBinary(BinaryOp op, const ir::Tensor& a, const ir::Tensor& b, ir::Tensor& c) {
  POLYNAO_CHECK(a.type == c.type && b.type == c.type && a.shape == c.shape && b.shape == c.shape);
  const int64_t count = c.element_count();
  for (int64_t i = 0; i < count; ++i) {
    if (ir::IsFloat(c.type)) {
      // f64 holds sums and products of two narrower values closely enough that rounding the result
      // rounds once.
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

}  // namespace polynao::kernels
