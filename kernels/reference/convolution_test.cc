#include "kernels/reference/convolution.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/reference/tensor_for_test.h"

namespace polynao::kernels {
namespace {

using ::testing::ElementsAre;

TEST(ReferenceConv2dTest, PadsWithZeros) {
  const ConvLayer layer = {.h = 1, .w = 3, .ci = 1, .co = 1, .kh = 1, .kw = 3, .pad_w = 1};
  const ir::Tensor x = Of(ir::Type::kI8, {1, 3, 1}, {1, 2, 3});
  const ir::Tensor f = Of(ir::Type::kI8, {1, 1, 3, 1}, {10, 100, 1});
  ir::Tensor out(ir::Type::kI32, {1, 3, 1});
  ReferenceConv2d(layer, x, f, nullptr, out);
  EXPECT_THAT(Values(out), ElementsAre(100 + 2, 10 + 200 + 3, 20 + 300));
}

TEST(ReferenceConv2dTest, StrideDilationChannels) {
  ConvLayer layer = {
      .h = 5, .w = 1, .ci = 2, .co = 2, .kh = 2, .kw = 1, .stride = 2, .dilation = 2};
  EXPECT_EQ(layer.ho(), 2);
  const ir::Tensor x = Of(ir::Type::kI16, {5, 1, 2}, {1, 2, 9, 9, 3, 4, 9, 9, 5, 6});
  const ir::Tensor f = Of(ir::Type::kI16, {2, 2, 1, 2}, {1, 0, 0, 1, 10, 0, 0, 100});
  ir::Tensor out(ir::Type::kI32, {2, 1, 2});
  ReferenceConv2d(layer, x, f, nullptr, out);
  EXPECT_THAT(Values(out), ElementsAre(1 + 4, 10 + 400, 3 + 6, 30 + 600));
}

TEST(ReferenceConv2dTest, Groups) {
  const ConvLayer layer = {.h = 1, .w = 1, .ci = 4, .co = 2, .kh = 1, .kw = 1, .groups = 2};
  const ir::Tensor x = Of(ir::Type::kF32, {1, 1, 4}, {1, 2, 3, 4});
  const ir::Tensor f = Of(ir::Type::kF32, {2, 1, 1, 2}, {1, 10, 100, 1000});
  ir::Tensor out(ir::Type::kF32, {1, 1, 2});
  ReferenceConv2d(layer, x, f, nullptr, out);
  EXPECT_THAT(Values(out), ElementsAre(21, 4300));
}

TEST(ReferenceConv2dTest, BiasScaleReluAndTheOutputsType) {
  ConvLayer layer = {
      .h = 1, .w = 3, .ci = 1, .co = 1, .kh = 1, .kw = 1, .bias = true, .scale = 0.5};
  const ir::Tensor x = Of(ir::Type::kI8, {1, 3, 1}, {3, -3, 100});
  const ir::Tensor f = Of(ir::Type::kI8, {1, 1, 1, 1}, {4});
  const ir::Tensor bias = Of(ir::Type::kI32, {1}, {1});
  ir::Tensor half(ir::Type::kF16, {1, 3, 1});
  ReferenceConv2d(layer, x, f, &bias, half);
  EXPECT_THAT(Values(half), ElementsAre(6.5, -5.5, 200.5));
  ir::Tensor bytes(ir::Type::kI8, {1, 3, 1});
  ReferenceConv2d(layer, x, f, &bias, bytes);
  EXPECT_THAT(Values(bytes), ElementsAre(6, -5, 127)) << "truncated, saturated";
  layer.relu = true;
  ReferenceConv2d(layer, x, f, &bias, bytes);
  EXPECT_THAT(Values(bytes), ElementsAre(6, 0, 127));
}

TEST(ReferenceConv2dTest, SumsOfIntegersWrap) {
  const ConvLayer layer = {.h = 1, .w = 1, .ci = 3, .co = 1, .kh = 1, .kw = 1};
  const ir::Tensor x = Of(ir::Type::kI16, {1, 1, 3}, {-32768, -32768, 1});
  const ir::Tensor f = Of(ir::Type::kI16, {1, 1, 1, 3}, {-32768, -32768, 5});
  ir::Tensor out(ir::Type::kI32, {1, 1, 1});
  ReferenceConv2d(layer, x, f, nullptr, out);
  EXPECT_THAT(Values(out), ElementsAre(-2147483648.0 + 5));
}

}  // namespace
}  // namespace polynao::kernels
