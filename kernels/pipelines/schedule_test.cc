// Every pipeline under the schedulers for CPUs and GPUs stores what its reference does.
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "base/text.h"
#include "compiler/codegen/cuda/run_cuda.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/verify.h"
#include "compiler/passes/registry.h"
#include "compiler/poly/gpu.h"
#include "compiler/poly/machine_for_test.h"
#include "compiler/poly/poly.h"
#include "compiler/target/target.h"
#include "gtest/gtest.h"
#include "kernels/pipelines/case_for_test.h"
#include "kernels/pipelines/pipelines.h"

namespace polynao::kernels {
namespace {

// Of a few tiles of 8 x 8, which do not divide it.
PipelineCase CaseOf(const std::string& pipeline) {
  return MakePipelineCase(*FindPipeline(pipeline), 14, 21);
}

using Parameter = std::tuple<std::string, std::string>;  // strategy, pipeline
class PipelineStrategyTest : public testing::TestWithParam<Parameter> {};

TEST_P(PipelineStrategyTest, Agrees) {
  const auto& [strategy, pipeline] = GetParam();
  const PipelineCase c = CaseOf(pipeline);
  ir::Function function = c.function;
  poly::ScheduleOptions options;
  options.strategy = strategy;
  options.tile = {{8}};
  options.machine = poly::SmallMachine();
  const auto report = poly::Schedule(function, options);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_TRUE(report->internal_errors.empty()) << report->internal_errors[0];
  EXPECT_TRUE(report->changed) << report->ToString();
  ASSERT_EQ(ir::Verify(function), absl::OkStatus());
  const ir::RandomArguments actual(c.arguments);
  const auto compiled = codegen::Compile(function);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ASSERT_EQ((*compiled)->Run(actual.arguments()), absl::OkStatus());
  EXPECT_EQ(c.Disagreement(actual), "") << report->ToString();
}

// isl's scheduler takes minutes for smart on the camera's 24 stages, and auto asks for that too. The local Laplacian has 82
// stages: more than auto on the CPU takes long, and runs where POLYNAO_RANDOM_CASES asks for more.
bool IsAffordable(const std::string& strategy, const std::string& pipeline) {
  if (pipeline == "camera_pipe") return strategy == "min";
  if (pipeline == "local_laplacian") {
    return strategy == "auto" || std::getenv("POLYNAO_RANDOM_CASES") != nullptr;
  }
  return strategy != "min";
}

std::vector<Parameter> AffordableStrategies() {
  std::vector<Parameter> result;
  for (const std::string& pipeline : PipelineNames()) {
    for (const char* strategy : {"min", "smart", "auto"}) {
      if (IsAffordable(strategy, pipeline)) result.emplace_back(strategy, pipeline);
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(All, PipelineStrategyTest, testing::ValuesIn(AffordableStrategies()),
                         [](const auto& info) {
                           return StrCat(std::get<0>(info.param), "_", std::get<1>(info.param));
                         });

class PipelineGpuTest : public testing::TestWithParam<std::string> {};

// By blocks and threads, which the shim runs.
TEST_P(PipelineGpuTest, Agrees) {
  if (!IsAffordable("smart", GetParam())) {
    GTEST_SKIP() << "isl's scheduler takes long for so many stages";
  }
  const PipelineCase c = CaseOf(GetParam());
  const Target target{.name = "cuda"};
  PipelineOptions passes;
  passes.skip = {"flatten"};  // the arguments have the shapes of the function as it was
  ir::Function function = c.function;
  const auto report = poly::ScheduleForGpu(function);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->changed) << report->ToString();
  ASSERT_EQ(RunPasses(function, *PipelineFor(target), target, passes), absl::OkStatus());
  const auto compiled = codegen::ShimmedCuda::Create({function}, 0);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const ir::RandomArguments actual(c.arguments);
  ASSERT_EQ((*compiled)->Run(0, actual.arguments(), 0), absl::OkStatus());
  EXPECT_EQ(c.Disagreement(actual), "") << report->ToString();
}

INSTANTIATE_TEST_SUITE_P(All, PipelineGpuTest, testing::ValuesIn(PipelineNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace polynao::kernels
