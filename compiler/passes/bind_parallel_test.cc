#include "compiler/passes/bind_parallel.h"

#include <string>

#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;

std::string After(const std::string& body) {
  return RunPass("func f(A: i32[40000], n: i32) {\n" + body + "}\n", BindParallel, TestTarget());
}

TEST(BindParallelTest, OutermostLoops) {
  EXPECT_EQ(After("  parallel (i, 3, 1000) {\n"
                  "    parallel (j, 0, 4) {\n"
                  "      A[i * 4 + j] = i\n"
                  "    }\n"
                  "  }\n"),
            "func f(A: i32[40000], n: i32) {\n"
            "  thread (blockIdx.x, 32) {\n"
            "    thread (threadIdx.x, 32) {\n"
            "      if (blockIdx.x * 32 + threadIdx.x < 1000) {\n"
            "        let i: i32 = blockIdx.x * 32 + threadIdx.x + 3\n"
            "        parallel (j, 0, 4) {\n"
            "          A[i * 4 + j] = i\n"
            "        }\n"
            "      }\n"
            "    }\n"
            "  }\n"
            "}\n");
  // If the block size divides the extent there is no guard; few iterations make a small block.
  EXPECT_THAT(After("parallel (i, 0, 64) { A[i] = i }"),
              HasSubstr("thread (threadIdx.x, 32) {\n      let i"));
  EXPECT_THAT(After("parallel (i, 0, 7) { A[i] = i }"), HasSubstr("thread (threadIdx.x, 7) {"));
  EXPECT_THAT(
      After("if (n < 3) { allocate T: i32[2] T[0] = n parallel (i, 0, 40000) { A[i] = i } }"),
      HasSubstr("thread (threadIdx.x, 256) {"));
}

TEST(BindParallelTest, OthersStay) {
  for (const std::string body : {
           "  for (k, 0, 2) {\n    parallel (i, 0, 8) {\n      A[i] = i\n    }\n  }\n",
           "  parallel (i, 0, n) {\n    A[i] = i\n  }\n",
           "  parallel (i, 0, 0) {\n    A[i] = i\n  }\n",
           "  parallel (i, 0, 8) {\n    thread (threadIdx.x, 2) {\n      A[i] = i\n    }\n  }\n",
       }) {
    EXPECT_EQ(After(body), "func f(A: i32[40000], n: i32) {\n" + body + "}\n");
  }
}

}  // namespace
}  // namespace polynao
