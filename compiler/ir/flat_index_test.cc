#include "compiler/ir/flat_index.h"

#include "compiler/ir/text.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

TEST(FlatIndexTest, RowMajor) {
  Context c;
  const Var n = c.NewVar("n", Type::kI32), i = c.NewVar("i", Type::kI32),
            j = c.NewVar("j", Type::kI64);
  const Buffer constant = c.NewBuffer("A", Type::kF32, {n, c.I32(3), c.I32(4)});
  EXPECT_EQ(Print(FlatIndex(constant.node(), {i, n, i}, Type::kI32)), "i * 12 + n * 4 + i");
  EXPECT_EQ(Print(FlatIndex(constant.node(), {c.I32(2), c.I32(0), i}, Type::kI32)), "24 + i");
  EXPECT_EQ(Print(FlatIndex(constant.node(), {i, j, c.I32(1)})), "cast(i64, i) * 12 + j * 4 + 1");
  const Buffer symbolic = c.NewBuffer("B", Type::kF32, {n, n, c.I32(1), n});
  EXPECT_EQ(Print(FlatIndex(symbolic.node(), {i, i, i, i}, Type::kI32)),
            "i * (n * n) + i * n + i * n + i");
  EXPECT_EQ(Print(FlatIndex(constant.node(), {c.I32(2), c.I32(1), c.I32(3)}, Type::kI32)), "31");
  // A constant that i32 does not hold stays an operation, which overflows where the program runs.
  EXPECT_EQ(Print(FlatIndex(constant.node(), {c.I32(1 << 30), i, i}, Type::kI32)),
            "1073741824 * 12 + i * 4 + i");
  const Buffer scalar = c.NewBuffer("C", Type::kF32, {});
  EXPECT_TRUE(FlatIndex(scalar.node(), {}).IsInt(0));
}

}  // namespace
}  // namespace polynao::ir
