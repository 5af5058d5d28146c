// conv2d on every target: values against plain loops.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/te/operators.h"
#include "tools/driver/case.h"

namespace polynao::driver {
namespace {

using ::testing::HasSubstr;

kernels::OperatorCase Conv(const std::string& shape, ir::Type type = ir::Type::kI8,
                           std::map<std::string, std::string, std::less<>> attributes = {}) {
  kernels::OperatorCase c = {.op = "conv2d", .dtype = type, .attributes = std::move(attributes)};
  EXPECT_TRUE(kernels::ParseShapes(shape, c).ok());
  return c;
}

std::string Error(const kernels::OperatorCase& c, const CaseSettings& settings = {}) {
  const absl::StatusOr<CaseReport> report = RunCase(c, settings);
  EXPECT_FALSE(report.ok());
  return std::string(report.status().message());
}

TEST(ConvolutionTest, ProcessorTargets) {
  using Attributes = std::map<std::string, std::string, std::less<>>;
  for (const std::string target : {"cpu", "interp", "c"}) {
    for (const ir::Type type : {ir::Type::kI8, ir::Type::kI16, ir::Type::kF32}) {
      for (const Attributes& attributes :
           {Attributes{},
            {{"stride", "2"}, {"pad", "1"}},
            {{"dilation", "2"}, {"out", "f32"}},
            {{"bias", "1"}, {"relu", "1"}, {"out", "i8"}, {"scale", "0.3"}},
            {{"pad", "0"}, {"groups", "2"}}}) {
        if (target == "c" && !attributes.empty()) continue;
        const std::string filter = attributes.contains("groups") ? "4x3x3x3" : "4x3x3x6";
        const kernels::OperatorCase c = Conv("9x11x6," + filter, type, attributes);
        CaseSettings settings;
        settings.target = target;
        const absl::StatusOr<CaseReport> report = RunCase(c, settings);
        ASSERT_TRUE(report.ok()) << report.status();
        EXPECT_TRUE(report->ok) << kernels::ShapesText(c) << " " << target << " "
                                << ir::TypeName(type) << " " << report->max_abs_error;
      }
    }
  }
}

TEST(ConvolutionTest, WhatIsWrongSaysSo) {
  EXPECT_EQ(Error({.op = "conv2d", .shape = {4, 4, 4}, .dtype = ir::Type::kI8}),
            "operator conv2d: expected 2 shapes (image (H, W, CI), filters (CO, KH, KW, CI)), "
            "found 1");
  EXPECT_THAT(Error(Conv("4x4x4,8x3x3x5")), HasSubstr("found 5"));
  EXPECT_THAT(Error(Conv("4x4,8x3x3x5")), HasSubstr("expected 3 and 4 dimensions"));
  EXPECT_THAT(Error(Conv("4x0x4,8x3x3x4")), HasSubstr("expected extents of 1 and more"));
  EXPECT_THAT(Error(Conv("4x4x4,8x3x3x4", ir::Type::kI32)), HasSubstr("expected i8, i16"));
  EXPECT_THAT(Error(Conv("2x2x4,8x3x3x4", ir::Type::kI8, {{"pad", "0"}})),
              HasSubstr("the filter is larger than the padded image"));
  EXPECT_THAT(Error(Conv("4x4x4,8x3x3x4", ir::Type::kI8, {{"stride", "0"}})),
              HasSubstr("attribute stride: expected 1 or more, found '0'"));
  EXPECT_THAT(Error(Conv("4x4x4,8x3x3x4", ir::Type::kI8, {{"out", "i64"}})),
              HasSubstr("attribute out: expected one of f16, f32, i8, i16, i32, found 'i64'"));
  EXPECT_THAT(Error(Conv("4x4x4,8x3x3x4", ir::Type::kI8, {{"size", "1"}})),
              HasSubstr("attribute 'size': expected one of stride, pad"));
  EXPECT_THAT(Error(Conv("4x4x4,8x3x3x4", ir::Type::kF16)),
              HasSubstr("mlu270 has no convolution of that type (tensor.macs_f16 = 0)"));
}

}  // namespace
}  // namespace polynao::driver
