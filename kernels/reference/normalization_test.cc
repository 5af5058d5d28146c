#include "kernels/reference/normalization.h"

#include <cmath>

#include "compiler/ir/type.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/reference/tensor_for_test.h"

namespace polynao::kernels {
namespace {

using ::testing::ElementsAre;

// Values that a reader can check without a program.
TEST(ReferenceSoftmaxTest, WhichAxis) {
  const ir::Tensor x = Of({2, 2}, {5, 0, 5, -1000});
  ir::Tensor y(ir::Type::kF32, {2, 2});
  ReferenceSoftmax(1, 2, 2, x, y);
  EXPECT_THAT(Values(y), ElementsAre(0.5, 1, 0.5, 0));
  ReferenceSoftmax(4, 1, 1, x, y);
  EXPECT_THAT(Values(y), ElementsAre(1, 1, 1, 1));
}

TEST(ReferenceSoftmaxTest, LargeValues) {
  ir::Tensor y(ir::Type::kF32, {2});
  ReferenceSoftmax(1, 2, 1, Of({2}, {1e5, 1e5}), y);
  EXPECT_THAT(Values(y), ElementsAre(0.5, 0.5));
}

TEST(ReferenceLayerNormTest, MeanAndDeviation) {
  ir::Tensor y(ir::Type::kF32, {2, 2});
  ReferenceLayerNorm(0, Of({2, 2}, {1, 3, 20, 10}), Of({2}, {1, 10}), Of({2}, {0, 7}), y);
  EXPECT_THAT(Values(y), ElementsAre(-1, 17, 1, -3));
}

TEST(ReferenceRmsNormTest, RootOfTheMeanSquare) {
  ir::Tensor y(ir::Type::kF32, {2, 2});
  ReferenceRmsNorm(11, Of({2, 2}, {1, 7, 0.5, 2}), Of({2}, {12, 6}), y);
  EXPECT_EQ(y.Value(0), 2);
  EXPECT_EQ(y.Value(1), 7);
}

// Two images of two pixels, channels by themselves and together.
TEST(ReferenceGroupNormTest, WhichElementsBelongTogether) {
  ir::Tensor y(ir::Type::kF32, {2, 2, 2});
  const ir::Tensor x = Of({2, 2, 2}, {1, 20, 3, 10, 0, 0, 4, 8});
  ReferenceGroupNorm(2, 2, 0, x, Of({2}, {1, 10}), Of({2}, {0, 7}), y);
  EXPECT_THAT(Values(y), ElementsAre(-1, 17, 1, -3, -1, -3, 1, 17));
  ReferenceGroupNorm(2, 1, 27, Of({2, 2, 2}, {0, 2, 6, 4, 6, 6, 6, 6}), Of({2}, {4, 4}),
                     Of({2}, {0, 0}), y);
  // Mean 3 and variance 5; mean 6 and variance 0.
  EXPECT_NEAR(y.Value(0), -12 / std::sqrt(32), 1e-6);
  EXPECT_NEAR(y.Value(2), 12 / std::sqrt(32), 1e-6);
  EXPECT_EQ(y.Value(7), 0);
}

}  // namespace
}  // namespace polynao::kernels
