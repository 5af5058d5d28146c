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
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/poly/arrange/machine_for_test.h"
#include "compiler/poly/gpu/gpu.h"
#include "compiler/poly/poly.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/pipelines/case_for_test.h"
#include "kernels/pipelines/pipelines.h"

namespace polynao::kernels {
namespace {

// Of a few tiles of 8 x 8, which do not divide it.
PipelineCase CaseOf(const std::string& pipeline) {
  return MakePipelineCase(*FindPipeline(pipeline), 14, 21);
}

// Whether isl schedules the pipeline as a whole in seconds. For smart on the camera's 24 stages it takes minutes, for
// the local Laplacian's 81 so long that this runs only where POLYNAO_RANDOM_CASES asks for more; auto asks for smart
// too.
bool IsAffordable(const std::string& pipeline) {
  if (pipeline == "local_laplacian") return std::getenv("POLYNAO_RANDOM_CASES") != nullptr;
  return pipeline != "camera_pipe";
}

// Schedules the case and compares it with its reference; the report of its first part.
poly::PartReport Agrees(const PipelineCase& c, const poly::ScheduleOptions& options) {
  ir::Function function = c.function;
  const auto report = poly::Schedule(function, options);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return {};
  EXPECT_TRUE(report->internal_errors.empty()) << report->ToString();
  EXPECT_TRUE(report->changed) << report->ToString();
  EXPECT_EQ(ir::Verify(function), absl::OkStatus());
  const ir::RandomArguments actual(c.arguments);
  const auto compiled = codegen::Compile(function);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  if (!compiled.ok()) return {};
  EXPECT_EQ((*compiled)->Run(actual.arguments()), absl::OkStatus());
  EXPECT_EQ(c.Disagreement(actual), "") << report->ToString();
  return report->parts.empty() ? poly::PartReport() : report->parts[0];
}

using Parameter = std::tuple<std::string, std::string>;  // strategy, pipeline
class PipelineStrategyTest : public testing::TestWithParam<Parameter> {};

TEST_P(PipelineStrategyTest, Agrees) {
  const auto& [strategy, pipeline] = GetParam();
  const PipelineCase c = CaseOf(pipeline);
  poly::ScheduleOptions options;
  options.strategy = strategy;
  options.tile = {{8}};
  options.machine = poly::SmallMachine();
  Agrees(c, options);
}

std::vector<Parameter> AffordableStrategies() {
  std::vector<Parameter> result;
  for (const std::string& pipeline : PipelineNames()) {
    if (!IsAffordable(pipeline)) {
      result.emplace_back("min", pipeline);
      continue;
    }
    for (const char* strategy : {"smart", "auto"}) result.emplace_back(strategy, pipeline);
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(All, PipelineStrategyTest, testing::ValuesIn(AffordableStrategies()),
                         [](const auto& info) {
                           return StrCat(std::get<0>(info.param), "_", std::get<1>(info.param));
                         });

// Tiles of a group's last array, from its last dimension on; none: the model's.
using FusedParameter = std::tuple<std::string, std::vector<int64_t>>;
class PipelineFuseTest : public testing::TestWithParam<FusedParameter> {};

// Fused, in tiles of one element, such that do not divide the image, and tiles longer than it.
TEST_P(PipelineFuseTest, Agrees) {
  const auto& [pipeline, tile] = GetParam();
  const PipelineCase c = CaseOf(pipeline);
  poly::ScheduleOptions options;
  options.strategy = "fuse";
  options.group_tile = tile;
  options.machine = poly::SmallMachine();
  options.count = true;
  const poly::PartReport report = Agrees(c, options);
  for (const poly::GroupReport& group : report.groups)
    EXPECT_TRUE(group.instances.has_value()) << group.name << group.not_counted;
}

std::vector<FusedParameter> FusedParameters() {
  std::vector<FusedParameter> result;
  for (const std::string& pipeline : PipelineNames()) {
    result.push_back({pipeline, {}});
    result.push_back({pipeline, {2, 5, 9}});
    // Of 81 stages the others take as long again.
    if (pipeline == "local_laplacian") continue;
    result.push_back({pipeline, {1, 1, 1}});
    result.push_back({pipeline, {0, 4, 1000}});
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(All, PipelineFuseTest, testing::ValuesIn(FusedParameters()),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param);
                           for (const int64_t size : std::get<1>(info.param))
                             StrAppend(&name, "_", size);
                           return name;
                         });

// Of 2048 x 2048 pixels, of which nothing runs: schedule and code.
std::string FusedText(const std::string& pipeline) {
  ir::Function function = PipelineFunction(*FindPipeline(pipeline), 2048, 2048).value();
  poly::ScheduleOptions options;
  options.strategy = "fuse";
  const auto report = poly::Schedule(function, options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? report->ToString() + ir::Print(function) : "";
}

// The nearest cache holds what a row needs of one colour, not of three.
TEST(PipelineRowsTest, PlanesAreTakenOneByOne) {
  EXPECT_THAT(FusedText("unsharp"), testing::HasSubstr("result in tiles of 1 x "));
}

// Both derivatives read the same three rows. The rows of their arrays, of 1026 elements, begin with a line.
TEST(PipelineRowsTest, RowsAreSharedAndBeginWithALine) {
  const std::string text = FusedText("harris");
  EXPECT_THAT(text, testing::HasSubstr("allocate Ix.tile: f32[i64(4), i64(1040)]"));
  EXPECT_THAT(text, testing::ContainsRegex("Iy.tile.* = .*\n *Ix.tile.* = "));
}

class PipelineGpuTest : public testing::TestWithParam<std::string> {};

// By blocks and threads, which the shim runs.
TEST_P(PipelineGpuTest, Agrees) {
  const PipelineCase c = CaseOf(GetParam());
  const Target target{.name = "cuda"};
  PipelineOptions passes;
  passes.skip = {"flatten"};  // the arguments have the shapes of the function as it was
  ir::Function function = c.function;
  poly::GpuOptions options;
  if (!IsAffordable(GetParam())) options.strategy = "min";
  const auto report = poly::ScheduleForGpu(function, options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->changed) << report->ToString();
  ASSERT_EQ(RunPasses(function, *PipelineFor(target), target, passes), absl::OkStatus());
  const auto compiled = codegen::ShimmedCuda::Create({function});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const ir::RandomArguments actual(c.arguments);
  ASSERT_EQ((*compiled)->Run(0, actual.arguments(), 0), absl::OkStatus());
  EXPECT_EQ(c.Disagreement(actual), "") << report->ToString();
}

INSTANTIATE_TEST_SUITE_P(All, PipelineGpuTest, testing::ValuesIn(PipelineNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace polynao::kernels
