// Fused groups as kernels: small pipelines in tiles and blocks of many sizes, against the interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "compiler/codegen/cuda/emit_cuda.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/poly/fuse/pipelines_for_test.h"
#include "compiler/poly/gpu/gpu.h"
#include "compiler/poly/gpu/shim_batch_for_test.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"

namespace polynao::poly {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Fused {
  std::string report;
  std::string text;
  codegen::CudaFunction function;
};

Fused Fuse(std::string_view text, GpuOptions options, ShimBatch* batch = nullptr) {
  static uint64_t number = 0;
  const absl::StatusOr<ir::Function> before = ir::ParseFunction(text);
  EXPECT_TRUE(before.ok()) << before.status();
  ir::Function after = *before;
  options.strategy = "fuse";
  const absl::StatusOr<ScheduleReport> report = ScheduleForGpu(after, options);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return {};
  EXPECT_THAT(report->internal_errors, testing::IsEmpty());
  EXPECT_EQ(ir::Verify(after), absl::OkStatus());
  Fused result{.report = report->ToString(), .text = ir::Print(after), .function = {}};
  EXPECT_EQ(ir::CompareMeaning(*before, after, 1), "") << result.report << result.text;
  ir::Function backwards = after;
  backwards.body = Backwards().Mutate(after.body);
  EXPECT_EQ(ir::CompareMeaning(*before, backwards, 1), "") << result.report << result.text;
  const Target target{.name = "cuda"};
  PipelineOptions passes;
  passes.skip = {"flatten"};
  EXPECT_EQ(RunPasses(after, *PipelineFor(target), target, passes), absl::OkStatus());
  const auto module = codegen::EmitCuda(after);
  EXPECT_TRUE(module.ok()) << module.status() << result.text;
  if (module.ok()) result.function = module->functions[0];
  if (batch != nullptr && report->changed) batch->Add(*before, after, ++number);
  return result;
}

class GpuFuseTest : public testing::TestWithParam<std::string> {};

TEST_P(GpuFuseTest, AnyTilesAndBlocksKeepTheMeaning) {
  const std::string& text = PipelinesForTest().at(GetParam());
  ShimBatch batch;
  Fuse(text, {}, &batch);
  for (const std::vector<int64_t>& tile : std::vector<std::vector<int64_t>>{
           {1, 1}, {0, 1}, {2, 3}, {3}, {5, 8}, {7, 0, 1}, {16, 5}, {100, 4}, {100, 100}}) {
    SCOPED_TRACE(StrCat(tile[0], " x ", tile.size() > 1 ? tile[1] : 0));
    // Mostly with several rounds.
    const int64_t threads = tile[0] % 2 == 1 ? 7 : 32;
    Fuse(text, {.group_tile = tile, .join_all = true, .group_threads = threads}, &batch);
  }
  batch.Check();
}

// One array l for all rows, one after the other: no loop that threads share.
TEST(GpuFuseTest, LoopsThatThreadsDoNotShare) {
  const std::string text = R"(
      func f(a: f32[18, 3] in, t: f32[18, 3], y: f32[16, 3] out) {
        allocate b: f32[18, 3]
        for (i, 0, 18) {
          allocate l: f32[i + 1, 3]
          for (p, 0, i + 1) { for (j, 0, 3) { l[p, j] = a[p, j] * 3.5 } }
          for (j, 0, 3) { t[i, j] = l[i / 2, j] - a[i, j] * l[i, j] }
        }
        for (i, 0, 18) { for (j, 0, 3) { b[i, j] = a[i, j] / 3.0 } }
        for (i, 0, 16) { for (j, 0, 3) { y[i, j] = b[i, j] / b[i + 2, j] } }
      })";
  for (const std::vector<int64_t>& tile :
       std::vector<std::vector<int64_t>>{{0, 1}, {1, 1}, {3, 0}, {4, 2}}) {
    SCOPED_TRACE(StrCat(tile[0], " x ", tile[1]));
    for (const bool join_all : {false, true}) {
      const Fused result =
          Fuse(text, {.group_tile = tile, .join_all = join_all, .inline_stages = false});
      EXPECT_THAT(result.report, HasSubstr("with b"));
    }
  }
}

std::vector<std::string> PipelineNames() {
  std::vector<std::string> names;
  for (const auto& [name, text] : PipelinesForTest()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Pipelines, GpuFuseTest, testing::ValuesIn(PipelineNames()),
                         [](const auto& info) { return info.param; });

TEST(GpuFuseTest, EdgeShapes) {
  ShimBatch batch;
  for (const int rows : {0, 1, 7, 8, 9}) {
    for (const int columns : {0, 1, 16, 17}) {
      SCOPED_TRACE(StrCat(rows, " x ", columns));
      const std::string text =
          StrCat("func f(a: f32[", rows + 2, ", ", columns, "] in, y: f32[", rows, ", ", columns,
                 "] out) {\n  allocate b: f32[", rows + 1, ", ", columns, "]\n  for (i, 0, ",
                 rows + 1, ") { for (j, 0, ", columns,
                 ") { b[i, j] = a[i, j] / 3.0 + a[i + 1, j] } }\n  for (i, 0, ", rows,
                 ") { for (j, 0, ", columns, ") { y[i, j] = b[i, j] / b[i + 1, j] } }\n}\n");
      Fuse(text, {.inline_stages = false}, &batch);
      Fuse(text,
           {.group_tile = {4, 8}, .join_all = true, .inline_stages = false, .group_threads = 5},
           &batch);
    }
  }
  batch.Check();
}

TEST(GpuFuseTest, ATileIsABlock) {
  const Fused f = Fuse(PipelinesForTest().at("blur"),
                       {.group_tile = {4, 8}, .join_all = true, .group_threads = 32});
  EXPECT_THAT(f.report, HasSubstr("y in tiles of 4 x 8: blocks of 32 threads, with b; "));
  EXPECT_THAT(f.report, HasSubstr("2 phases, 0.2 KiB of shared memory"));
  EXPECT_THAT(f.text, HasSubstr("allocate b.shared: f32[i64(4), i64(12)] @shared"));
  ASSERT_EQ(f.function.kernels.size(), 1);
  const codegen::CudaKernel& kernel = f.function.kernels[0];
  EXPECT_EQ(kernel.grid, (codegen::Extents{3, 4, 1}));
  EXPECT_EQ(kernel.block, (codegen::Extents{32, 1, 1}));
  EXPECT_EQ(kernel.shared_bytes, 4 * 12 * 4);
  EXPECT_EQ(kernel.barriers, 1);
}

// Four arrays in turn, of which two live at a time. The two that b is made of are stored without a barrier in between.
constexpr char kChain[] = R"(
    func f(a: f32[40] in, y: f32[30] out) {
      allocate b: f32[38]  allocate b2: f32[38]  allocate c: f32[36]  allocate d: f32[34]
      for (i, 0, 38) { b[i] = a[i] / 3.0 + a[i + 1] * a[i + 2] }
      for (i, 0, 38) { b2[i] = a[i] / 5.0 - a[i + 1] * a[i + 2] }
      for (i, 0, 36) { c[i] = b[i] / b[i + 2] + b2[i + 1] * b2[i] }
      for (i, 0, 34) { d[i] = c[i] / c[i + 2] + c[i + 1] }
      for (i, 0, 30) { y[i] = d[i] / d[i + 4] + d[i + 1] }
    })";

TEST(GpuFuseTest, ArraysThatDoNotLiveTogetherShareMemory) {
  const Fused f = Fuse(
      kChain, {.group_tile = {10}, .join_all = true, .inline_stages = false, .group_threads = 32});
  EXPECT_THAT(f.report, HasSubstr("4 phases"));
  ASSERT_EQ(f.function.kernels.size(), 1);
  // b and d, b2, c.
  EXPECT_EQ(f.function.kernels[0].shared_bytes, 4 * (18 + 17 + 16));
  EXPECT_EQ(f.function.kernels[0].barriers, 3);
}

// Each thread reads the elements of b that it has stored.
constexpr char kOwn[] = R"(
    func f(a: f32[20, 30] in, y: f32[20, 30] out) {
      allocate b: f32[20, 30]
      for (i, 0, 20) { for (j, 0, 30) { b[i, j] = a[i, j] / 3.0 + a[19 - i, j] } }
      for (i, 0, 20) { for (j, 0, 30) { y[i, j] = b[i, j] / a[i, j] + b[i, j] } }
    })";

TEST(GpuFuseTest, WhatAThreadReadsOfItselfIsInRegisters) {
  const GpuOptions options{
      .group_tile = {4, 16}, .join_all = true, .inline_stages = false, .group_threads = 32};
  const Fused f = Fuse(kOwn, options);
  EXPECT_THAT(f.report, HasSubstr("0.0 KiB of shared memory, 1 arrays in registers"));
  ASSERT_EQ(f.function.kernels.size(), 1);
  EXPECT_EQ(f.function.kernels[0].barriers, 0);
  EXPECT_EQ(f.function.kernels[0].shared_bytes, 0);
  GpuOptions without = options;
  without.registers = false;
  EXPECT_EQ(Fuse(kOwn, without).function.kernels[0].barriers, 1);
}

// All colours are made of the same element, which the thread that stores them keeps.
TEST(GpuFuseTest, AThreadRunsLoopsOverTheSameElements) {
  const Fused f = Fuse(
      R"(
      func f(a: f32[20, 30] in, w: f32[3] in, y: f32[3, 20, 30] out) {
        allocate b: f32[20, 30]
        for (i, 0, 20) { for (j, 0, 30) { b[i, j] = a[i, j] / 3.0 + a[19 - i, j] } }
        for (c, 0, 3) { for (i, 0, 20) { for (j, 0, 30) { y[c, i, j] = b[i, j] / w[c] } } }
      })",
      {.group_tile = {0, 4, 16}, .join_all = true, .inline_stages = false, .group_threads = 32});
  EXPECT_THAT(f.report, HasSubstr("0.0 KiB of shared memory, 1 arrays in registers"));
  ASSERT_EQ(f.function.kernels.size(), 1);
  EXPECT_EQ(f.function.kernels[0].barriers, 0);
}

TEST(GpuFuseTest, TilesThatNeedTooMuchMemoryAreHalved) {
  const Fused f = Fuse(PipelinesForTest().at("blur"),
                       {.shared_bytes = 256, .group_tile = {8, 16}, .join_all = true});
  EXPECT_THAT(f.report, HasSubstr("y in tiles of 4 x 8: "));
}

TEST(GpuFuseTest, WhatIsStoredInPlaceOrLiveStays) {
  const Fused f = Fuse(PipelinesForTest().at("in_place"), {.group_tile = {4}, .join_all = true});
  EXPECT_THAT(f.report, Not(HasSubstr("with a")));
  EXPECT_THAT(f.report, Not(HasSubstr("with b")));
}

// A grid has at most 65535 blocks along y.
TEST(GpuFuseTest, ManyTiles) {
  const std::string text = R"(
      func f(a: i8[70002, 6] in, y: i8[70000, 6] out) {
        allocate b: i8[70001, 6]
        for (i, 0, 70001) { for (j, 0, 6) { b[i, j] = a[i, j] * a[i + 1, j] } }
        for (i, 0, 70000) { for (j, 0, 6) { y[i, j] = b[i, j] + b[i + 1, j] * b[i, j] } }
      })";
  const auto report_of = [&](GpuOptions options) {
    options.strategy = "fuse";
    options.inline_stages = false;
    ir::Function function = *ir::ParseFunction(text);
    const auto report = ScheduleForGpu(function, options);
    EXPECT_TRUE(report.ok()) << report.status();
    const Target target{.name = "cuda"};
    EXPECT_EQ(RunPasses(function, *PipelineFor(target), target, {}), absl::OkStatus());
    const auto module = codegen::EmitCuda(function);
    EXPECT_TRUE(module.ok()) << module.status();
    return report->ToString();
  };
  EXPECT_THAT(report_of({.group_tile = {1, 2}, .join_all = true}),
              HasSubstr("70000 tiles along a dimension that is not the last one to be cut"));
  EXPECT_THAT(report_of({.group_tile = {2, 2}, .join_all = true}),
              HasSubstr("y in tiles of 2 x 2: "));
  EXPECT_THAT(report_of({}), HasSubstr("y in tiles of "));
}

// Threads that read a column copy it to shared memory first.
TEST(GpuFuseTest, TranspositionsAreCopied) {
  const Fused f = Fuse(R"(
      func f(a: f32[64, 48] in, t: f32[48, 64] out, y: f32[44, 60] out) {
        allocate b: f32[44, 64]
        for (i, 0, 48) { for (j, 0, 64) { t[i, j] = a[j, i] * 2.0 } }
        for (i, 0, 44) { for (j, 0, 64) { b[i, j] = t[i, j] + t[i + 2, j] * 4.0 + t[i + 4, j] } }
        for (i, 0, 44) { for (j, 0, 60) { y[i, j] = b[i, j] + b[i, j + 2] * 4.0 + b[i, j + 4] } }
      })",
                       {.group_tile = {8, 16}, .join_all = true, .inline_stages = false});
  EXPECT_THAT(f.report, HasSubstr("y in tiles of 8 x 16: "));
  EXPECT_THAT(f.report, HasSubstr("shared a["));
}

// What the model weighs: a group saves a trip to memory, and costs work that neighbours do again.
TEST(GpuFuseTest, GroupsByTheMachine) {
  const std::string text = R"(
      func f(a: f32[4096, 4096] in, y: f32[4064, 4064] out) {
        allocate b: f32[4096, 4064]
        for (i, 0, 4096) { for (j, 0, 4064) { b[i, j] = a[i, j] / 3.0 + a[i, j + 32] * a[i, j + 1] } }
        for (i, 0, 4064) { for (j, 0, 4064) { y[i, j] = b[i, j] / b[i + 32, j] } }
      })";
  const auto report_of = [&](GpuOptions options) {
    options.strategy = "fuse";
    options.inline_stages = false;
    ir::Function function = *ir::ParseFunction(text);
    const auto report = ScheduleForGpu(function, options);
    EXPECT_TRUE(report.ok()) << report.status();
    return report->ToString();
  };
  GpuOptions slow_memory;
  slow_memory.machine.bytes_per_cycle = 100;
  slow_memory.machine.cache_bytes = 1 << 20;
  EXPECT_THAT(report_of(slow_memory), HasSubstr(", with b; "));
  GpuOptions slow_arithmetic;
  slow_arithmetic.machine.operations_per_cycle = 2;
  slow_arithmetic.machine.bytes_per_cycle = 1e5;
  slow_arithmetic.machine.cache_bytes_per_cycle = 1e5;
  EXPECT_THAT(report_of(slow_arithmetic), Not(HasSubstr(", with b; ")));
  // Tiles whose boxes fit.
  GpuOptions small_memory = slow_memory;
  small_memory.shared_bytes = 6 << 10;
  small_memory.join_all = true;
  EXPECT_THAT(report_of(small_memory), HasSubstr(", with b; "));
  // Few, large tiles do not fill many multiprocessors; there are more tiles than these.
  GpuOptions wide = slow_memory;
  wide.machine.multiprocessors = 4096;
  wide.join_all = true;
  const std::string many = report_of(wide);
  wide.machine.multiprocessors = 1;
  EXPECT_NE(many, report_of(wide));
}

// Each row of y needs nine of b. 64 x 64 elements fill no GPU: tiles of one row take no longer than those of eight, but
// compute b nearly five times.
const char kRows[] = R"(
    func f(a: f32[72, 64] in, y: f32[64, 64] out) {
      allocate b: f32[72, 64]
      for (i, 0, 72) { for (j, 0, 64) { b[i, j] = exp(a[i, j]) + 1.0 } }
      for (i, 0, 64) { for (j, 0, 64) {
        y[i, j] = b[i, j] / b[i + 8, j] + b[i + 4, j] * b[i + 2, j] / b[i + 1, j]
      } }
    })";

TEST(GpuFuseTest, SmallImagesComputeLittleTwice) {
  const std::string report = Fuse(kRows, {}).report;
  EXPECT_THAT(report, HasSubstr("y in tiles of 8 x 16: "));
  EXPECT_THAT(report, HasSubstr(", with b; 1.41 times the instances; "));
}

// What does not run in tiles that the caller asks for, and why.
TEST(GpuFuseTest, TilesThatStagesDoNotShare) {
  EXPECT_THAT(Fuse(kRows, {.group_tile = {64, 32}}).report, HasSubstr("y in tiles of all x 32: "));
  EXPECT_THAT(Fuse(kRows, {.group_tile = {1, 16}, .group_threads = 16}).report,
              HasSubstr("b is not computed in tiles of y: alone it is cheaper by the model\n"));
  EXPECT_THAT(Fuse(kRows, {.group_tile = {100, 100}}).report,
              HasSubstr("b is not computed in tiles of y: that is no larger than a tile\n"));
  EXPECT_THAT(Fuse(kRows, {}).report, Not(HasSubstr("not computed in tiles")));
  // Such tiles need 2.3 KiB.
  EXPECT_THAT(Fuse(kRows, {.shared_bytes = 2048, .group_tile = {32, 16}}).report,
              HasSubstr("y in tiles of 16 x 16: "));
}

TEST(GpuFuseTest, Errors) {
  ir::Function function = *ir::ParseFunction(kChain);
  const auto error = [&](const GpuOptions& options) {
    return std::string(ScheduleForGpu(function, options).status().message());
  };
  EXPECT_THAT(error({.strategy = "overlap"}), HasSubstr("max, auto, fuse, text, found 'overlap'"));
  EXPECT_EQ(error({.strategy = "fuse", .group_threads = 2000}),
            "expected blocks of at most 1024 threads, found 2000");
  EXPECT_EQ(error({.strategy = "fuse", .group_tile = {8, -1}}),
            "expected tile sizes from 0 on, found -1");
}

}  // namespace
}  // namespace polynao::poly
