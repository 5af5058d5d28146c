#include "isa/processor/processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_arguments.h"

namespace polynao::isa {
namespace {

// Rows that nothing here can run: their form is that of the others, and they mean sums of products that wrap around.
TEST(ProcessorTest, TextOfOtherProcessors) {
  const std::string file = "isa/processor/arm.nir";
  const std::vector<ProcessorInstruction> rows = ReadProcessorRows(*ReadFile(file), file);
  std::vector<std::string> names;
  for (const ProcessorInstruction& row : rows) {
    names.push_back(row.name);
    EXPECT_TRUE(row.intrinsic.starts_with("llvm.aarch64.")) << row.name;
    const int64_t bits = row.lanes * row.group * 8 * ir::ByteSize(row.b->type);
    EXPECT_EQ(bits, row.feature == "sve" ? 256 : 128) << row.name;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const ir::RandomArguments given(row.meaning, seed), computed(given);
      ASSERT_TRUE(ir::Interpret(row.meaning, computed.arguments()).ok());
      const auto& sums = given.tensors()[0];
      const auto& a = given.tensors()[1];
      const auto& b = given.tensors()[2];
      for (int64_t lane = 0; lane < row.lanes; ++lane) {
        auto sum = static_cast<uint64_t>(sums.Int(lane));
        for (int64_t q = 0; q < row.group; ++q) {
          sum += static_cast<uint64_t>(a.Int(q) * b.Int(lane * row.group + q));
        }
        ir::Tensor expected(sums.type, {1});
        expected.SetInt(0, static_cast<int64_t>(sum));
        EXPECT_EQ(computed.tensors()[0].Int(lane), expected.Int(0)) << row.name << ", " << lane;
      }
    }
  }
  EXPECT_THAT(names, testing::ElementsAre("sdot.128", "udot.128", "usdot.128", "sdot.sve.256",
                                          "sdot.sve.256.words"));
}

}  // namespace
}  // namespace polynao::isa
