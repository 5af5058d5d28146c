#include "simulator/simulator.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/testing.h"

namespace polynao::simulator {
namespace {

TEST(Simulator, AddsOnAllCores) {
  const isa::Machine machine = TestMachine("mlu270");
  const isa::Program program = StreamingAdd(4096);
  for (int64_t n : {1, 63, 64, 4096, 4097, 1000003}) {
    ir::Tensor x = ir::RandomTensor(ir::Type::kF16, {n}, 1);
    ir::Tensor y = ir::RandomTensor(ir::Type::kF16, {n}, 2);
    ir::Tensor out(ir::Type::kF16, {n});
    const auto result =
        RunProgram(machine, program,
                   {Argument::Of(&x), Argument::Of(&y), Argument::Of(&out), Argument::Scalar(n)});
    ASSERT_TRUE(result.ok()) << result.status();
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(out.Value(i), x.Value(i) + y.Value(i)) << i;
    }
    EXPECT_EQ(result->gmem_read, 4 * n);
    EXPECT_EQ(result->gmem_written, 2 * n);
    for (const auto& [name, value] : result->Rows()) std::cerr << name << "=" << value << " ";
    std::cerr << "\n";
  }
}

}  // namespace
}  // namespace polynao::simulator
