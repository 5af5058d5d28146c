#include "kernels/reference/attention.h"

#include "compiler/ir/type.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/reference/tensor_for_test.h"

namespace polynao::kernels {
namespace {

using ::testing::ElementsAre;

// Values that a reader can check without a program.
TEST(ReferenceAttentionTest, EqualScoresTakeTheMean) {
  ir::Tensor y(ir::Type::kF32, {1, 1, 2});
  ReferenceAttention(1, Of({1, 1, 2}, {0, 0}), Of({1, 2, 2}, {1, 2, 3, 4}),
                     Of({1, 2, 2}, {1, 10, 3, 30}), y);
  EXPECT_THAT(Values(y), ElementsAre(2, 20));
}

// The second row of the second head is far nearer to that head's first key.
TEST(ReferenceAttentionTest, TheLargestScoreWins) {
  ir::Tensor y(ir::Type::kF32, {2, 2, 1});
  ReferenceAttention(10, Of({2, 2, 1}, {0, 0, 0, 100}), Of({2, 2, 1}, {0, 0, 5, -5}),
                     Of({2, 2, 1}, {1, 3, 7, 9}), y);
  EXPECT_THAT(Values(y), ElementsAre(2, 2, 8, 7));
}

}  // namespace
}  // namespace polynao::kernels
