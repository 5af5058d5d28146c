#include "kernels/reference/spatial.h"

#include "compiler/ir/type.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/reference/tensor_for_test.h"

namespace polynao::kernels {
namespace {

using ::testing::ElementsAre;

TEST(ReferenceSpatialTest, WindowsPaddingStrideAndDilation) {
  SpatialProblem p;
  p.layout = "NCW";
  p.kernel_layout = "OIW";
  const ir::Tensor x = Of({1, 1, 4}, {1, 2, 3, 4}), w = Of({1, 1, 2}, {10, 1});
  p.axes = {{.in = 4, .kernel = 2, .out = 3}};
  EXPECT_THAT(ReferenceSpatial(p, x, w), ElementsAre(12, 23, 34));
  p.axes = {{.in = 4, .kernel = 2, .out = 3, .stride = 2, .before = 1}};
  EXPECT_THAT(ReferenceSpatial(p, x, w), ElementsAre(1, 23, 40));
  p.axes = {{.in = 4, .kernel = 2, .out = 2, .dilation = 2}};
  EXPECT_THAT(ReferenceSpatial(p, x, w), ElementsAre(13, 24));
}

// Rows that are added up in one run must not leak into the next row.
TEST(ReferenceSpatialTest, LayoutsAndGroups) {
  SpatialProblem p;
  p.axes = {{.in = 2, .kernel = 1, .out = 2}, {.in = 3, .kernel = 2, .out = 2}};
  p.layout = "NCHW";
  p.kernel_layout = "OIHW";
  EXPECT_THAT(ReferenceSpatial(p, Of({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}), Of({1, 1, 1, 2}, {10, 1})),
              ElementsAre(12, 23, 45, 56));
  p.axes = {{.in = 1, .kernel = 1, .out = 1}, {.in = 2, .kernel = 1, .out = 2}};
  p.ci = p.co = p.groups = 2;
  p.layout = "HWCN";
  p.kernel_layout = "HWIO";
  EXPECT_THAT(ReferenceSpatial(p, Of({1, 2, 2, 1}, {1, 2, 3, 4}), Of({1, 1, 1, 2}, {10, 100})),
              ElementsAre(10, 30, 200, 400));
  p.groups = 1;
  EXPECT_THAT(ReferenceSpatial(p, Of({1, 2, 2, 1}, {1, 2, 3, 4}), Of({1, 1, 2, 2}, {1, 2, 10, 20})),
              ElementsAre(21, 43, 42, 86));
}

TEST(ReferenceSpatialTest, Transposed) {
  SpatialProblem p;
  p.layout = "NCW";
  p.kernel_layout = "IOW";
  p.axes = {{.in = 2, .kernel = 3, .out = 5, .stride = 2}};
  const ir::Tensor x = Of({1, 1, 2}, {1, 2}), w = Of({1, 1, 3}, {1, 10, 100});
  EXPECT_THAT(ReferenceSpatialTransposed(p, x, w), ElementsAre(1, 10, 102, 20, 200));
  p.axes = {{.in = 2, .kernel = 3, .out = 3, .stride = 2, .before = 1}};
  EXPECT_THAT(ReferenceSpatialTransposed(p, x, w), ElementsAre(10, 102, 20));
}

// The gradients are those of the sum of out * out_grad: they must pair with the forward sums.
TEST(ReferenceSpatialTest, DepthwiseGradientsPairWithTheForwardSums) {
  SpatialProblem p;
  p.ci = 2;
  p.co = 4;
  p.axes = {{.in = 3, .kernel = 2, .out = 2, .stride = 2, .before = 1},
            {.in = 4, .kernel = 3, .out = 4, .before = 1}};
  const auto filled = [](std::vector<int64_t> shape, int seed) {
    ir::Tensor t(ir::Type::kF32, std::move(shape));
    for (int64_t i = 0; i < t.element_count(); ++i) {
      t.SetValue(i, static_cast<double>((i * 7 + seed) % 11 - 5));
    }
    return t;
  };
  const ir::Tensor x = filled({1, 3, 4, 2}, 1), w = filled({2, 3, 2, 2}, 2);
  const ir::Tensor grad = filled({1, 2, 4, 4}, 3);
  // Forward with a group per channel and the filter as OIHW.
  SpatialProblem forward = p;
  forward.groups = 2;
  forward.layout = "NHWC";
  forward.kernel_layout = "HWOI";
  ir::Tensor oihw = w;
  oihw.shape = {2, 3, 4, 1};
  const std::vector<double> out = ReferenceSpatial(forward, x, oihw);  // N C H W
  double pairing = 0;
  for (int64_t c = 0; c < 4; ++c) {
    for (int64_t place = 0; place < 8; ++place)
      pairing += out[c * 8 + place] * grad.Value(place * 4 + c);
  }
  ir::Tensor in_grad(ir::Type::kF32, x.shape), w_grad(ir::Type::kF32, w.shape);
  ReferenceDepthwiseBackInput(p, w, grad, in_grad);
  ReferenceDepthwiseBackWeight(p, x, grad, w_grad);
  double by_input = 0, by_weight = 0;
  for (int64_t i = 0; i < x.element_count(); ++i) by_input += in_grad.Value(i) * x.Value(i);
  for (int64_t i = 0; i < w.element_count(); ++i) by_weight += w_grad.Value(i) * w.Value(i);
  EXPECT_NE(pairing, 0);
  EXPECT_EQ(by_input, pairing);
  EXPECT_EQ(by_weight, pairing);
}

TEST(ReferenceSpatialTest, DeformableMovesItsSamples) {
  SpatialProblem p;
  p.axes = {{.in = 2, .kernel = 1, .out = 2}, {.in = 2, .kernel = 1, .out = 2}};
  const ir::Tensor x = Of({1, 1, 2, 2}, {1, 2, 3, 4}), w = Of({1, 1, 1, 1}, {1});
  ir::Tensor out(ir::Type::kF32, {1, 1, 2, 2});
  // Half a row down; beyond the last row it is the last one until the extent ends.
  ReferenceDeformable(p, 1, x, Of({1, 2, 2, 2}, {0.5, 0.5, 0.5, 1, 0, 0, 0, 0}), w, out);
  EXPECT_THAT(Values(out), ElementsAre(2, 3, 3, 0));
  // A quarter of a column right; outside on the left.
  ReferenceDeformable(p, 1, x, Of({1, 2, 2, 2}, {0, 0, 0, 0, 0.25, 0.25, -0.5, 0.25}), w, out);
  EXPECT_THAT(Values(out), ElementsAre(1.25, 2, 0, 4));
}

}  // namespace
}  // namespace polynao::kernels
