// The kernels of PolyBench mapped to blocks, threads, shared memory and registers, run by the shim, compute the bits
// that the interpreter computes.
#include <cstdint>
#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/codegen/cuda/run_cuda.h"
#include "compiler/ir/agreement.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/gpu/gpu.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "gtest/gtest.h"
#include "kernels/polybench/polybench.h"

namespace polynao::kernels {
namespace {

constexpr size_t kGroups = 4;  // each compiled as one file

class PolyBenchGpuTest : public testing::TestWithParam<size_t> {};

// With blocks and tiles so small that small sizes have whole ones and parts.
poly::GpuOptions SmallBlocks() {
  poly::GpuOptions options;
  options.block = {{{6}, {4, 3}, {3, 2, 2}}};
  options.serial_tile = 4;
  options.serial_tiles = 2;
  return options;
}

TEST_P(PolyBenchGpuTest, KeepsTheMeaning) {
  std::vector<const PolyBenchKernel*> kernels;
  std::vector<ir::Function> before, lowered;
  std::vector<std::string> reports;
  const Target target{.name = "cuda"};
  // The arguments have the shapes of the function as it was.
  PipelineOptions passes;
  passes.skip = {"flatten"};
  for (size_t k = GetParam(); k < PolyBenchKernels().size(); k += kGroups) {
    const PolyBenchKernel& kernel = PolyBenchKernels()[k];
    kernels.push_back(&kernel);
    before.push_back(*PolyBenchFunction(kernel));
    ir::Function function = before.back();
    const auto report = poly::ScheduleForGpu(function, SmallBlocks());
    ASSERT_TRUE(report.ok()) << report.status();
    reports.push_back(report->ToString());
    EXPECT_TRUE(report->changed) << reports.back();
    ASSERT_EQ(RunPasses(function, *PipelineFor(target), target, passes), absl::OkStatus());
    lowered.push_back(function);
  }
  const auto compiled = codegen::ShimmedCuda::Create(lowered);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  uint64_t run = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    const size_t count = kernels[i]->parameters.size();
    for (const int64_t size : {1, 2, 5, 8, 13}) {
      std::vector<int64_t> sizes;
      for (size_t p = 0; p < count; ++p) sizes.push_back(size + 2 * (count - 1 - p));
      SCOPED_TRACE(StrCat(kernels[i]->name, " ", testing::PrintToString(sizes)));
      const ir::RandomArguments expected =
          *PolyBenchArguments(*kernels[i], before[i], sizes, /*seed=*/1);
      const ir::RandomArguments actual(expected);
      ASSERT_EQ(ir::Interpret(before[i], expected.arguments()), absl::OkStatus());
      // Threads by number, backwards, in an order of their own.
      ASSERT_EQ((*compiled)->Run(i, actual.arguments(), run++ % 3), absl::OkStatus());
      EXPECT_EQ(ir::FindDisagreement(before[i], actual, expected, /*tolerance=*/0), "")
          << reports[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, PolyBenchGpuTest, testing::Range(size_t{0}, kGroups));

}  // namespace
}  // namespace polynao::kernels
