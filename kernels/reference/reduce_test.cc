#include "kernels/reference/reduce.h"

#include <vector>

#include "compiler/ir/type.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/reference/tensor_for_test.h"

namespace polynao::kernels {
namespace {

using ::testing::ElementsAre;

// Values that a reader can check without a program.
std::vector<double> Reduced(ReduceOp op, ir::Type type, int64_t outer, int64_t count, int64_t inner,
                            const std::vector<double>& values) {
  ir::Tensor y(type, {outer * inner});
  ReferenceReduce(op, outer, count, inner, Of(type, {outer * count * inner}, values), y);
  return Values(y);
}

TEST(ReferenceReduceTest, WhichAxis) {
  const std::vector<double> x = {1, 2, 3, 4, 50, 60, 70, 80};
  EXPECT_THAT(Reduced(ReduceOp::kSum, ir::Type::kF32, 2, 4, 1, x), ElementsAre(10, 260));
  EXPECT_THAT(Reduced(ReduceOp::kSum, ir::Type::kF32, 1, 2, 4, x), ElementsAre(51, 62, 73, 84));
  EXPECT_THAT(Reduced(ReduceOp::kMax, ir::Type::kF32, 2, 2, 2, x), ElementsAre(3, 4, 70, 80));
  EXPECT_THAT(Reduced(ReduceOp::kMin, ir::Type::kF32, 2, 2, 2, x), ElementsAre(1, 2, 50, 60));
  EXPECT_THAT(Reduced(ReduceOp::kMean, ir::Type::kF32, 2, 4, 1, x), ElementsAre(2.5, 65));
}

TEST(ReferenceReduceTest, NegativeAndInteger) {
  EXPECT_THAT(Reduced(ReduceOp::kMax, ir::Type::kI8, 1, 2, 1, {-128, -3}), ElementsAre(-3));
  EXPECT_THAT(Reduced(ReduceOp::kMin, ir::Type::kU8, 1, 2, 1, {255, 200}), ElementsAre(200));
  EXPECT_THAT(Reduced(ReduceOp::kSum, ir::Type::kI32, 1, 2, 1, {2147483647, 1}),
              ElementsAre(-2147483648.0));
}

// 2048 + 1 has no f16 between 2048 and 2050: in f16 the ones would be lost.
TEST(ReferenceReduceTest, SumsOfHalvesAreMadeInF32) {
  EXPECT_THAT(Reduced(ReduceOp::kSum, ir::Type::kF16, 1, 3, 1, {2048, 1, 1}), ElementsAre(2050));
  EXPECT_THAT(Reduced(ReduceOp::kSum, ir::Type::kF32, 1, 3, 1, {0x1p24, 1, 1}),
              ElementsAre(0x1p24));
}

TEST(ReferencePoolTest, MaximumDoesNotSeeWhatIsAround) {
  const PoolLayer layer = {.h = 2, .w = 3, .c = 1, .window = 2, .stride = 2, .pad = 1};
  const ir::Tensor x = Of(ir::Type::kF16, {2, 3, 1}, {-1, -2, -3, -4, -5, -6});
  ir::Tensor y(ir::Type::kF16, {layer.ho(), layer.wo(), 1});
  ASSERT_EQ(y.element_count(), 4);
  ReferencePool2d(ReduceOp::kMax, layer, x, y);
  EXPECT_THAT(Values(y), ElementsAre(-1, -2, -4, -5));
}

TEST(ReferencePoolTest, MeanCountsZerosAround) {
  const PoolLayer layer = {.h = 2, .w = 3, .c = 1, .window = 2, .stride = 2, .pad = 1};
  const ir::Tensor x = Of(ir::Type::kF16, {2, 3, 1}, {4, 8, 12, 16, 20, 24});
  ir::Tensor y(ir::Type::kF16, {layer.ho(), layer.wo(), 1});
  ReferencePool2d(ReduceOp::kMean, layer, x, y);
  EXPECT_THAT(Values(y), ElementsAre(1, 5, 4, 11));
}

TEST(ReferencePoolTest, Channels) {
  const PoolLayer layer = {.h = 2, .w = 2, .c = 2, .window = 2};
  const ir::Tensor x = Of(ir::Type::kI8, {2, 2, 2}, {1, 10, 2, 20, 3, 30, 4, -40});
  ir::Tensor y(ir::Type::kI8, {1, 1, 2});
  ReferencePool2d(ReduceOp::kMax, layer, x, y);
  EXPECT_THAT(Values(y), ElementsAre(4, 30));
}

}  // namespace
}  // namespace polynao::kernels
