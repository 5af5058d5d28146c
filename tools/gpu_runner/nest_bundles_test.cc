// Bundles of scheduled loop nests, as `nao compile polybench/NAME --target=cuda --pair` writes them, agree with their values when
// the runner runs them by the shim.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cases/nest_bundles.h"
#include "compiler/codegen/c/c_compiler.h"
#include "compiler/codegen/cuda/bundle.h"
#include "gtest/gtest.h"
#include "kernels/polybench/polybench.h"
#include "tools/gpu_runner/runner.h"

namespace polynao::gpu {
namespace {

// Loops of the host and scalars of memory; an array whose size is a parameter; shared memory.
class NestBundlesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(NestBundlesTest, ValuesAgree) {
  const absl::Status found = codegen::FindCCompiler(false).status();
  if (!found.ok()) GTEST_SKIP() << "SKIPPED: " << found;
  RunnerOptions options;
  options.driver = options.nvrtc = "tools/gpu_runner/libfake_cuda.so";
  options.samples = 1;
  Runner runner;
  ASSERT_EQ(runner.Start(options), "");

  const kernels::PolyBenchKernel* kernel = *kernels::FindPolyBenchKernel(GetParam());
  const ir::Function function = *kernels::PolyBenchFunction(*kernel);
  const cases::NestBundleSettings settings = {.pair = true};
  const ir::RandomArguments arguments =
      *kernels::PolyBenchArguments(*kernel, function, kernel->sizes[0], settings.seed);
  const auto files = cases::BuildNestBundles(function, arguments, GetParam(), settings);
  ASSERT_TRUE(files.ok()) << files.status();
  const std::string folder = ::testing::TempDir() + "/" + GetParam() + "/";
  for (const codegen::BundleFile& file : *files) {
    const std::filesystem::path path = folder + file.name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << file.contents;
  }
  const Bundle baseline = runner.Load(folder + "baseline");
  const Bundle optimised = runner.Load(folder + "optimised");
  const std::vector<Json> lines = runner.RunGroup({&baseline, &optimised});
  ASSERT_EQ(lines.size(), 2);
  for (const Json& line : lines) EXPECT_EQ(line["ok"], true) << line.dump(1);
}

INSTANTIATE_TEST_SUITE_P(PolyBench, NestBundlesTest, testing::Values("durbin", "doitgen", "gemm"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace polynao::gpu
