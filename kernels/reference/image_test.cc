#include "kernels/reference/image.h"

#include "compiler/ir/type.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/reference/tensor_for_test.h"

namespace polynao::kernels {
namespace {

using ::testing::ElementsAre;

std::vector<double> Resized(CoordinateMode mode, bool nearest, const std::vector<double>& x,
                            int64_t count) {
  const int64_t extent = static_cast<int64_t>(x.size());
  ir::Tensor out(ir::Type::kF32, {count});
  ReferenceResize({.in = {1, 1, extent}, .out = {1, 1, count}, .mode = mode, .nearest = nearest},
                  Of({extent}, x), out);
  return Values(out);
}

TEST(ReferenceResizeTest, CoordinatesOfEachMode) {
  using enum CoordinateMode;
  EXPECT_THAT(Resized(kAlignCorners, false, {0, 10, 20}, 5), ElementsAre(0, 5, 10, 15, 20));
  EXPECT_THAT(Resized(kAsymmetric, false, {0, 10}, 4), ElementsAre(0, 5, 10, 10));
  EXPECT_THAT(Resized(kHalfPixel, false, {0, 8}, 4), ElementsAre(0, 2, 6, 8));
  EXPECT_THAT(Resized(kAsymmetric, true, {1, 2, 3}, 7), ElementsAre(1, 1, 1, 2, 2, 3, 3));
  EXPECT_THAT(Resized(kAsymmetric, true, {1, 2, 3}, 2), ElementsAre(1, 2));
  EXPECT_THAT(Resized(kHalfPixel, true, {1, 2}, 6), ElementsAre(1, 1, 1, 1, 2, 2));
}

TEST(ReferenceResizeTest, OuterAndInnerElementsStayApart) {
  ir::Tensor out(ir::Type::kF32, {2, 3, 2});
  ReferenceResize({.outer = 2,
                   .inner = 2,
                   .in = {1, 1, 2},
                   .out = {1, 1, 3},
                   .mode = CoordinateMode::kAlignCorners},
                  Of({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}), out);
  EXPECT_THAT(Values(out), ElementsAre(0, 1, 1, 2, 2, 3, 4, 5, 5, 6, 6, 7));
}

TEST(ReferenceCropAndResizeTest, CornersMeetCornersAndOutsideHasItsValue) {
  const ir::Tensor x = Of({1, 3, 3, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  ir::Tensor indices(ir::Type::kI32, {1});
  ir::Tensor out(ir::Type::kF32, {1, 2, 3, 1});
  ReferenceCropAndResize(false, false, -1, x, Of({1, 4}, {0, 0, 0.5, 1}), indices, out);
  EXPECT_THAT(Values(out), ElementsAre(0, 1, 2, 3, 4, 5));
  ReferenceCropAndResize(false, false, -1, x, Of({1, 4}, {0.25, 0, 1.5, 1}), indices, out);
  EXPECT_THAT(Values(out), ElementsAre(1.5, 2.5, 3.5, -1, -1, -1));
}

TEST(ReferenceGridTest, AffineGridAndSamples) {
  ir::Tensor grid(ir::Type::kF32, {1, 2, 2, 3});
  ReferenceAffineGrid(Of({1, 2, 3}, {1, 0, 0, 0, 2, 0.5}), grid);
  EXPECT_THAT(Values(grid), ElementsAre(-1, 0, 1, -1, 0, 1, -1.5, -1.5, -1.5, 2.5, 2.5, 2.5));
  ir::Tensor out(ir::Type::kF32, {1, 1, 1, 3});
  // The middle, a corner, and half a place outside it.
  ReferenceGridSample(Of({1, 1, 2, 2}, {1, 2, 3, 4}), Of({1, 2, 1, 3}, {0, 1, 2, 0, 1, 1}), out);
  EXPECT_THAT(Values(out), ElementsAre(2.5, 4, 2));
}

}  // namespace
}  // namespace polynao::kernels
