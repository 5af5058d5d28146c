#include "kernels/reference/elementwise.h"

#include <cmath>
#include <limits>
#include <vector>

#include "compiler/ir/type.h"
#include "gtest/gtest.h"

namespace polynao::kernels {
namespace {

ir::Tensor Make(ir::Type type, const std::vector<double>& values) {
  ir::Tensor tensor(type, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) tensor.SetValue(i, values[i]);
  return tensor;
}

double Unary(UnaryOp op, ir::Type type, double x, double parameter = 0) {
  ir::Tensor y(type, {1});
  ReferenceUnary(op, Make(type, {x}), parameter, y);
  return y.Value(0);
}

double Scalar(BinaryOp op, ir::Type type, double x, double scalar) {
  ir::Tensor y(type, {1});
  ReferenceScalar(op, Make(type, {x}), scalar, y);
  return y.Value(0);
}

// Values that a reader can check without a program.
TEST(ReferenceTest, Unary) {
  constexpr ir::Type kF32 = ir::Type::kF32;
  EXPECT_EQ(Unary(UnaryOp::kRelu, kF32, -3), 0);
  EXPECT_EQ(Unary(UnaryOp::kRelu, kF32, 3), 3);
  EXPECT_EQ(Unary(UnaryOp::kLeakyRelu, kF32, 8, 0.25), 8);
  EXPECT_EQ(Unary(UnaryOp::kLeakyRelu, kF32, -8, 0.25), -2);
  EXPECT_EQ(Unary(UnaryOp::kSigmoid, kF32, 0), 0.5);
  EXPECT_EQ(Unary(UnaryOp::kSigmoid, kF32, 200), 1);
  EXPECT_EQ(Unary(UnaryOp::kTanh, kF32, 0), 0);
  EXPECT_EQ(Unary(UnaryOp::kTanh, kF32, -100), -1);
  EXPECT_EQ(Unary(UnaryOp::kExp, kF32, 0), 1);
  EXPECT_EQ(Unary(UnaryOp::kExp, kF32, 1000), std::numeric_limits<double>::infinity());
  EXPECT_EQ(Unary(UnaryOp::kAbs, kF32, -3), 3);
  EXPECT_EQ(Unary(UnaryOp::kRelu, ir::Type::kI8, -7), 0);
}

// e = 2.71828...; its neighbours in f16 are 2^-9 apart.
TEST(ReferenceTest, RoundsOnceToTheType) {
  EXPECT_EQ(Unary(UnaryOp::kExp, ir::Type::kF16, 1), 1392.0 / 512);
  EXPECT_EQ(Unary(UnaryOp::kExp, ir::Type::kF64, 1), std::exp(1.0));
  // Neither 0.1 nor three times its neighbour is a value of f16.
  EXPECT_EQ(Unary(UnaryOp::kLeakyRelu, ir::Type::kF16, -3, 0.1),
            ir::RoundFloat(ir::Type::kF16, -3 * ir::RoundFloat(ir::Type::kF16, 0.1)));
  EXPECT_NE(Unary(UnaryOp::kLeakyRelu, ir::Type::kF16, -3, 0.1), -3 * 0.1);
}

TEST(ReferenceTest, WithScalar) {
  EXPECT_EQ(Scalar(BinaryOp::kAdd, ir::Type::kI8, 127, 2), -127);  // integers wrap
  EXPECT_EQ(Scalar(BinaryOp::kSub, ir::Type::kF32, 1, 2), -1);
  EXPECT_EQ(Scalar(BinaryOp::kMul, ir::Type::kF32, 3, 0.5), 1.5);
  EXPECT_EQ(Scalar(BinaryOp::kMax, ir::Type::kI32, -3, -2), -2);
  EXPECT_EQ(Scalar(BinaryOp::kMin, ir::Type::kI32, -3, -2), -3);
  EXPECT_EQ(Scalar(BinaryOp::kAdd, ir::Type::kF16, 0, 0.1),
            ir::RoundFloat(ir::Type::kF16, 0.1));  // the scalar is rounded to the type
}

TEST(ReferenceTest, Quotients) {
  const ir::Tensor a = Make(ir::Type::kF32, {1, 1, -1, 0});
  const ir::Tensor b = Make(ir::Type::kF32, {4, 0, 0, 0});
  ir::Tensor c(ir::Type::kF32, {4});
  ReferenceBinary(BinaryOp::kDiv, a, b, c);
  EXPECT_EQ(c.Float(0), 0.25);
  EXPECT_EQ(c.Float(1), std::numeric_limits<double>::infinity());
  EXPECT_EQ(c.Float(2), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(c.Float(3)));
}

}  // namespace
}  // namespace polynao::kernels
