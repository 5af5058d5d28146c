// Bundles of scheduled loop nests and of image pipelines, as `nao compile polybench/NAME --target=cuda --pair` writes
// them, agree with their values when the runner runs them by the shim.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cases/nest_bundles.h"
#include "cases/pipeline_variants.h"
#include "compiler/codegen/c/c_compiler.h"
#include "compiler/codegen/cuda/bundle.h"
#include "gtest/gtest.h"
#include "kernels/pipelines/pipelines.h"
#include "kernels/polybench/polybench.h"
#include "tools/gpu_runner/runner.h"

namespace polynao::gpu {
namespace {

// The lines of the runner for the bundles that the settings make, as one group.
std::vector<Json> RunBundles(const ir::Function& function, const ir::RandomArguments& arguments,
                             const std::string& name, const cases::NestBundleSettings& settings) {
  RunnerOptions options;
  options.driver = options.nvrtc = "tools/gpu_runner/libfake_cuda.so";
  options.samples = 1;
  Runner runner;
  EXPECT_EQ(runner.Start(options), "");
  const auto files = cases::BuildNestBundles(function, arguments, name, settings);
  EXPECT_TRUE(files.ok()) << files.status();
  if (!files.ok()) return {};
  const std::string folder = ::testing::TempDir() + "/" + name;
  for (const codegen::OutputFile& file : *files) {
    const std::filesystem::path path = folder + "/" + file.name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << file.contents;
  }
  const std::vector<std::vector<std::string>> groups = FindBundles(folder);
  EXPECT_EQ(groups.size(), 1);
  std::vector<Bundle> bundles;
  for (const std::string& path : groups[0]) bundles.push_back(runner.Load(path));
  std::vector<const Bundle*> group;
  for (const Bundle& bundle : bundles) group.push_back(&bundle);
  return runner.RunGroup(group);
}

// Loops of the host and scalars of memory; an array whose size is a parameter; shared memory.
class NestBundlesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(NestBundlesTest, ValuesAgree) {
  const absl::Status found = codegen::FindCCompiler(false).status();
  if (!found.ok()) GTEST_SKIP() << "SKIPPED: " << found;
  const kernels::PolyBenchKernel* kernel = *kernels::FindPolyBenchKernel(GetParam());
  const ir::Function function = *kernels::PolyBenchFunction(*kernel);
  const cases::NestBundleSettings settings = {.pair = true};
  const ir::RandomArguments arguments =
      *kernels::PolyBenchArguments(*kernel, function, kernel->sizes[0], settings.seed);
  const std::vector<Json> lines = RunBundles(function, arguments, GetParam(), settings);
  ASSERT_EQ(lines.size(), 2);
  for (const Json& line : lines) EXPECT_EQ(line["ok"], true) << line.dump(1);
}

INSTANTIATE_TEST_SUITE_P(PolyBench, NestBundlesTest, testing::Values("durbin", "doitgen", "gemm"),
                         [](const auto& info) { return std::string(info.param); });

// Stage by stage, and fused.
class PipelineBundlesTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PipelineBundlesTest, ValuesAgree) {
  const absl::Status found = codegen::FindCCompiler(false).status();
  if (!found.ok()) GTEST_SKIP() << "SKIPPED: " << found;
  const kernels::Pipeline& pipeline = *kernels::FindPipeline(GetParam());
  const ir::Function function =
      *kernels::PipelineFunction(pipeline, pipeline.least_rows + 22, pipeline.least_cols + 37);
  const cases::NestBundleSettings settings = {.variants = cases::PipelineVariants(pipeline, "fuse"),
                                              .pixel_levels = pipeline.image_levels};
  const ir::RandomArguments arguments =
      *kernels::PipelineArguments(pipeline, function, settings.seed);
  const std::vector<Json> lines = RunBundles(function, arguments, GetParam(), settings);
  ASSERT_EQ(lines.size(), 3);
  for (const Json& line : lines) EXPECT_EQ(line["ok"], true) << line.dump(1);
  // The image is made from its seed.
  EXPECT_FALSE(
      std::filesystem::exists(::testing::TempDir() + "/" + GetParam() + "/optimised/input0.bin"));
}

std::vector<std::string> PipelineNames() {
  std::vector<std::string> names;
  for (const kernels::Pipeline& pipeline : kernels::Pipelines()) names.emplace_back(pipeline.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Pipelines, PipelineBundlesTest, testing::ValuesIn(PipelineNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace polynao::gpu
