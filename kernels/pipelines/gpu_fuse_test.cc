// Every pipeline, fused for a GPU, stores what its reference does, bit for bit: in tiles of the model's choice and in
// published ones, with the threads of a block in three orders; and barriers are needed. nvcc compiles the kernels,
// where it is.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "compiler/codegen/c/c_compiler.h"
#include "compiler/codegen/cuda/emit_cuda.h"
#include "compiler/codegen/cuda/nvcc.h"
#include "compiler/codegen/cuda/run_cuda.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/poly/gpu/gpu.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/pipelines/case_for_test.h"
#include "kernels/pipelines/pipelines.h"

namespace polynao::kernels {
namespace {

// In tiles of the model's choice, and in published ones.
std::vector<poly::GpuOptions> OptionsOf(const Pipeline& pipeline) {
  poly::GpuOptions own{.strategy = "fuse"}, published{.strategy = "fuse"};
  const absl::string_view tile(pipeline.published_gpu_tile.data(),
                               pipeline.published_gpu_tile.size());
  for (absl::string_view size : absl::StrSplit(tile, 'x')) {
    EXPECT_TRUE(absl::SimpleAtoi(size, &published.group_tile.emplace_back()));
  }
  published.group_threads = 96;  // so that tiles take rounds
  return {own, published};
}

class PipelineGpuFuseTest : public testing::TestWithParam<std::string> {};

TEST_P(PipelineGpuFuseTest, Agrees) {
  const absl::Status found = codegen::FindCCompiler(false).status();
  if (!found.ok()) GTEST_SKIP() << "SKIPPED: " << found;
  const Pipeline& pipeline = *FindPipeline(GetParam());
  // Several of the published tiles, which do not divide it, and five levels of a pyramid that are not all border.
  const PipelineCase c = MakePipelineCase(pipeline, 37, 67);
  const Target target{.name = "cuda"};
  PipelineOptions passes;
  passes.skip = {"flatten"};  // the arguments have the shapes of the function as it was
  std::vector<ir::Function> functions;
  for (const poly::GpuOptions& options : OptionsOf(pipeline)) {
    ir::Function function = c.function;
    const auto report = poly::ScheduleForGpu(function, options);
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_TRUE(report->internal_errors.empty()) << report->internal_errors[0];
    EXPECT_THAT(report->ToString(), testing::HasSubstr(" in tiles of "));
    ASSERT_EQ(RunPasses(function, *PipelineFor(target), target, passes), absl::OkStatus());
    function.name += functions.empty() ? "_own" : "_published";
    functions.push_back(function);
  }
  const auto compiled = codegen::ShimmedCuda::Create(functions);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const auto disagreement = [&](size_t i, uint64_t order, std::optional<size_t> left_out) {
    const ir::RandomArguments actual(c.arguments);
    const absl::Status status = (*compiled)->Run(i, actual.arguments(), order, left_out);
    return status.ok() ? c.Disagreement(actual) : status.ToString();
  };
  // By number, backwards, drawn.
  const std::vector<uint64_t> orders = {0, 1, 12345};
  size_t barriers = 0, needed = 0;
  for (size_t i = 0; i < functions.size(); ++i) {
    for (const uint64_t order : orders) EXPECT_EQ(disagreement(i, order, {}), "") << i;
    for (size_t barrier = 0; i == 1 && barrier < (*compiled)->BarrierCount(i); ++barrier) {
      ++barriers;
      const bool is_needed = std::any_of(orders.begin(), orders.end(), [&](uint64_t order) {
        return !disagreement(i, order, barrier).empty();
      });
      if (!is_needed) std::printf("barrier %zu is not\n", barrier);
      needed += is_needed ? 1 : 0;
    }
  }
  std::printf("%zu of %zu barriers needed\n", needed, barriers);
  EXPECT_GT(barriers, 0);
  // The last levels of a pyramid are all border at this size: nothing reads what has been stored there.
  EXPECT_GE(needed * 3, barriers * 2);
}

// At the size that times are published for. Threads have registers for what they compute: next to nothing spills.
TEST_P(PipelineGpuFuseTest, NvccCompiles) {
  const absl::Status found = codegen::FindNvcc().status();
  if (!found.ok()) GTEST_SKIP() << "SKIPPED: " << found;
  const Pipeline& pipeline = *FindPipeline(GetParam());
  const Target target{.name = "cuda"};
  for (const poly::GpuOptions& options : OptionsOf(pipeline)) {
    ir::Function function =
        *PipelineFunction(pipeline, pipeline.default_rows, pipeline.default_cols);
    const auto report = poly::ScheduleForGpu(function, options);
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_EQ(RunPasses(function, *PipelineFor(target), target, {}), absl::OkStatus());
    const auto module = codegen::EmitCuda(function);
    ASSERT_TRUE(module.ok()) << module.status();
    const auto binary = codegen::CompileWithNvcc(module->source, {.arch = "sm_90"});
    ASSERT_TRUE(binary.ok()) << binary.status();
    EXPECT_EQ(binary->kernels.size(), module->functions[0].kernels.size());
    for (const codegen::CompiledKernel& kernel : binary->kernels) {
      EXPECT_LE(kernel.spill_bytes, 32) << kernel.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PipelineGpuFuseTest, testing::ValuesIn(PipelineNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace polynao::kernels
