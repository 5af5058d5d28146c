// What is explained is what is run: a schedule's text, read again, gives the same schedule and the same cycles, and the
// parts of a model add up to the cycles by which schedules are ranked.
#include "cases/explain.h"

#include <cmath>
#include <string>
#include <vector>

#include "base/text.h"
#include "cases/machines.h"
#include "cases/run_case.h"
#include "compiler/ir/visit.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/operators.h"
#include "nlohmann/json.hpp"

namespace polynao::cases {
namespace {

using ::testing::HasSubstr;

struct Setting {
  std::string config, type;
};

class ExplainTest : public ::testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    machine_ = LoadMachine(GetParam().config, {}).value();
    target_ = MakeTarget("diannao", &machine_).value();
  }

  // Each operator; elementwise ones and reductions of f16.
  std::vector<CaseText> Texts() const {
    const std::string& type = GetParam().type;
    return {
        {.op = "conv2d", .shape = "14x14x64,64x3x3x64", .dtype = type},
        {.op = "conv2d", .shape = "9x8x64,128x3x3x64", .dtype = type, .untuned = true},
        {.op = "conv2d_bn", .shape = "14x14x256,256x3x3x256", .dtype = type},
        {.op = "matmul", .shape = "20x512,1024x512", .dtype = type},
        {.op = "conv2d", .shape = "14x14x64,64x3x3x1", .dtype = type, .attributes = {"groups=64"}},
        {.op = "conv2d", .shape = "14x14x64,64x3x3x16", .dtype = type, .attributes = {"groups=4"}},
        {.op = "conv2d_pair", .shape = "28x28x64,32x1x1x64,32x3x3x32", .dtype = "i8"},
        {.op = "conv2d_batch_norm", .shape = "14x14x64,64x1x1x64", .dtype = "i8"},
        {.op = "add", .shape = "255x27x27", .dtype = "f16"},
        {.op = "add", .shape = "63x65,65", .dtype = "f16"},
        {.op = "relu", .shape = "30x500", .dtype = "f16"},
        {.op = "reduce_sum", .shape = "70x65", .dtype = "f32"},
        {.op = "max_pool2d", .shape = "28x28x64", .dtype = "f16"},
        {.op = "pad", .shape = "28x28x64", .dtype = "f16"}};
  }

  int64_t Cycles(const kernels::OperatorCase& c) {
    CaseSettings settings;
    settings.config = GetParam().config;
    settings.timing_only = true;
    const absl::StatusOr<CaseReport> report = RunCase(c, settings);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? report->simulated->cycles : 0;
  }

  isa::Machine machine_;
  Target target_;
};

INSTANTIATE_TEST_SUITE_P(Machines, ExplainTest,
                         ::testing::Values(Setting{"mlu270", "i8"}, Setting{"mlu370", "f16"}),
                         [](const auto& setting) { return setting.param.config; });

TEST_P(ExplainTest, PrintedSchedulesAreReadAndRunAgain) {
  for (CaseText text : Texts()) {
    SCOPED_TRACE(StrCat(text.op, " ", text.shape));
    const kernels::OperatorCase c = ParseCase(text, target_).value();
    const absl::StatusOr<TakenSchedule> taken = TakeSchedule(c, target_);
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_EQ(TakeSchedule(c, target_)->operator_case.schedule, taken->operator_case.schedule)
        << "another run";
    const std::string printed = kernels::ChoiceText(taken->operator_case.schedule);
    text.schedule = {printed};
    const absl::StatusOr<kernels::OperatorCase> again = ParseCase(text, target_);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->schedule, taken->operator_case.schedule);
    EXPECT_EQ(Cycles(*again), Cycles(c)) << printed;
  }
}

TEST_P(ExplainTest, PartsAddUpToTheCyclesOfTheRanking) {
  for (const CaseText& text : Texts()) {
    SCOPED_TRACE(StrCat(text.op, " ", text.shape));
    const kernels::OperatorCase c = ParseCase(text, target_).value();
    const kernels::Operator* op = kernels::FindOperator(c).value();
    const auto all = op->schedules(c, target_).value();
    ASSERT_FALSE(all.empty());
    // Some tens of them, among them the first.
    for (size_t i = 0; i < all.size(); i += all.size() / 40 + 1) {
      kernels::OperatorCase one = c;
      one.schedule = all[i].choice;
      const absl::StatusOr<mapping::Estimate> estimate = op->estimate(one, target_);
      ASSERT_TRUE(estimate.ok()) << estimate.status();
      EXPECT_NEAR(estimate->cost.cycles(), all[i].cycles, 1e-9 * all[i].cycles)
          << kernels::ChoiceText(all[i].choice);
      double decides = 0;
      for (const mapping::CostParts::Share& share : estimate->cost.Shares()) {
        decides += share.decides;
      }
      EXPECT_NEAR(decides, all[i].cycles, 1e-9 * all[i].cycles);
      EXPECT_GT(estimate->needs.nmem, 0);
      EXPECT_LE(estimate->needs.nmem, machine_.nmem_bytes());
      EXPECT_LE(estimate->needs.wmem, machine_.wmem_bytes());
      EXPECT_LE(estimate->needs.smem, machine_.smem_bytes());
    }
  }
}

TEST_P(ExplainTest, ExplainsAll) {
  for (const CaseText& text : Texts()) {
    SCOPED_TRACE(StrCat(text.op, " ", text.shape));
    const kernels::OperatorCase c = ParseCase(text, target_).value();
    const TakenSchedule taken = TakeSchedule(c, target_).value();
    const absl::StatusOr<Explanation> e = Explain(taken, target_);
    ASSERT_TRUE(e.ok()) << e.status();
    const std::string printed = e->ToText();
    EXPECT_THAT(printed, HasSubstr("\n  " + kernels::ChoiceText(taken.operator_case.schedule)));
    EXPECT_FALSE(e->others.empty());
    for (const Explanation::Other& other : e->others) {
      EXPECT_FALSE(other.what.empty());
      EXPECT_FALSE(other.why.empty()) << other.what;
      EXPECT_NE(other.choice, taken.operator_case.schedule);
    }
    EXPECT_EQ(e->ToJson()["modelled_cycles"], e->estimate.cost.cycles());
  }
}

// A memory that is too small is named, with what is needed and what there is.
TEST_P(ExplainTest, SaysWhatDoesNotFit) {
  machine_.Set("core.nmem_kib", 32);
  CaseText text = {.op = "conv2d",
                   .shape = "56x56x64,64x3x3x64",
                   .dtype = GetParam().type,
                   .schedule = {"rows=14 columns=56"}};
  EXPECT_THAT(std::string(ParseCase(text, target_).status().message()),
              ::testing::ContainsRegex(
                  "^--schedule: .* no schedule that fits has columns=56 rows=14: nmem: [0-9]+ "
                  "bytes of 32768 with "));
  text.schedule = {"rows=14", "across=7"};
  EXPECT_THAT(std::string(ParseCase(text, target_).status().message()),
              HasSubstr("across=7: expected 1"));
  text.schedule = {"frob=14"};
  EXPECT_THAT(std::string(ParseCase(text, target_).status().message()),
              HasSubstr("there is no frob, expected across, "));
  text = {.op = "max_pool2d", .shape = "56x56x64", .dtype = "f16", .schedule = {"tile0=7"}};
  text.schedule[0] += " tile1=28 tile2=64";
  EXPECT_THAT(std::string(ParseCase(text, target_).status().message()),
              ::testing::ContainsRegex("bytes of 32768 with across=1 .*tile0=7 tile1=28 tile2=64"));
}

// The schedule that is run, where the cost model's first is refused for its scalar code; LoadFunctions shows it, too.
TEST(TakeScheduleTest, OneThatLeavesScalarCodeIsReplaced) {
  const isa::Machine machine =
      LoadMachine("mlu370", {"card.clusters=2", "cluster.cores=2", "core.nmem_kib=64",
                             "core.wmem_kib=256", "cluster.smem_kib=32"})
          .value();
  const Target target = MakeTarget("diannao", &machine).value();
  const CaseText text = {.op = "conv2d",
                         .shape = "1x1x320,89x2x1x320",
                         .dtype = "i8",
                         .attributes = {"dilation=2", "pad=5"},
                         .schedule = {"depth=0"}};  // of the tilings
  const TakenSchedule taken = TakeSchedule(ParseCase(text, target).value(), target).value();
  ASSERT_FALSE(taken.refused.empty());
  EXPECT_NE(taken.refused, taken.operator_case.schedule);
  const kernels::Operator* op = kernels::FindOperator(taken.operator_case).value();
  const ir::Module shown = LoadFunctions(text, target).value();
  EXPECT_TRUE(
      ir::StructurallyEqual(shown.functions[0], op->build(taken.operator_case, target).value()));
  EXPECT_THAT(Explain(taken, target)->ToText(), HasSubstr("in place of one that leaves scalar"));
}

TEST(ExplainErrorsTest, OtherTargetsAndNothingToCompute) {
  const Target cpu = MakeTarget("cpu", nullptr).value();
  const TakenSchedule on_cpu =
      TakeSchedule(ParseCase({.op = "add", .shape = "4"}, cpu).value(), cpu).value();
  EXPECT_THAT(std::string(Explain(on_cpu, cpu).status().message()),
              HasSubstr("expected --target=diannao, found --target=cpu"));
  const isa::Machine machine = LoadMachine("mlu270", {}).value();
  const Target target = MakeTarget("diannao", &machine).value();
  const TakenSchedule none =
      TakeSchedule(ParseCase({.op = "relu", .shape = "0"}, target).value(), target).value();
  EXPECT_TRUE(Explain(none, target).ok());
}

}  // namespace
}  // namespace polynao::cases
