#include "compiler/passes/instruction_layout.h"

#include "gtest/gtest.h"
#include "isa/instruction_set.h"

namespace polynao {
namespace {

std::optional<InstructionFamily> Find(std::string_view name) {
  return FindInstructionFamily(isa::DianNao(), name);
}

TEST(InstructionLayout, ConvolutionsReduceWithWeightsInBanks) {
  for (const char* name : {"conv", "conv_acc", "matmul", "matmul_acc"}) {
    const std::optional<InstructionFamily> family = Find(name);
    ASSERT_TRUE(family) << name;
    EXPECT_TRUE(family->reduces) << name;
    EXPECT_FALSE(family->copies) << name;
    ASSERT_FALSE(family->weights.empty()) << name;
    for (const WeightLayout& weights : family->weights) {
      EXPECT_EQ(weights.lanes, 64) << name;
      // pitch * sizeof(T) % 64 == 0
      EXPECT_EQ(weights.multiple * ir::ByteSize(weights.type), 64) << name;
    }
  }
}

TEST(InstructionLayout, ReductionsHaveNoWeights) {
  const std::optional<InstructionFamily> family = Find("reduce_sum");
  ASSERT_TRUE(family);
  EXPECT_TRUE(family->reduces);
  EXPECT_TRUE(family->weights.empty());
}

TEST(InstructionLayout, CopiesStoreWhatTheyLoad) {
  EXPECT_TRUE(Find("memcpy")->copies);
  EXPECT_TRUE(Find("memcpy3d")->copies);
  EXPECT_FALSE(Find("fill")->copies);
  EXPECT_FALSE(Find("add")->copies);
  EXPECT_FALSE(Find("add")->reduces);
}

TEST(InstructionLayout, OnlyQueuedInstructionsMakeAFamily) {
  EXPECT_FALSE(Find("jump"));
  EXPECT_FALSE(Find("barrier"));
  EXPECT_FALSE(Find("no_such_row"));
}

}  // namespace
}  // namespace polynao
