#include "kernels/te/tuned.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::kernels {
namespace {

isa::Machine Machine() {
  isa::Machine machine;
  machine.name = "mlu270";
  machine.parameters = {{"core.nmem_kib", 512}, {"card.clusters", 4}};
  return machine;
}

const OperatorCase kCase = {.op = "add", .shape = {255, 27, 27}};

TEST(TunedTest, ALineIsFoundAgain) {
  const ScheduleChoice choice = {{"rotate", 1}, {"tile", 5824}};
  const std::string text = "# comment\n" + TuningLine(kCase, Machine(), choice) + "\n";
  EXPECT_EQ(FindTuned(text, kCase, Machine()), choice);
  EXPECT_EQ(FindTuned("", kCase, Machine()), std::nullopt);
}

TEST(TunedTest, AnotherCaseOrMachineIsNotFound) {
  const std::string text = TuningLine(kCase, Machine(), {{"tile", 64}});
  OperatorCase other = kCase;
  other.shape = {255, 27, 2};
  EXPECT_EQ(FindTuned(text, other, Machine()), std::nullopt);
  other = kCase;
  other.dtype = ir::Type::kF32;
  EXPECT_EQ(FindTuned(text, other, Machine()), std::nullopt);
  other = kCase;
  other.attributes = {{"stride", "2"}};
  EXPECT_EQ(FindTuned(text, other, Machine()), std::nullopt);
  isa::Machine machine = Machine();
  machine.parameters["core.nmem_kib"] = 256;
  EXPECT_EQ(FindTuned(text, kCase, machine), std::nullopt);
}

TEST(TunedTest, WhatTheCaseAsksForComesFirst) {
  OperatorCase c = kCase;
  c.schedule = {{"tile", 128}};
  EXPECT_EQ(WantedSchedule(c, Machine()), c.schedule);
}

}  // namespace
}  // namespace polynao::kernels
