// Schedules for fewer clusters than the card has: the same values, and no work for the other clusters.
#include <string>
#include <vector>

#include "cases/case_text.h"
#include "cases/run_case.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/operators.h"

namespace polynao::cases {
namespace {

// Kinds of schedules, on shapes that leave parts over.
const std::vector<CaseText>& Cases() {
  static const auto& cases = *new std::vector<CaseText>{
      {.op = "add", .shape = "3x41x65", .dtype = "f16"},
      {.op = "add", .shape = "9x33,1x33", .dtype = "f32"},
      {.op = "silu", .shape = "3x41x65", .dtype = "f16"},
      {.op = "conv2d", .shape = "9x11x33,65x3x3x33", .dtype = "i8"},
      {.op = "conv2d", .shape = "9x11x64,64x3x3x1", .dtype = "i8", .attributes = {"groups=64"}},
      {.op = "matmul", .shape = "37x65,130x65", .dtype = "i8"},
      {.op = "max_pool2d", .shape = "13x9x70", .dtype = "f16"},
      {.op = "pad", .shape = "7x5x64", .dtype = "f16"},
      {.op = "reduce_sum", .shape = "33x70", .dtype = "f32"},
      {.op = "conv2d_bn", .shape = "9x11x64,128x3x3x64", .dtype = "i8"},
      {.op = "conv2d_batch_norm", .shape = "9x11x64,64x1x1x64", .dtype = "i8"},
      {.op = "conv2d_pair", .shape = "9x11x64,64x3x3x64,64x3x3x64", .dtype = "i8"},
  };
  return cases;
}

TEST(Clusters, FewerGiveTheSameValues) {
  for (const CaseText& text : Cases()) {
    for (const int clusters : {4, 3, 2, 1}) {
      SCOPED_TRACE(text.op + " " + text.shape + " clusters=" + std::to_string(clusters));
      absl::StatusOr<kernels::OperatorCase> c = ParseCase(text);
      ASSERT_TRUE(c.ok()) << c.status();
      c->schedule["clusters"] = clusters;
      const absl::StatusOr<CaseReport> report = RunCase(*c, {});
      ASSERT_TRUE(report.ok()) << report.status();
      EXPECT_TRUE(report->ok) << "values differ by " << report->max_abs_error;
      for (const simulator::CoreReport& core : report->simulated->cores) {
        if (core.cluster < clusters) continue;
        for (const isa::Unit unit : {isa::Unit::kVector, isa::Unit::kTensor, isa::Unit::kIoDma}) {
          EXPECT_EQ(core.units[static_cast<size_t>(unit)].instructions, 0)
              << "cluster " << core.cluster << " core " << core.core;
        }
      }
    }
  }
}

TEST(Clusters, ACountThatTheCardHasNot) {
  absl::StatusOr<kernels::OperatorCase> c = ParseCase(Cases()[0]);
  ASSERT_TRUE(c.ok()) << c.status();
  c->schedule["clusters"] = 8;
  EXPECT_THAT(std::string(RunCase(*c, {}).status().message()),
              testing::HasSubstr("no schedule has clusters=8 on a machine of 4 clusters: "
                                 "expected one of 4, 3, 2, 1"));
}

}  // namespace
}  // namespace polynao::cases
