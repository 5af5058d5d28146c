// The kernels of PolyBench under every strategy of the scheduler compute what they compute without it.
#include <string>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "compiler/ir/agreement.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/verify.h"
#include "compiler/poly/arrange/machine_for_test.h"
#include "compiler/poly/poly.h"
#include "gtest/gtest.h"
#include "kernels/polybench/polybench.h"

namespace polynao::kernels {
namespace {

using Parameter = std::tuple<std::string, std::string>;  // strategy, kernel
class PolyBenchScheduleTest : public testing::TestWithParam<Parameter> {};

absl::Status Interpret(const ir::Function& function, const ir::RandomArguments& arguments) {
  return ir::Interpret(function, arguments.arguments());
}

// With tiles of 4, or those that fit into a tiny cache, so that small sizes have whole tiles and parts of tiles.
TEST_P(PolyBenchScheduleTest, KeepsTheMeaning) {
  const auto& [strategy, name] = GetParam();
  const PolyBenchKernel& kernel = **FindPolyBenchKernel(name);
  const ir::Function before = *PolyBenchFunction(kernel);
  ir::Function after = before;
  poly::ScheduleOptions options;
  options.strategy = strategy;
  options.tile = {{4}};
  options.machine = poly::SmallMachine();
  const absl::StatusOr<poly::ScheduleReport> report = poly::Schedule(after, options);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_TRUE(report->internal_errors.empty()) << report->internal_errors[0];
  ASSERT_EQ(ir::Verify(after), absl::OkStatus());
  std::vector<int64_t> all_sizes = {1, 2, 5, 11};
  if (strategy == "auto") all_sizes.push_back(18);
  for (const int64_t size : all_sizes) {
    std::vector<int64_t> sizes;
    const size_t count = kernel.parameters.size();
    for (size_t i = 0; i < count; ++i) sizes.push_back(size + 2 * (count - 1 - i));
    SCOPED_TRACE(testing::PrintToString(sizes));
    const ir::RandomArguments expected = *PolyBenchArguments(kernel, before, sizes, /*seed=*/1);
    const ir::RandomArguments actual(expected);
    ASSERT_EQ(Interpret(before, expected), absl::OkStatus());
    ASSERT_EQ(Interpret(after, actual), absl::OkStatus()) << report->ToString();
    EXPECT_EQ(ir::FindDisagreement(before, actual, expected, /*tolerance=*/0), "")
        << report->ToString();
  }
}

std::vector<std::string> KernelNames() {
  std::vector<std::string> names;
  for (const PolyBenchKernel& kernel : PolyBenchKernels()) names.emplace_back(kernel.name);
  return names;
}

std::string TestName(const testing::TestParamInfo<Parameter>& info) {
  std::string name = StrCat(std::get<0>(info.param), "_", std::get<1>(info.param));
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, PolyBenchScheduleTest,
                         testing::Combine(testing::Values("original", "min", "smart", "max",
                                                          "auto"),
                                          testing::ValuesIn(KernelNames())),
                         TestName);

}  // namespace
}  // namespace polynao::kernels
