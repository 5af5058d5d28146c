// SearchSchedule against a search of its own: every schedule that it may try is simulated here too.
#include <algorithm>
#include <limits>
#include <set>

#include "cases/build.h"
#include "cases/machines.h"
#include "cases/run_case.h"
#include "compiler/target/target.h"
#include "gtest/gtest.h"
#include "kernels/operators.h"

namespace polynao::cases {
namespace {

class SearchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    machine_ = LoadMachine("mlu270", {}).value();
    target_ = MakeTarget("diannao", &machine_).value();
  }

  kernels::OperatorCase Case(const CaseText& text) { return ParseCase(text, target_).value(); }

  int64_t Cycles(const kernels::OperatorCase& c) {
    CaseSettings settings;
    settings.check_values = false;
    return RunCase(c, settings).value().simulated->cycles;
  }

  isa::Machine machine_;
  Target target_;
};

TEST_F(SearchTest, FindsTheFastestOfAll) {
  for (const CaseText& text : {CaseText{.op = "relu", .shape = "300", .dtype = "f16"},
                               CaseText{.op = "max_pool2d", .shape = "5x5x64", .dtype = "f16"},
                               CaseText{.op = "add", .shape = "1500", .dtype = "f16"}}) {
    SCOPED_TRACE(text.op);
    const kernels::OperatorCase c = Case(text);
    const auto all = kernels::FindOperator(c).value()->schedules(c, target_).value();
    ASSERT_GT(all.size(), 1u);
    int64_t fewest = std::numeric_limits<int64_t>::max();
    for (const kernels::RankedSchedule& schedule : all) {
      kernels::OperatorCase trial = c;
      trial.schedule = schedule.choice;
      fewest = std::min(fewest, Cycles(trial));
    }
    const kernels::OperatorCase found = SearchSchedule(c, target_, 1000).value();
    EXPECT_EQ(Cycles(found), fewest);
    EXPECT_LE(fewest, Cycles(c)) << "without a search";
  }
}

// Cycles alone are those of a run with values, also of hand-written kernels, whose image the host gives margins.
TEST_F(SearchTest, CyclesAloneAreThoseOfARunWithValues) {
  const kernels::OperatorCase c =
      Case({.op = "conv2d", .shape = "20x20x64,96x3x3x64", .dtype = "i8"});
  for (const char* impl : {"compiled", "library", "expert"}) {
    CaseSettings settings;
    settings.impl = impl, settings.check_values = false;
    const int64_t cycles = RunCase(c, settings).value().simulated->cycles;
    settings.timing_only = true;
    const absl::StatusOr<CaseReport> alone = RunCase(c, settings);
    ASSERT_TRUE(alone.ok()) << impl << ": " << alone.status();
    EXPECT_EQ(alone->simulated->cycles, cycles) << impl;
  }
}

// More trials never end with a slower program.
TEST_F(SearchTest, MoreTrialsAreNoWorse) {
  const kernels::OperatorCase c =
      Case({.op = "conv2d", .shape = "14x14x64,64x3x3x64", .dtype = "i8", .untuned = true});
  int64_t last = Cycles(c);
  for (const int count : {1, 2, 4, 8}) {
    const int64_t cycles = Cycles(SearchSchedule(c, target_, count).value());
    EXPECT_LE(cycles, last) << count;
    last = cycles;
  }
}

// A choice that left something out would be simulated several times, and never the other schedules of that name.
TEST_F(SearchTest, EachScheduleHasItsOwnChoice) {
  for (const CaseText& text :
       {CaseText{.op = "conv2d", .shape = "14x14x64,64x3x3x64", .dtype = "i8"},
        CaseText{.op = "conv2d", .shape = "9x8x64,64x3x3x64", .dtype = "i16"},
        CaseText{.op = "conv2d",
                 .shape = "14x14x64,64x3x3x16",
                 .dtype = "i8",
                 .attributes = {"groups=4"}},
        CaseText{.op = "conv2d",
                 .shape = "14x14x64,64x3x3x1",
                 .dtype = "i8",
                 .attributes = {"groups=64"}},
        CaseText{.op = "conv2d_bn", .shape = "56x56x64,64x1x1x64", .dtype = "i8"},
        CaseText{.op = "conv2d_pair", .shape = "28x28x64,32x1x1x64,32x3x3x32", .dtype = "i8"},
        CaseText{.op = "conv2d_batch_norm", .shape = "28x28x64,64x1x1x64", .dtype = "i8"},
        CaseText{.op = "matmul", .shape = "100x70,90x70", .dtype = "i8"},
        CaseText{.op = "max_pool2d", .shape = "28x28x64", .dtype = "f16"},
        CaseText{.op = "add", .shape = "63x65,65", .dtype = "f16"},
        CaseText{.op = "avg_pool2d", .shape = "28x28x64", .dtype = "f16"},
        CaseText{.op = "reduce_sum", .shape = "70x65", .dtype = "f32"}}) {
    const kernels::OperatorCase c = Case(text);
    const auto all = kernels::FindOperator(c).value()->schedules(c, target_).value();
    EXPECT_GT(all.size(), 1u) << text.op;
    std::set<kernels::ScheduleChoice> choices;
    for (const kernels::RankedSchedule& schedule : all) {
      EXPECT_TRUE(choices.insert(schedule.choice).second)
          << text.op << " " << text.shape << ": " << kernels::ChoiceText(schedule.choice);
    }
  }
}

TEST_F(SearchTest, ChoicesOfTheUserStay) {
  kernels::OperatorCase c = Case({.op = "add", .shape = "3000", .dtype = "f16"});
  c.schedule = {{"clusters", 2}};
  const kernels::OperatorCase found = SearchSchedule(c, target_, 3).value();
  EXPECT_EQ(found.schedule.at("clusters"), 2);
  EXPECT_GT(found.schedule.size(), 1u);
}

TEST_F(SearchTest, NothingToCompute) {
  const kernels::OperatorCase none = Case({.op = "relu", .shape = "0", .dtype = "f16"});
  EXPECT_EQ(Cycles(SearchSchedule(none, target_, 4).value()), Cycles(none));
  const kernels::OperatorCase c = Case({.op = "relu", .shape = "5", .dtype = "f16"});
  EXPECT_TRUE(SearchSchedule(c, target_, 0).value().schedule.empty()) << "no search";
}

}  // namespace
}  // namespace polynao::cases
