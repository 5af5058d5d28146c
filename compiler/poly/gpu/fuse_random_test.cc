// Random pipelines (random_pipeline_for_test.h), fused in random ways for a GPU: compared by the
// interpreter, also with threads and blocks backwards, and as CUDA by the shim, with threads in three orders.
// POLYNAO_RANDOM_CASES=2000 makes it that many programs, POLYNAO_SEED=1000 begins with that one.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "compiler/ir/ir.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/poly/fuse/random_pipeline_for_test.h"
#include "compiler/poly/gpu/gpu.h"
#include "compiler/poly/gpu/shim_batch_for_test.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "testing/fuzz.h"

namespace polynao::poly {
namespace {

GpuOptions OptionsOf(RandomPipeline& pipeline) {
  GpuOptions options;
  options.strategy = "fuse";
  options.inline_stages = pipeline.Pick(2) == 0;
  options.registers = pipeline.Pick(4) > 0;
  if (pipeline.Pick(5) > 0) {
    options.join_all = true;
    for (int d = 0; d < 2; ++d) options.group_tile.push_back(pipeline.Pick(9));
  }
  // Blocks of fewer threads than a tile has elements, and of more.
  if (pipeline.Pick(3) > 0) options.group_threads = 1 + pipeline.Pick(70);
  // Tiles that have to be halved.
  if (pipeline.Pick(6) == 0) options.shared_bytes = 16 << pipeline.Pick(6);
  return options;
}

TEST(GpuFuseRandomTest, FusedPipelinesMeanTheSame) {
  const uint64_t first = FuzzSeed();
  const auto count = static_cast<uint64_t>(FuzzCases(30));
  const Target target{.name = "cuda"};
  int fused = 0, registers = 0;
  ShimBatch batch;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    RandomPipeline pipeline(seed);
    const std::string text = pipeline.Text();
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << text);
    const absl::StatusOr<ir::Function> before = ir::ParseFunction(text);
    ASSERT_TRUE(before.ok()) << before.status();
    ir::Function after = *before;
    const absl::StatusOr<ScheduleReport> report = ScheduleForGpu(after, OptionsOf(pipeline));
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_TRUE(report->internal_errors.empty()) << report->ToString();
    ASSERT_EQ(ir::Verify(after), absl::OkStatus()) << ir::Print(after);
    const std::string lines = report->ToString();
    fused += lines.find(", with ") != std::string::npos ? 1 : 0;
    registers += lines.find("in registers") != std::string::npos ? 1 : 0;
    ASSERT_EQ(ir::CompareMeaning(*before, after, seed, {.runs = 1}), "")
        << lines << ir::Print(after);
    ir::Function backwards = after;
    backwards.body = Backwards().Mutate(after.body);
    ASSERT_EQ(ir::CompareMeaning(*before, backwards, seed, {.runs = 1}), "")
        << "with threads backwards: " << lines << ir::Print(after);
    // As they are written, such arrays are none that a kernel can have.
    if (!report->changed || pipeline.has_growing_arrays()) continue;
    PipelineOptions passes;
    passes.skip = {"flatten"};  // arguments would need other shapes
    if (seed % 2 == 0) {
      ASSERT_EQ(RunPasses(after, *PipelineFor(target), target, passes), absl::OkStatus());
    }
    batch.Add(*before, after, seed);
    if (HasFatalFailure()) return;
  }
  batch.Check();
  std::printf(
      "%d of %d programs have a group of stages, %d with registers; %d of %d barriers needed\n",
      fused, static_cast<int>(count), registers, batch.needed(), batch.barriers());
  EXPECT_EQ(batch.stopped(), 0);
  // That the usual programs try everything. Few of others may have it.
  if (first != 1) return;
  EXPECT_GT(fused * 4, static_cast<int>(count));
  EXPECT_GT(registers * 20, static_cast<int>(count));
  EXPECT_GT(batch.needed(), 0);
}

}  // namespace
}  // namespace polynao::poly
