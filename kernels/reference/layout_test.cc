#include "kernels/reference/layout.h"

#include "compiler/ir/type.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::kernels {
namespace {

using ::testing::ElementsAre;

// 1, 2, 3, ...
ir::Tensor Counting(std::vector<int64_t> shape) {
  ir::Tensor tensor(ir::Type::kI8, std::move(shape));
  for (int64_t i = 0; i < tensor.element_count(); ++i) tensor.SetInt(i, i + 1);
  return tensor;
}

std::vector<int64_t> Values(const ir::Tensor& tensor) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor.element_count(); ++i) values.push_back(tensor.Int(i));
  return values;
}

TEST(ReferencePadTest, RowsAndColumnsNotChannels) {
  ir::Tensor y(ir::Type::kI8, {2, 3, 2});
  ReferencePad(0, 1, 9, Counting({1, 2, 2}), y);
  EXPECT_THAT(Values(y), ElementsAre(1, 2, 3, 4, 9, 9,  //
                                     9, 9, 9, 9, 9, 9));
  ir::Tensor z(ir::Type::kI8, {3, 3, 1});
  ReferencePad(2, 0, -1, Counting({1, 1, 1}), z);
  EXPECT_THAT(Values(z), ElementsAre(-1, -1, -1, -1, -1, -1, -1, -1, 1));
}

TEST(ReferenceBatchToSpaceTest, BlocksAndCrops) {
  ir::Tensor y(ir::Type::kI8, {1, 2, 4, 1});
  ReferenceBatchToSpace({2, 2}, {0, 0}, Counting({4, 1, 2, 1}), y);
  EXPECT_THAT(Values(y), ElementsAre(1, 3, 2, 4, 5, 7, 6, 8));
  ir::Tensor z(ir::Type::kI8, {1, 2, 2, 1});
  ReferenceBatchToSpace({2, 2}, {0, 1}, Counting({4, 1, 2, 1}), z);
  EXPECT_THAT(Values(z), ElementsAre(3, 2, 7, 6));
}

TEST(ReferenceWalkTest, ExchangedReversedAndStrided) {
  ir::Tensor y(ir::Type::kI8, {3, 2});
  ReferenceWalk({1, 0}, {0, 0}, {1, 1}, Counting({2, 3}), y);
  EXPECT_THAT(Values(y), ElementsAre(1, 4, 2, 5, 3, 6));
  ir::Tensor z(ir::Type::kI8, {2, 2});
  ReferenceWalk({0, 1}, {1, 0}, {-1, 2}, Counting({2, 3}), z);
  EXPECT_THAT(Values(z), ElementsAre(4, 6, 1, 3));
}

TEST(ReferenceConcatTest, RowsAndColumns) {
  ir::Tensor y(ir::Type::kI8, {3, 2});
  ReferenceConcat(0, Counting({1, 2}), Counting({2, 2}), y);
  EXPECT_THAT(Values(y), ElementsAre(1, 2, 1, 2, 3, 4));
  ir::Tensor z(ir::Type::kI8, {2, 3});
  ReferenceConcat(1, Counting({2, 1}), Counting({2, 2}), z);
  EXPECT_THAT(Values(z), ElementsAre(1, 1, 2, 2, 3, 4));
}

TEST(ReferenceResizeNearestTest, SquaresOfChannels) {
  ir::Tensor y(ir::Type::kI8, {2, 4, 2});
  ReferenceResizeNearest(2, Counting({1, 2, 2}), y);
  EXPECT_THAT(Values(y), ElementsAre(1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4));
}

TEST(ReferenceResizeBilinearTest, EdgesAreRepeated) {
  ir::Tensor x(ir::Type::kF32, {1, 2, 1}), y(ir::Type::kF32, {2, 4, 1});
  x.SetValue(1, 8);
  ReferenceResizeBilinear(x, y);
  for (int64_t row = 0; row < 2; ++row) {
    EXPECT_EQ(y.Value(row * 4), 0);
    EXPECT_EQ(y.Value(row * 4 + 1), 2);
    EXPECT_EQ(y.Value(row * 4 + 2), 6);
    EXPECT_EQ(y.Value(row * 4 + 3), 8);
  }
}

TEST(ReferenceGatherTest, NumbersOutsideTakeTheNearestRow) {
  ir::Tensor y(ir::Type::kI8, {4, 2});
  ir::Tensor numbers(ir::Type::kI32, {4});
  numbers.SetInt(0, 1);
  numbers.SetInt(1, -5);
  numbers.SetInt(2, 2);
  numbers.SetInt(3, 9);
  ReferenceGather(Counting({3, 2}), numbers, y);
  EXPECT_THAT(Values(y), ElementsAre(3, 4, 1, 2, 5, 6, 5, 6));
}

TEST(ReferenceBroadcastTest, NewAxesAndAxesOfOne) {
  EXPECT_THAT(Values(ReferenceBroadcast(Counting({2}), {3, 2})), ElementsAre(1, 2, 1, 2, 1, 2));
  EXPECT_THAT(Values(ReferenceBroadcast(Counting({3, 1}), {3, 2})), ElementsAre(1, 1, 2, 2, 3, 3));
  EXPECT_THAT(Values(ReferenceBroadcast(Counting({}), {2, 1})), ElementsAre(1, 1));
  EXPECT_THAT(Values(ReferenceBroadcast(Counting({2, 1, 2}), {2, 2, 2})),
              ElementsAre(1, 2, 1, 2, 3, 4, 3, 4));
  EXPECT_THAT(Values(ReferenceBroadcast(Counting({1}), {0})), ElementsAre());
}

}  // namespace
}  // namespace polynao::kernels
