// Each barrier of a mapped nest is needed: without it, threads that run from barrier to barrier in some order compute
// other values. The exception is the last one in kernels with registers, before these are stored: each thread loads and
// stores elements of its own, which the code generator does not see.
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/codegen/c/c_compiler.h"
#include "compiler/codegen/cuda/run_cuda.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/poly/gpu/gpu.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::poly {
namespace {

using ::testing::HasSubstr;

// By number, backwards, drawn.
constexpr uint64_t kOrders[] = {0, 1, 12345};

struct Nest {
  std::string name;
  std::string text;
  std::string report;                    // what the mapping says of it
  size_t barriers;                       // in its text
  std::string needed;                    // which of them are
  std::vector<int64_t> group_tile = {};  // of a pipeline that is fused
};

void PrintTo(const Nest& nest, std::ostream* stream) { *stream << nest.name; }

class GpuBarriersTest : public ::testing::TestWithParam<Nest> {};

TEST_P(GpuBarriersTest, EachIsNeeded) {
  const absl::Status found = codegen::FindCCompiler(false).status();
  if (!found.ok()) GTEST_SKIP() << "SKIPPED: " << found;
  const ir::Function before = *ir::ParseFunction(GetParam().text);
  ir::Function after = before;
  // Several blocks, tiles and threads along each axis.
  const bool fuses = !GetParam().group_tile.empty();
  const auto report = ScheduleForGpu(after, {.strategy = fuses ? "fuse" : "auto",
                                             .block = {{{4}, {3, 2}, {3, 2, 2}}},
                                             .serial_tile = 3,
                                             .serial_tiles = 2,
                                             .group_tile = GetParam().group_tile,
                                             .join_all = true,
                                             .inline_stages = false,
                                             .group_threads = 4});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->ToString(), HasSubstr(GetParam().report));
  const Target target{.name = "cuda"};
  ASSERT_EQ(RunPasses(after, *PipelineFor(target), target, {.skip = {"flatten"}}),
            absl::OkStatus());
  const auto compiled = codegen::ShimmedCuda::Create({after});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const std::map<std::string, int64_t> sizes = {{"n", 10}, {"m", 11}, {"l", 8}, {"t", 2}};
  ir::RandomArgumentOptions options = {.values = ir::Values::kExact};
  for (const ir::Param& param : before.params) {
    const std::string name(param.name());
    if (param.var) options.scalars[name] = ir::Argument::Int(sizes.at(name));
  }
  const ir::RandomArguments arguments(before, 1, options);
  const auto disagreement = [&](uint64_t order, std::optional<size_t> left_out) {
    return ir::Disagreement(before, arguments,
                            [&](auto a) { return (*compiled)->Run(0, a, order, left_out); });
  };
  for (const uint64_t order : kOrders) EXPECT_EQ(disagreement(order, {}), "");
  ASSERT_EQ((*compiled)->BarrierCount(0), GetParam().barriers) << (*compiled)->module().source;
  std::string needed;
  for (size_t barrier = 0; barrier < GetParam().barriers; ++barrier) {
    bool is_needed = false;
    for (const uint64_t order : kOrders) is_needed |= !disagreement(order, barrier).empty();
    if (is_needed) StrAppend(&needed, needed.empty() ? "" : " ", barrier);
  }
  EXPECT_EQ(needed, GetParam().needed) << (*compiled)->module().source;
}

const Nest kNests[] = {
    {"Product", R"(
        func f(C: f32[n, m], A: f32[n, l] in, B: f32[l, m] in, n: i32, m: i32, l: i32) {
          for (i, 0, n) { for (j, 0, m) { for (k, 0, l) { C[i, j] = C[i, j] + A[i, k] * B[k, j] } } }
        })",
     "C in a register", 3, "0 1"},
    {"Stencil", R"(
        func f(A: f32[n, m], B: f32[n, m], t: i32, n: i32, m: i32) {
          for (s, 0, t) {
            for (i, 1, n - 2) { for (j, 1, m - 2) {
              B[i, j] = A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j]
            } }
            for (i, 1, n - 2) { for (j, 1, m - 2) { A[i, j] = B[i, j] } }
          }
        })",
     "shared A", 1, "0"},
    {"Transposed", R"(
        func f(B: f32[n, m], A: f32[m, n] in, n: i32, m: i32) {
          for (i, 0, n) { for (j, 0, m) { B[i, j] = A[j, i] } }
        })",
     "shared A", 1, "0"},
    {"Symmetric", R"(
        func f(C: f32[n, n], A: f32[n, l] in, n: i32, l: i32) {
          for (i, 0, n) { for (j, 0, i + 1) { for (k, 0, l) {
            C[i, j] = C[i, j] + A[i, k] * A[j, k]
          } } }
        })",
     "shared A", 3, "0 1"},
    {"Rows", R"(
        func f(Y: f32[n], A: f32[n, m] in, X: f32[m] in, n: i32, m: i32) {
          for (i, 0, n) { Y[i] = 0.0  for (j, 0, m) { Y[i] = Y[i] + A[i, j] * X[j] } }
        })",
     "shared A", 2, "0 1"},
    {"TwoSums", R"(
        func f(Y: f32[n], Z: f32[n], A: f32[n, m] in, B: f32[n, m] in, X: f32[m] in, n: i32, m: i32) {
          for (i, 0, n) {
            for (j, 0, m) { Y[i] = Y[i] + A[i, j] * X[j] }
            for (j, 0, m) { Z[i] = Z[i] + B[i, j] * X[j] * Y[i] }
          }
        })",
     "shared", 3, "0 1"},
    // One between two stages of a tile.
    {"Blur",
     R"(
        func f(a: f32[12, 14] in, y: f32[10, 12] out) {
          allocate b: f32[12, 12]
          for (i, 0, 12) { for (j, 0, 12) { b[i, j] = a[i, j] + a[i, j + 1] * 2.0 + a[i, j + 2] } }
          for (i, 0, 10) { for (j, 0, 12) { y[i, j] = b[i, j] + b[i + 1, j] * 2.0 + b[i + 2, j] } }
        })",
     "y in tiles of 4 x 5: blocks of 4 threads, with b",
     1,
     "0",
     {4, 5}},
    // b and b2 at once; d in the place of b.
    {"Chain",
     R"(
        func f(a: f32[40] in, y: f32[30] out) {
          allocate b: f32[38]  allocate b2: f32[38]  allocate c: f32[36]  allocate d: f32[34]
          for (i, 0, 38) { b[i] = a[i] + a[i + 1] }
          for (i, 0, 38) { b2[i] = a[i] * 3.0 - a[i + 2] }
          for (i, 0, 36) { c[i] = b[i] - b2[i + 2] + b2[i] }
          for (i, 0, 34) { d[i] = c[i] - c[i + 2] + c[i + 1] }
          for (i, 0, 30) { y[i] = d[i] + d[i + 3] * 0.5 }
        })",
     "with b, b2, c, d; ",
     3,
     "0 1 2",
     {9}},
    // A sum's first value and its updates are two loops; each thread has the same elements in both, which the generator
    // does not see.
    {"Histogram",
     R"(
        func f(a: i32[16] in, y: i32[16] out) {
          allocate h: i32[4, 4]
          for (i, 0, 4) { for (z, 0, 4) { h[i, z] = 0 } }
          for (i, 0, 4) { for (p, 0, 4) {
            h[i, (a[4 * i + p] % 4 + 4) % 4] = h[i, (a[4 * i + p] % 4 + 4) % 4] + p + 1
          } }
          for (i, 0, 16) { y[i] = h[i / 4, (a[15 - i] % 4 + 4) % 4] }
        })",
     "with h; ",
     2,
     "0 1",
     {12}},
};

INSTANTIATE_TEST_SUITE_P(Nests, GpuBarriersTest, testing::ValuesIn(kNests),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace polynao::poly
