#include "compiler/target/target.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;

TEST(TargetTest, NamesAreFoundAndDiffer) {
  std::set<std::string_view> names;
  for (const TargetFacts& facts : Targets()) {
    EXPECT_TRUE(names.insert(facts.name).second) << facts.name;
    EXPECT_EQ(FindTarget(facts.name), &facts);
    EXPECT_EQ(&Target{.name = std::string(facts.name)}.facts(), &facts);
    EXPECT_NE(facts.doc, "") << facts.name;
    EXPECT_GE(facts.motion.threshold, 1) << facts.name;
    EXPECT_EQ(facts.instructions != nullptr, facts.kind == TargetKind::kCard) << facts.name;
    EXPECT_EQ(IsCard(facts.name) + IsProcessor(facts.name) + IsGpu(facts.name) +
                  IsInterpreter(facts.name),
              1)
        << facts.name;
  }
  EXPECT_EQ(FindTarget("tpu"), nullptr);
  EXPECT_FALSE(IsCard("tpu"));
}

TEST(TargetTest, OnlyAcceleratorsHaveAMachine) {
  const isa::Machine machine;
  for (const TargetFacts& facts : Targets()) {
    const absl::StatusOr<Target> target = MakeTarget(facts.name, &machine);
    ASSERT_TRUE(target.ok()) << target.status();
    const bool is_card = IsCard(facts.name);
    EXPECT_EQ(target->machine, is_card ? &machine : nullptr) << facts.name;
    EXPECT_EQ(target->instructions, is_card ? &isa::DianNao() : nullptr) << facts.name;
  }
  EXPECT_THAT(MakeTarget("tpu", &machine).status().message(),
              HasSubstr("no target is named 'tpu'; there are: "));
}

}  // namespace
}  // namespace polynao
