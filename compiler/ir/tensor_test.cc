#include "compiler/ir/tensor.h"

#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

int64_t Stored(Type type, double value) {
  Tensor tensor(type, {1});
  tensor.SetValue(0, value);
  return tensor.Int(0);
}

TEST(TensorTest, IntegersKeepTheLowBits) {
  EXPECT_EQ(Stored(Type::kI32, -2.9), -2);
  EXPECT_EQ(Stored(Type::kU8, 300), 44);
  EXPECT_EQ(Stored(Type::kI8, -129), 127);
  EXPECT_EQ(Stored(Type::kI32, 0x1p31), INT32_MIN);
  EXPECT_EQ(Stored(Type::kI1, 3), 1);
}

TEST(TensorTest, U64HoldsNumbersThatI64DoesNot) {
  Tensor tensor(Type::kU64, {1});
  for (const double value : {0x1p63, 0x1.8p63, 0x1.fffffffffffffp63}) {
    tensor.SetValue(0, value);
    EXPECT_EQ(tensor.Value(0), value);
  }
}

TEST(TensorTest, NumbersOfMoreThan64BitsAreDefined) {
  EXPECT_EQ(Stored(Type::kI64, 0x1p63), INT64_MIN);
  EXPECT_EQ(Stored(Type::kI64, -0x1p63), INT64_MIN);
  EXPECT_EQ(Stored(Type::kU64, 0x1p64), 0);
  EXPECT_EQ(Stored(Type::kI64, 0x1.8p64), INT64_MIN);
  EXPECT_EQ(Stored(Type::kI64, 0x1p64 + 0x1p12), 1 << 12);
  EXPECT_EQ(Stored(Type::kI64, -0x1p64 - 0x1p12), -(1 << 12));
  EXPECT_EQ(Stored(Type::kI32, 1e300), 0);
  EXPECT_EQ(Stored(Type::kI64, NAN), 0);
  EXPECT_EQ(Stored(Type::kI64, INFINITY), 0);
  EXPECT_EQ(Stored(Type::kU8, -INFINITY), 0);
}

TEST(TensorTest, FloatsAreRounded) {
  Tensor tensor(Type::kF16, {2});
  tensor.SetValue(0, 0.1);
  EXPECT_EQ(tensor.Float(0), RoundFloat(Type::kF16, 0.1));
  tensor.SetValue(1, 70000);
  EXPECT_EQ(tensor.Value(1), INFINITY);
}

}  // namespace
}  // namespace polynao::ir
