// The steps compute the product, on whole cards and small ones, and say what they need.

#include "kernels/ladder/ladder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "compiler/ir/random_tensor.h"
#include "compiler/ir/tensor.h"
#include "simulator/simulator.h"
#include "testing/machine.h"

namespace polynao::kernels {
namespace {

using ::testing::HasSubstr;

Target Card(const isa::Machine& machine) {
  return {.name = "diannao", .instructions = &isa::DianNao(), .machine = &machine};
}

// A B^T, scaled, in plain loops.
ir::Tensor Product(const ir::Tensor& a, const ir::Tensor& b, float scale) {
  const int64_t columns = b.shape[0], side = a.shape[1];
  ir::Tensor c(ir::Type::kF16, {a.shape[0], columns});
  for (int64_t i = 0; i < a.shape[0]; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      int32_t sum = 0;
      for (int64_t k = 0; k < side; ++k) {
        sum += static_cast<int8_t>(a.bytes[static_cast<size_t>(i * side + k)]) *
               static_cast<int8_t>(b.bytes[static_cast<size_t>(j * side + k)]);
      }
      c.SetValue(i * columns + j, static_cast<double>(static_cast<float>(sum) * scale));
    }
  }
  return c;
}

class LadderTest : public testing::TestWithParam<std::string> {};

// Two rounds on each core of cards of one and of several clusters.
TEST_P(LadderTest, ComputesTheProduct) {
  for (const auto& [clusters, cores] : {std::pair{1, 1}, {1, 2}, {2, 4}}) {
    // Rows of C are part of longer ones.
    const int64_t beyond = 64 * cores;
    const isa::Machine machine = TestMachine("mlu270", {"card.clusters=" + std::to_string(clusters),
                                                        "cluster.cores=" + std::to_string(cores)});
    const int64_t columns = 2 * kLadderSide * clusters * cores;
    ir::Tensor a = ir::RandomTensor(ir::Type::kI8, {kLadderSide, kLadderSide}, 1);
    ir::Tensor b = ir::RandomTensor(ir::Type::kI8, {columns, kLadderSide}, 2);
    ir::Tensor c(ir::Type::kF16, {kLadderSide, columns + beyond});
    const float scale = 1.0F / 256;
    const auto program = LadderProgram(GetParam(), Card(machine));
    ASSERT_TRUE(program.ok()) << program.status();
    simulator::RunOptions options;
    options.machine = &machine;
    const auto result = simulator::Run(
        isa::DianNao(), *program,
        {simulator::Argument::Of(&a), simulator::Argument::Of(&b), simulator::Argument::Of(&c),
         simulator::Argument::Scalar(columns), simulator::Argument::Scalar(columns + beyond),
         simulator::Argument::Scalar(std::bit_cast<int32_t>(scale))},
        options);
    ASSERT_TRUE(result.ok()) << result.status();
    const ir::Tensor product = Product(a, b, scale);
    for (int64_t i = 0; i < kLadderSide; ++i) {
      for (int64_t j = 0; j < columns + beyond; ++j) {
        const double expected = j < columns ? product.Value(i * columns + j) : 0;
        ASSERT_EQ(c.Value(i * (columns + beyond) + j), expected)
            << clusters << " x " << cores << ": " << i << ", " << j;
      }
    }
    EXPECT_EQ(result->gmem_written, 2 * kLadderSide * columns);
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, LadderTest, testing::Values("3", "4_1", "5", "6"),
                         [](const auto& info) { return "Step" + info.param; });

TEST(LadderErrorsTest, NoSuchStepAndTooLittleMemory) {
  const isa::Machine machine = TestMachine("mlu270");
  EXPECT_THAT(LadderProgram("4", Card(machine)).status().message(),
              HasSubstr("has steps 3, 4_1, 5 and 6, not '4'"));
  const isa::Machine small = TestMachine("mlu270", {"core.nmem_kib=256"});
  EXPECT_THAT(LadderProgram("3", Card(small)).status().message(),
              HasSubstr("needs 458752 bytes of NMEM: machine mlu270 has 262144"));
  const isa::Machine few = TestMachine("mlu270", {"cluster.smem_kib=256"});
  EXPECT_TRUE(LadderProgram("5", Card(few)).ok());
  EXPECT_THAT(LadderProgram("6", Card(few)).status().message(), HasSubstr("524288 bytes of SMEM"));
}

}  // namespace
}  // namespace polynao::kernels
