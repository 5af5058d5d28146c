#include "compiler/codegen/cuda/kernels.h"

#include <string>
#include <vector>

#include "compiler/codegen/codegen_test_util.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

KernelPlan Plan(std::string_view text) {
  absl::StatusOr<KernelPlan> plan = PlanKernels(Parse(text));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : KernelPlan();
}

std::string Error(std::string_view text) {
  const absl::StatusOr<KernelPlan> plan = PlanKernels(Parse(text));
  EXPECT_FALSE(plan.ok()) << text;
  return std::string(plan.status().message());
}

// How many barriers the only kernel of a body has.
size_t Barriers(const std::string& body) {
  const KernelPlan plan = Plan("func f(A: i32[64], n: i32) { " + body + " }");
  EXPECT_EQ(plan.kernels.size(), 1);
  return plan.kernels[0].barrier_before.size();
}

TEST(KernelsTest, OneForEachNestAndWhatIsBetween) {
  const KernelPlan plan = Plan(R"(
      func f(A: f32[64] in, B: f32[64] out, C: f32[64] out, n: i32) {
        let m = n * 2
        allocate T: f32[64]
        thread (x = "blockIdx.x", 4) {
          thread (y = "blockIdx.y", 2) { thread (t = "threadIdx.x", 8) { T[x * 16 + t] = A[t] } }
        }
        for (i, 0, 64) { C[i] = 1.0 }
        thread (t = "threadIdx.x", 32) { B[t] = T[t] }
        if (n < 3) {
          thread (z = "blockIdx.x", 64) { C[z] = B[z] + cast(f32, m) }
        }
      })");
  ASSERT_EQ(plan.kernels.size(), 3);
  EXPECT_EQ(plan.kernels[0].grid, (Extents{4, 2, 1}));
  EXPECT_EQ(plan.kernels[0].block, (Extents{8, 1, 1}));
  EXPECT_EQ(plan.kernels[0].function.params.size(), 2);  // A, T
  EXPECT_EQ(plan.kernels[1].grid, (Extents{1, 1, 1}));
  EXPECT_EQ(plan.kernels[1].block, (Extents{32, 1, 1}));
  EXPECT_EQ(plan.kernels[2].function.params.size(), 3);  // B, C, n
  ASSERT_EQ(plan.workspaces.size(), 1);
  EXPECT_EQ(plan.workspaces[0]->name, "T");
}

// Loops, branches and lets of integers are the host's, those that read memory the kernels'.
TEST(KernelsTest, HostLaunchesInLoops) {
  const KernelPlan plan = Plan(R"(
      func f(A: f32[n], B: f32[1] in, n: i32) {
        let half = n / 2
        for (k, 0, n) {
          A[k] = A[k] * 0.5
          if (k < half) {
            let b = B[0]
            thread (x = "blockIdx.x", n - k) { A[k + x] = A[k + x] + b }
          } else {
            thread (x = "blockIdx.x", 2) { thread (y = "blockIdx.y", half) { A[0] = 1.0 } }
          }
        }
      })");
  ASSERT_EQ(plan.kernels.size(), 3);
  const auto names = [&](int kernel) {
    std::vector<std::string> result;
    for (const ir::Param& param : plan.kernels[kernel].function.params) {
      result.emplace_back(param.name());
    }
    return result;
  };
  EXPECT_THAT(names(0), ElementsAre("A", "n", "k"));
  EXPECT_THAT(names(1), ElementsAre("A", "B", "n", "k"));
  EXPECT_EQ(ir::Print(plan.kernels[1].grid_extents[0]), "n - k");
  EXPECT_EQ(plan.kernels[2].grid, (Extents{2, 1, 1}));
  EXPECT_EQ(ir::Print(plan.kernels[2].grid_extents[1]), "n / 2");
  ASSERT_EQ(plan.host.size(), 1);
  const HostStep& let = plan.host[0];
  EXPECT_EQ(let.around.kind(), ir::StmtKind::kLet);
  ASSERT_EQ(let.steps.size(), 1);
  const HostStep& loop = let.steps[0];
  EXPECT_EQ(loop.around.kind(), ir::StmtKind::kFor);
  ASSERT_EQ(loop.steps.size(), 3);
  EXPECT_EQ(loop.steps[0].kernel, 0);
  EXPECT_FALSE(loop.steps[1].otherwise);
  EXPECT_TRUE(loop.steps[2].otherwise);
  ASSERT_EQ(loop.steps[2].steps.size(), 1);
  EXPECT_EQ(loop.steps[2].steps[0].kernel, 2);
}

// What a kernel inside stores is read before, or by the kernel in front alone.
TEST(KernelsTest, ValuesThatAreStoredInside) {
  const KernelPlan kept = Plan(R"(
      func f(A: f32[64], n: i32) {
        let x = A[n]
        let y = A[1]
        A[0] = x + y
        if (A[0] < 2.0) { thread (b = "blockIdx.x", 4) { A[b] = x } }
      })");
  // x, then y and the store, then the condition, then the blocks.
  ASSERT_EQ(kept.kernels.size(), 4);
  ASSERT_EQ(kept.workspaces.size(), 2);
  EXPECT_EQ(kept.workspaces[0]->name, "x.value");
  EXPECT_EQ(kept.workspaces[1]->name, "condition.value");
  EXPECT_EQ(kept.workspaces[1]->type, ir::Type::kU8);
  const KernelPlan narrow = Plan(R"(
      func f(A: f32[64], n: i32) {
        let x = A[n]
        let y = A[1]
        A[0] = x + y
        thread (b = "blockIdx.x", 4) { A[b] = 1.0 }
      })");
  EXPECT_EQ(narrow.kernels.size(), 2);
  EXPECT_EQ(narrow.workspaces.size(), 0);
}

// One thread alone has global memory for what has no constant size.
TEST(KernelsTest, AllocationsOfOneThread) {
  const KernelPlan plan = Plan(R"(
      func f(A: i32[64], n: i32) {
        for (k, 0, n) {
          allocate T: i32[n * 2]
          allocate U: i32[3]
          T[k] = k
          U[0] = T[k]
          A[k] = U[0]
        }
      })");
  ASSERT_EQ(plan.workspaces.size(), 1);
  EXPECT_EQ(plan.workspaces[0]->name, "T");
  EXPECT_THAT(Error("func f(A: i32[64], n: i32) { for (k, 0, n) { allocate T: i32[k] T[0] = k } }"),
              HasSubstr("expected constant extents inside a kernel"));
}

TEST(KernelsTest, BarriersOnlyWhereNeeded) {
  const std::string shared = "allocate S: i32[64] @shared allocate R: i32[64] @shared ";
  const std::string t = "thread (t = \"threadIdx.x\", 64) ";
  // Write, then read; read, then write; write, then write; read, then read.
  EXPECT_EQ(Barriers(shared + t + "{ S[t] = A[t] } " + t + "{ A[t] = S[63 - t] }"), 1);
  EXPECT_EQ(Barriers(shared + t + "{ S[t] = t } " + t + "{ R[t] = S[0] } " + t + "{ S[t] = 2 }"),
            2);
  EXPECT_EQ(Barriers(shared + t + "{ S[t] = 1 } " + t + "{ S[63 - t] = 2 }"), 1);
  EXPECT_EQ(Barriers(shared + t + "{ S[t] = 1 } " + t + "{ R[t] = A[t] }"), 0);
  // Fetch, compute, in a loop: each waits for the other.
  EXPECT_EQ(Barriers(shared + "for (k, 0, n) { " + t + "{ S[t] = k } " + t + "{ R[t] = A[t] } " +
                     t + "{ A[t] = S[1] + R[2] } }"),
            2);
  // Two tiles that take turns need one barrier an iteration, and one behind the loop.
  EXPECT_EQ(Barriers(shared + "for (k, 0, n) { " + t + "{ S[t] = k } }" + t + "{ A[t] = S[3] }"),
            2);
  // Once in a branch is enough for both.
  EXPECT_EQ(Barriers(shared + t + "{ S[t] = 1 } if (n < 3) { " + t + "{ R[t] = S[2] } } else { " +
                     t + "{ R[t] = 4 } } " + t + "{ A[t] = R[1] }"),
            2);
  // A condition that all threads read.
  EXPECT_EQ(Barriers(shared + t + "{ S[t] = 1 } if (S[5] < 3) { " + t + "{ A[t] = 1 } }"), 1);
  // What each thread has for itself, and what one thread has alone.
  EXPECT_EQ(Barriers("allocate L: i32[64, 2] @local " + t + "{ L[t, 1] = 1 } " + t +
                     "{ A[t] = L[t, 1] }"),
            0);
  EXPECT_EQ(Barriers("thread (t = \"threadIdx.x\", 1) { A[t] = 3 } A[5] = A[0]"), 0);
  // Global memory that threads of a block write and others read.
  EXPECT_EQ(Barriers(t + "{ A[t] = 1 } " + t + "{ A[t] = A[63 - t] }"), 1);
}

TEST(KernelsTest, PrivateDimensions) {
  const auto dimensions = [](const std::string& body) {
    const KernelPlan plan =
        Plan("func f(A: i32[64]) { allocate L: i32[1, 8, 4, 2] @local " + body + " }");
    return plan.kernels.at(0).private_dimensions.begin()->second;
  };
  const std::string ty = "thread (y = \"threadIdx.y\", 8) ";
  const std::string tx = "thread (x = \"threadIdx.x\", 4) ";
  EXPECT_EQ(dimensions(ty + "{ " + tx + "{ L[0, y, x, 1] = 1 } } " + ty + "{ " + tx +
                       "{ A[y] = L[0, y, x, 1] } }"),
            3);
  // A branch may say which thread it is in other words.
  EXPECT_EQ(
      dimensions(ty + "{ " + tx + "{ if (x < 1) { L[0, y, 0, 1] = 1 } A[y] = L[0, y, x, 1] } }"),
      3);
  // So may one around the kernel.
  const KernelPlan plan = Plan(R"(
      func f(A: i32[64], n: i32) {
        if (n == 3) {
          thread (b = "blockIdx.x", 2) {
            allocate L: i32[4] @local
            thread (x = "threadIdx.x", 4) { if (x + n == 4) { L[1] = 1 } }
            thread (x = "threadIdx.x", 4) { if (x == 1) { A[b] = L[x] } }
          }
        }
      })");
  EXPECT_EQ(plan.kernels.at(0).private_dimensions.begin()->second, 1);
  // Where all accesses are under branches, no index names the thread.
  EXPECT_EQ(dimensions(ty + "{ " + tx + "{ if (y == 5 && x == 2) { L[0, 5, 2, 1] = 1 } } } " + ty +
                       "{ " + tx + "{ if (x == 2) { if (y == 5) { A[y] = L[0, 5, 2, 0] } } } }"),
            3);
  EXPECT_EQ(dimensions(ty + "{ " + tx + "{ if (y == 2 && x == 2) { L[0, 2, 2, 1] = 1 } } }"), 3);
  // Thread 0 alone.
  EXPECT_EQ(dimensions("L[0, 1, 2, 1] = 3 A[0] = L[0, 1, 2, 1] " + tx + "{ A[x] = 1 }"), 1);
}

TEST(KernelsTest, Errors) {
  const auto error = [](const std::string& body) {
    return Error("func f(A: i32[64], n: i32) { " + body + " }");
  };
  EXPECT_THAT(error("for (i, 0, A[0]) { thread (blockIdx.x, 4) { A[blockIdx.x] = i } }"),
              HasSubstr("f: 'for (i, 0, A[0]) {' stands around loops over blockIdx"));
  EXPECT_THAT(error("for (i, 0, 4) { allocate T: i32[i] thread (blockIdx.x, 4) { T[0] = i } }"),
              HasSubstr("expected extents that depend on nothing but the parameters"));
  EXPECT_THAT(error("thread (blockIdx.y, 4) { thread (blockIdx.x, blockIdx.y) { A[0] = 1 } }"),
              HasSubstr("has the extent 'blockIdx.y': expected one that does not depend on"));
  EXPECT_THAT(error("thread (blockIdx.x, A[0]) { A[1] = 1 }"),
              HasSubstr("has the extent 'A[0]': expected one that does not depend on memory"));
  EXPECT_THAT(error("thread (blockIdx.x, 4) { A[9] = 1 thread (blockIdx.y, 2) { A[0] = 1 } }"),
              HasSubstr("statements beside a loop over blockIdx"));
  EXPECT_THAT(error("thread (blockIdx.y, 2) { thread (threadIdx.x, 4) { thread (blockIdx.x, 2) {"
                    " A[0] = 1 } } }"),
              HasSubstr("has a loop over blockIdx inside: expected it outside the loops over "));
  EXPECT_THAT(error("thread (threadIdx.x, n) { A[0] = 1 }"), HasSubstr("of constant extent"));
  EXPECT_THAT(error("thread (threadIdx.x, 1, 4) { A[0] = 1 }"), HasSubstr("a loop from 0"));
  EXPECT_THAT(error("thread (blockIdx.y, 65536) { A[0] = 1 }"),
              HasSubstr("blockIdx.y has extent 65536: expected at most 65535"));
  EXPECT_THAT(error("thread (threadIdx.y, 64) { thread (threadIdx.x, 32) { A[0] = 1 } }"),
              HasSubstr("a block has 2048 threads: expected at most 1024"));
  EXPECT_THAT(error("thread (blockIdx.x, 2) { allocate S: f32[12289] @shared "
                    "thread (threadIdx.x, 32) { S[threadIdx.x] = 1.0 } }"),
              HasSubstr("allocations in shared memory take 49156 bytes: expected at most 49152"));
  EXPECT_THAT(error("allocate L: i32[4] @local thread (t = \"threadIdx.x\", 4) { L[3 - t] = 1 }"),
              HasSubstr("'allocate L: i32[4] @local', accessed in 'L[3 - t] = 1': expected scope "
                        "shared"));
  EXPECT_THAT(
      error("thread (t = \"threadIdx.x\", 4) { thread (u = \"threadIdx.x\", 4) { A[u] = 1 } }"),
      HasSubstr("run the pass thread_regions first"));
  EXPECT_THAT(error("thread (t = \"threadIdx.y\", 4) { A[t] = 1 thread (u = \"threadIdx.x\", 4) "
                    "{ A[u] = 1 } }"),
              HasSubstr("sets loops over threads side by side"));
  EXPECT_THAT(error("allocate L: i32[n] @local A[0] = 1 L[0] = 2"),
              HasSubstr("expected constant extents inside a kernel"));
  EXPECT_THAT(error("thread (t = \"threadIdx.x\", 4) { allocate L: f64[65537] L[t] = 1.0 }"),
              HasSubstr("takes 524296 bytes of each thread"));
}

}  // namespace
}  // namespace polynao::codegen
