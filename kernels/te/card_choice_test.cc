#include "kernels/te/card_choice.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

isa::Machine Machine(int64_t clusters) {
  isa::Machine machine;
  machine.name = "test";
  machine.Set("card.clusters", clusters);
  return machine;
}

// An operator whose model finds `cycles[n]` for n clusters, and a schedule of twice as many; no schedule if there is no
// such n. It builds a function named by what it was asked for.
Operator Fake(std::map<int64_t, double> cycles) {
  Operator op;
  op.name = "fake";
  op.schedules = [cycles](const OperatorCase& c,
                          const Target& target) -> absl::StatusOr<std::vector<RankedSchedule>> {
    const auto it = cycles.find(target.machine->clusters());
    if (it == cycles.end()) return absl::ResourceExhaustedError("too small");
    std::vector<RankedSchedule> all;
    for (const RankedSchedule& schedule :
         {RankedSchedule{{{"tile", 1}}, it->second}, {{{"tile", 2}}, 2 * it->second}}) {
      if (Agrees(schedule.choice, c.schedule)) all.push_back(schedule);
    }
    return all;
  };
  op.build = [](const OperatorCase& c, const Target& target) -> absl::StatusOr<ir::Function> {
    return absl::UnknownError(target.machine == nullptr
                                  ? "plain"
                                  : "clusters=" + std::to_string(target.machine->clusters()) + " " +
                                        ChoiceText(c.schedule));
  };
  ChooseOnCard(op);
  return op;
}

std::string Built(const Operator& op, const ScheduleChoice& schedule = {}) {
  const isa::Machine machine = Machine(4);
  const Target target = {.name = "diannao", .machine = &machine};
  const OperatorCase c = {.op = "fake", .schedule = schedule};
  return std::string(op.build(c, target).status().message());
}

TEST(ChooseOnCard, TheCheapestCountOfClusters) {
  EXPECT_EQ(Built(Fake({{4, 100}, {2, 99}, {1, 120}})), "clusters=2 tile=1");
  EXPECT_EQ(Built(Fake({{4, 100}, {2, 100}, {1, 100}})), "clusters=4 tile=1") << "of equals";
  EXPECT_EQ(Built(Fake({{2, 100}, {1, 101}})), "clusters=2 tile=1") << "the others do not fit";
  EXPECT_EQ(Built(Fake({})), "too small");
}

TEST(ChooseOnCard, WhatTheCaseNames) {
  const Operator op = Fake({{4, 100}, {2, 99}, {1, 120}});
  EXPECT_EQ(Built(op, {{"clusters", 1}}), "clusters=1 tile=1");
  EXPECT_EQ(Built(op, {{"clusters", 4}, {"tile", 2}}), "clusters=4 tile=2");
  EXPECT_EQ(Built(op, {{"tile", 2}}), "clusters=2 tile=2");
  EXPECT_THAT(Built(op, {{"clusters", 5}}), HasSubstr("expected one of 4, 3, 2, 1"));
}

TEST(ChooseOnCard, ListsAreMergedByTheirHeads) {
  const isa::Machine machine = Machine(4);
  const Target target = {.name = "diannao", .machine = &machine};
  std::vector<double> cycles;
  std::vector<int64_t> clusters;
  const Operator op = Fake({{4, 100}, {2, 90}, {1, 250}});
  const absl::StatusOr<std::vector<RankedSchedule>> ranked = op.schedules({.op = "fake"}, target);
  ASSERT_TRUE(ranked.ok()) << ranked.status();
  for (const RankedSchedule& schedule : *ranked) {
    cycles.push_back(schedule.cycles);
    clusters.push_back(schedule.choice.at("clusters"));
  }
  EXPECT_THAT(cycles, ElementsAre(90, 100, 180, 200, 250, 500));
  EXPECT_THAT(clusters, ElementsAre(2, 4, 2, 4, 1, 1));
}

TEST(ChooseOnCard, OtherTargetsHaveNoChoice) {
  EXPECT_EQ(Fake({}).build({.op = "fake"}, {.name = "cpu"}).status().message(), "plain");
}

}  // namespace
}  // namespace polynao::kernels
