#include "compiler/passes/cluster_regions.h"

#include <string>

#include "base/text.h"
#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<bool> Run(ir::Function& f) { return ClusterRegions(f, TestTarget()); }
// All cores compute the same here, so that the interpreter, for which memory outside of a loop over cores is there
// once, can compare.
std::string After(std::string_view text) { return RunPass(text, Run, TestTarget()); }
std::string Error(std::string_view text) { return PassError(text, Run); }

// Blocks of weights come to SMEM, and from there to each core.
TEST(ClusterRegionsTest, WeightsThatStream) {
  const std::string once = After(R"(
      func f(A: i8[64] in, W: i8[256] in, C: i8[64] out) {
        thread (cid, 1) {
          thread (tid, 1) {
            allocate X: i8[64] @nmem
            memcpy.i8.nmem.gmem.async(&X[0], &A[tid * 64], 64, 1, 0, 0)
            for (b, 0, 4) {
              pragma "double_buffer" {
                allocate S: i8[64] @smem
                pragma "double_buffer" {
                  allocate Y: i8[64] @nmem
                  memcpy.i8.smem.gmem.async(&S[0], &W[b * 64], 64, 1, 0, 0)
                  memcpy.i8.nmem.smem.async(&Y[0], &S[0], 64, 1, 0, 0)
                  maxs.i8(&X[0], &Y[0], i8(0), 64)
                }
              }
            }
            memcpy.i8.gmem.nmem.async(&C[tid * 64], &X[0], 64, 1, 0, 0)
          }
        }
      })");
  EXPECT_EQ(once, R"(func f(A: i8[64] in, W: i8[256] in, C: i8[64] out) {
  thread (cid, 1) {
    allocate X: i8[64] @nmem
    thread (tid, 1) {
      memcpy.i8.nmem.gmem.async(&X[0], &A[tid * 64], 64, 1, 0, 0)
    }
    for (b, 0, 4) {
      pragma "double_buffer" {
        allocate S: i8[64] @smem
        pragma "double_buffer" {
          allocate Y: i8[64] @nmem
          memcpy.i8.smem.gmem.async(&S[0], &W[b * 64], 64, 1, 0, 0)
          thread (tid, 1) {
            memcpy.i8.nmem.smem.async(&Y[0], &S[0], 64, 1, 0, 0)
          }
          thread (tid, 1) {
            maxs.i8(&X[0], &Y[0], i8(0), 64)
          }
        }
      }
    }
    thread (tid, 1) {
      memcpy.i8.gmem.nmem.async(&C[tid * 64], &X[0], 64, 1, 0, 0)
    }
  }
}
)");
  EXPECT_EQ(After(once), once);
}

TEST(ClusterRegionsTest, WhatDependsOnTheCoreIsAnError) {
  const auto program = [](std::string_view copy) {
    return StrCat(
        "func f(W: i8[256] in, C: i8[256] out) { thread (cid, 1) { thread (tid, 4) {"
        " allocate S: i8[64] @smem allocate Y: i8[64] @nmem ",
        copy,
        " memcpy.i8.nmem.smem.async(&Y[0], &S[0], 64, 1, 0, 0)"
        " memcpy.i8.gmem.nmem.async(&C[tid * 64], &Y[0], 64, 1, 0, 0) } } }");
  };
  EXPECT_THAT(
      Error(program("memcpy.i8.smem.gmem.async(&S[0], &W[tid * 64], 64, 1, 0, 0)")),
      HasSubstr("&W[tid * 64], 64, 1, 0, 0)' is for all cores of a cluster, but depends on tid"));
  EXPECT_THAT(
      Error(program("if (tid < 2) { memcpy.i8.smem.gmem.async(&S[0], &W[0], 64, 1, 0, 0) }")),
      HasSubstr("'if (tid < 2) {' is for all cores of a cluster, but depends on tid"));
  EXPECT_THAT(
      Error(program("let n = tid * 64 memcpy.i8.smem.gmem.async(&S[0], &W[n], 64, 1, 0, 0)")),
      HasSubstr("but depends on tid"));
}

TEST(ClusterRegionsTest, OtherLoopsOverCoresStay) {
  const std::string text =
      "func f(A: i8[128] in, C: i8[128] out) {\n"
      "  thread (cid, 1) {\n"
      "    allocate S: i8[128] @smem\n"
      "    memcpy.i8.smem.gmem.async(&S[0], &A[0], 128, 1, 0, 0)\n"
      "    thread (tid, 2) {\n"
      "      memcpy.i8.gmem.smem.async(&C[tid * 64], &S[tid * 64], 64, 1, 0, 0)\n"
      "    }\n"
      "  }\n"
      "}\n";
  EXPECT_EQ(After(text), text);
}

}  // namespace
}  // namespace polynao
