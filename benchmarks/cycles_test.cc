#include "benchmarks/cycles.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/operators.h"

namespace polynao::benchmarks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<CaseCycles> Cases(int64_t a, int64_t b) {
  return {{.machine = "m", .suite = "s", .name = "x/a", .cycles = a, .bound = 100},
          {.machine = "m", .suite = "s", .name = "x/b", .count = 3, .cycles = b, .bound = 100}};
}

TEST(CyclesTest, TextIsReadBack) {
  std::vector<CaseCycles> cases = Cases(200, 300);
  cases.push_back({.machine = "m", .suite = "s", .name = "x/c", .failure = "it \"fails\""});
  EXPECT_EQ(*ParseCycles(CyclesText(cases)), cases);
}

TEST(CyclesTest, WrongTextIsAnError) {
  const auto message = [](std::string_view text) {
    return std::string(ParseCycles(text).status().message());
  };
  EXPECT_EQ(message("{"), "expected a JSON list of cases");
  EXPECT_EQ(message("[1]"), "case 1: expected an object, found 1");
  EXPECT_EQ(message("[{}]"), "case 1: 'machine': expected a text, found none");
  EXPECT_THAT(message(CyclesText({Cases(1, 2)[0], Cases(1, 2)[0]})), HasSubstr("twice"));
}

TEST(CyclesTest, OnePercentIsWorse) {
  EXPECT_THAT(CompareCycles(Cases(1000, 1000), Cases(1010, 900)).worse, ElementsAre());
  EXPECT_THAT(CompareCycles(Cases(1000, 1000), Cases(1011, 900)).worse,
              ElementsAre("m s x/a: 1000 -> 1011 (1.011, bound 100)"));
  const std::vector<CaseCycles> before = Cases(1000, 1000);
  EXPECT_THAT(CompareCycles(before, {before[0]}).worse, ElementsAre("m s x/b: is no longer there"));
  std::vector<CaseCycles> failed = before;
  failed[1].failure = "does not fit";
  EXPECT_THAT(CompareCycles(before, failed).worse,
              ElementsAre("m s x/b: had 1000 cycles, now does not fit"));
  EXPECT_THAT(CompareCycles(failed, before).worse, ElementsAre());
}

TEST(CyclesTest, ReportHasMeansAndSums) {
  const std::string report = CompareCycles(Cases(200, 200), Cases(100, 400)).report;
  EXPECT_THAT(report, HasSubstr("2  0.500 -> 0.500  800 -> 1300"));
}

TEST(CyclesTest, MeasuresACase) {
  Suite suite;
  suite.name = "two";
  suite.cases = {{.op_class = "c", .op = "add", .shape = "64", .dtype = "f16"},
                 {.op_class = "c", .op = "add", .shape = "1x", .dtype = "f16"}};
  const auto cases = MeasureCycles(suite, {});
  ASSERT_TRUE(cases.ok());
  EXPECT_GT((*cases)[0].bound, 0);
  EXPECT_GE((*cases)[0].cycles, (*cases)[0].bound);
  EXPECT_EQ((*cases)[0].failure, "");
  EXPECT_NE((*cases)[1].failure, "");
  CyclesSettings settings;
  settings.filter = "sub";
  EXPECT_FALSE(MeasureCycles(suite, settings).ok());
}

// A sample of the TOPI table; names without number are no case.
TEST(CyclesTest, MeasuresTheTopiTable) {
  CyclesSettings settings;
  settings.config = "mlu370";
  settings.filter = "batch_matmul/1";
  settings.values = true;
  const auto cases = MeasureTopiCycles(settings);
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_EQ(cases->size(), 1u);
  EXPECT_EQ((*cases)[0].failure, "");
  EXPECT_EQ((*cases)[0].scalar_stores, 0);
  EXPECT_GE((*cases)[0].cycles, (*cases)[0].bound);
  EXPECT_EQ((*cases)[0].values, "agree");
  EXPECT_EQ((*cases)[0].values_at, "1x16x32,1x16x32");
  EXPECT_EQ(*ParseCycles(CyclesText(*cases)), *cases);
  EXPECT_EQ(SummaryText({{.cycles = 100, .bound = 50},
                         {.cycles = 10, .bound = 9, .scalar_stores = 2},
                         {.failure = "x"}}),
            "3 cases: 2 run, 1 of them without scalar stores; median efficiency 0.900");
  EXPECT_EQ(SummaryText({{.cycles = 100, .bound = 50, .values = "agree"},
                         {.failure = "x", .values = "differ by up to 3"}}),
            "2 cases: 1 run, 1 of them without scalar stores; median efficiency 0.500; values "
            "agree in 1 of 2");
  settings.filter = "batch_matmul/99";
  EXPECT_FALSE(MeasureTopiCycles(settings).ok());
}

// Odd extents stay odd, numbers that belong to an extent follow it, and small cases stay as they are.
TEST(CyclesTest, CasesBecomeSmaller) {
  const auto smaller = [](const kernels::OperatorCase& c, double most_work) {
    return SmallerCase(c, most_work);
  };
  kernels::OperatorCase c = {.op = "conv2d_nchw",
                             .shape = {1, 64, 225, 224},
                             .operands = {{33, 64, 3, 3}},
                             .dtype = ir::Type::kF32};
  EXPECT_EQ(kernels::ShapesText(smaller(c, 1e6)), "1x16x15x28,17x16x3x3");
  EXPECT_EQ(kernels::ShapesText(smaller(c, 1e12)), "1x64x225x224,33x64x3x3");
  EXPECT_EQ(kernels::ShapesText(smaller(c, 1)), "1x8x7x8,5x8x3x3");
  c = {.op = "group_conv2d",
       .shape = {1, 128, 9, 9},
       .operands = {{128, 4, 3, 3}},
       .dtype = ir::Type::kF32,
       .attributes = {{"groups", "32"}}};
  const kernels::OperatorCase grouped = smaller(c, 3e4);
  EXPECT_EQ(kernels::ShapesText(grouped), "1x32x5x5,32x4x3x3");
  EXPECT_EQ(grouped.attributes.at("groups"), "8");
  c = {.op = "depthwise_conv2d_back_input",
       .shape = {1, 40, 40, 32},
       .operands = {{3, 3, 32, 1}},
       .dtype = ir::Type::kF32,
       .attributes = {{"in_height", "42"}, {"in_width", "42"}}};
  EXPECT_TRUE(kernels::FindOperator(smaller(c, 1e4)).ok());
}

}  // namespace
}  // namespace polynao::benchmarks
