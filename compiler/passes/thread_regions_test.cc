#include "compiler/passes/thread_regions.h"

#include <string>

#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;

std::string After(std::string_view text) { return RunPass(text, ThreadRegions, TestTarget()); }
std::string Error(std::string_view text) { return PassError(text, ThreadRegions); }

// The lowered form of a schedule with a tile in shared memory.
TEST(ThreadRegionsTest, Matmul) {
  const std::string text = R"(
      func f(A: f32[8, 12] in, B: f32[12, 8] in, C: f32[8, 8] out) {
        thread (bx = "blockIdx.x", 2) {
          thread (y = "threadIdx.y", 8) {
            thread (x = "threadIdx.x", 4) {
              allocate sum: f32[1] @local
              allocate S: f32[4, 4] @shared
              sum[0] = 0.0
              for (k, 0, 3) {
                thread (y1 = "threadIdx.y", 4) {
                  thread (x1 = "threadIdx.x", 4) { S[y1, x1] = B[k * 4 + y1, bx * 4 + x1] }
                }
                for (j, 0, 4) { sum[0] = sum[0] + A[y, k * 4 + j] * S[j, x] }
              }
              C[y, bx * 4 + x] = sum[0]
            }
          }
        }
      })";
  const std::string once = After(text);
  EXPECT_EQ(once, R"(func f(A: f32[8, 12] in, B: f32[12, 8] in, C: f32[8, 8] out) {
  thread (bx = "blockIdx.x", 2) {
    allocate sum: f32[8, 4, 1] @local
    allocate S: f32[4, 4] @shared
    thread (y = "threadIdx.y", 8) {
      thread (x = "threadIdx.x", 4) {
        sum[y, x, 0] = 0.0
      }
    }
    for (k, 0, 3) {
      thread (y1 = "threadIdx.y", 4) {
        thread (x1 = "threadIdx.x", 4) {
          S[y1, x1] = B[k * 4 + y1, bx * 4 + x1]
        }
      }
      thread (y = "threadIdx.y", 8) {
        thread (x = "threadIdx.x", 4) {
          for (j, 0, 4) {
            sum[y, x, 0] = sum[y, x, 0] + A[y, k * 4 + j] * S[j, x]
          }
        }
      }
    }
    thread (y = "threadIdx.y", 8) {
      thread (x = "threadIdx.x", 4) {
        C[y, bx * 4 + x] = sum[y, x, 0]
      }
    }
  }
}
)");
  EXPECT_EQ(After(once), once);
}

// Conditions, lets and loops that are the same for all threads go outside, lets over threads into
// the regions that use them.
TEST(ThreadRegionsTest, WhatStandsAround) {
  const std::string text = After(R"(
      func f(A: f32[n, 8] in, C: f32[8], n: i32) {
        thread (x = "threadIdx.x", 8) {
          let twice = x * 2
          let half = n / 2
          allocate S: f32[8] @shared
          allocate t: f32[2]
          t[0] = C[x]
          if (half < n) {
            for (k, half, n - half) {
              thread (y = "threadIdx.x", 8) { S[y] = A[k, y] }
              t[1] = S[7 - x] + cast(f32, twice)
              t[0] = t[0] + t[1]
            }
          } else {
            t[0] = t[0] + 1.0
          }
          C[x] = t[0]
        }
      })");
  EXPECT_THAT(text, HasSubstr("  let half: i32 = n / 2\n"
                              "  allocate S: f32[8] @shared\n"
                              "  allocate t: f32[8, 2] @local\n"));
  EXPECT_THAT(text, HasSubstr("if (half < n) {\n"
                              "    for (k, half, n - half) {\n"
                              "      thread (y = \"threadIdx.x\", 8) {\n"));
  EXPECT_THAT(text, HasSubstr("let twice: i32 = x * 2\n"
                              "        t[x, 1] = S[7 - x] + cast(f32, twice)\n"));
}

// A fetch that needs another tile.
TEST(ThreadRegionsTest, NestsInNests) {
  After(R"(
      func f(A: i32[8] in, C: i32[8] out) {
        thread (x = "threadIdx.x", 8) {
          allocate S: i32[8] @shared
          thread (y = "threadIdx.x", 8) {
            allocate R: i32[8] @shared
            thread (z = "threadIdx.x", 4) { R[z] = A[z] * 2 R[z + 4] = A[z + 4] }
            S[y] = R[7 - y]
          }
          C[x] = S[7 - x] + S[x]
        }
      })");
  // The inner store is each thread's own.
  EXPECT_THAT(
      Error(R"(
      func f(A: i32[8] in, C: i32[8] out) {
        thread (x = "threadIdx.x", 8) {
          allocate S: i32[8] @shared
          S[x] = A[x]
          thread (y = "threadIdx.x", 8) { S[y] = A[y] }
          C[x] = S[7 - x]
        }
      })"),
      HasSubstr("threads (threadIdx.x): 'S[x] = A[x]': each thread stores to its own copy"));
}

TEST(ThreadRegionsTest, RegionsStay) {
  for (const std::string text : {
           "func f(A: i32[8]) {\n"
           "  allocate S: i32[8] @shared\n"
           "  thread (x = \"threadIdx.x\", 8) {\n"
           "    S[x] = A[x]\n"
           "  }\n"
           "  thread (y = \"threadIdx.x\", 8) {\n"
           "    A[y] = S[7 - y]\n"
           "  }\n"
           "}\n",
           "func f(A: i32[8]) {\n"
           "  thread (blockIdx.x, 8) {\n"
           "    for (i, 0, 1) {\n"
           "      A[blockIdx.x] = 1\n"
           "    }\n"
           "  }\n"
           "}\n",
       }) {
    EXPECT_EQ(After(text), text);
  }
}

TEST(ThreadRegionsTest, Errors) {
  const auto error = [](const std::string& inside, const std::string& loop = "8") {
    return Error("func f(A: i32[8] in, B: i32[8], C: i32[8] out) { thread (x = \"threadIdx.x\", " +
                 loop + ") { allocate S: i32[8] @shared allocate t: i32[1] t[0] = 0 " + inside +
                 " C[x] = S[x] + t[0] B[x] = 1 } }");
  };
  const std::string fetch = "thread (y = \"threadIdx.x\", 8) { S[y] = A[y] }";
  EXPECT_THAT(error("for (k, 0, x) { " + fetch + " }"),
              HasSubstr("threads (threadIdx.x): the extent of 'for (k, 0, x) {', which has loops "
                        "over threads inside: expected one value for all threads, found 'x', which "
                        "depends on 'x'"));
  EXPECT_THAT(error("if (B[3] == 0) { " + fetch + " }"),
              HasSubstr("the condition of 'if (B[3] == 0) {', which has loops over threads inside: "
                        "expected one value for all threads, found 'B[3] == 0', which depends on "
                        "the contents of 'B', which threads store"));
  EXPECT_THAT(error("let v = B[x] " + fetch + " t[0] = v"), HasSubstr("the value of 'let v"));
  EXPECT_THAT(error("thread (y = \"threadIdx.x\", 8) { S[y] = A[x] }"),
              HasSubstr("expected what all threads can do together, but it depends on 'x'"));
  EXPECT_THAT(error("thread (y = \"threadIdx.x\", 8) { S[y] = t[0] }"),
              HasSubstr("it reads 't', which each thread has for itself"));
  EXPECT_THAT(error("thread (y = \"threadIdx.x\", 8) { S[y] = B[y] }"),
              HasSubstr("it reads 'B', which threads store"));
  EXPECT_THAT(error("thread (y = \"threadIdx.x\", 8) { B[y] = A[y] S[y] = 0 }"),
              HasSubstr("it stores to 'B', which is no shared memory"));
  EXPECT_THAT(error(fetch, "1, 7"),
              HasSubstr("expected a loop from 0, found 'thread (x = \"threadIdx.x\", 1, 7) {'"));
  EXPECT_THAT(error("thread (b = \"blockIdx.x\", 1) { " + fetch + " }"),
              HasSubstr("found a loop over blockIdx.x inside"));
}

}  // namespace
}  // namespace polynao
