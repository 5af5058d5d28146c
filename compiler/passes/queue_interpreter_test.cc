#include "compiler/passes/queue_interpreter.h"

#include <cstdlib>

#include "base/check.h"
#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/passes/core_program.h"
#include "compiler/passes/pass_test_util.h"
#include "compiler/passes/pipeline.h"
#include "compiler/passes/pipeline_program_for_test.h"
#include "compiler/passes/storage.h"
#include "compiler/passes/sync.h"
#include "compiler/passes/wait_mutation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Found(std::string_view text) {
  return std::string(CheckQueueOrder(ParseOrDie(text), TestTarget("unit"), 1).message());
}

// X, Y and Z in NMEM, S in SMEM; core 0 of cluster 0.
std::string Program(std::string_view body) {
  return StrCat("func f(A: f16[256] in, B: f16[256] out) { allocate X: f16[64] @nmem",
                " allocate Y: f16[64] @nmem allocate Z: f16[64] @nmem allocate S: f16[64] @smem ",
                body, " }");
}
std::string Copy(std::string_view memories, std::string_view to, std::string_view from) {
  return StrCat(" memcpy.f16.", memories, ".async(&", to, "[0], &", from, "[0], 64, 1, 0, 0)");
}
std::string Load(std::string_view to) { return Copy("nmem.gmem", to, "A"); }
std::string Store(std::string_view from) { return Copy("gmem.nmem", "B", from); }
std::string Double(std::string_view to, std::string_view from) {
  return StrCat(" add.f16(&", to, "[0], &", from, "[0], &", from, "[0], 64)");
}

// What CheckQueueOrder says of a missing wait: it changes a result, or what an instruction finds.
const auto& Disorder() {
  static const auto* matcher =
      new auto(AnyOf(HasSubstr(", in program order "), HasSubstr("other bytes")));
  return *matcher;
}

// Every program is right with the wait in the middle, and found to be wrong without it.
TEST(QueueInterpreterTest, FindsMissingWaits) {
  struct Case {
    const char* what;
    std::string before;
    std::string wait;
    std::string after;
  };
  const std::string end = StrCat(" sync()", Store("Y"));
  const Case cases[] = {
      {"read after write", Load("X"), "sync.io", StrCat(Double("Y", "X"), end)},
      {"read after write by computation", StrCat(Load("X"), " sync()", Double("Y", "X")),
       "sync.compute", Store("Y")},
      {"write after read", StrCat(Load("X"), " sync()", Double("Y", "X")), "sync.compute",
       StrCat(" memcpy.f16.nmem.gmem.async(&X[0], &A[64], 64, 1, 0, 0)", end)},
      // The second load writes what is there already, but not all the time.
      {"write of the same values after read", StrCat(Load("X"), " sync()", Double("Y", "X")),
       "sync.compute", StrCat(Load("X"), end)},
      {"write after write", " fill.f16(&Y[0], f16(1.0), 64)", "sync.compute",
       StrCat(Load("Y"), end)},
      {"write of the same values before read", StrCat(Load("X"), " sync()", Load("X")), "sync.io",
       StrCat(Double("Y", "X"), end)},
      {"all queues",
       StrCat(Load("X"), Copy("smem.gmem", "S", "A"), " sync()", Copy("nmem.smem", "Z", "S"),
              Double("Y", "X")),
       "sync", StrCat(" add.f16(&Y[0], &Y[0], &Z[0], 64)", end)},
      {"the move queue",
       StrCat(Copy("smem.gmem", "S", "A"), " sync()", Copy("nmem.smem", "X", "S")), "sync.move",
       StrCat(Double("Y", "X"), end)},
      {"a scalar read", StrCat(Load("X"), " fill.f16(&Y[0], f16(1.0), 64)"), "sync.io",
       StrCat(" adds.f16(&Y[0], &Y[0], X[3], 64)", end)},
      {"a scalar write", StrCat(Load("X"), " sync()", Double("Y", "X")), "sync.compute",
       StrCat(" X[5] = f16(100.0)", end)},
      // The program overwrites or does not use the bytes that the two accesses share.
      {"write after write of bytes that nobody reads",
       StrCat(Load("X"), " sync()", Double("Y", "X"), " fill.f16(&Z[0], f16(1.0), 64)"),
       "sync.compute", StrCat(Load("Z"), " sync.compute()", Store("Y"))},
      {"read after write of bytes that are overwritten",
       StrCat(Load("X"), " fill.f16(&Y[0], f16(1.0), 64)"), "sync.io",
       StrCat(Double("Z", "X"), " fill.f16(&Z[0], f16(2.0), 64) sync()", Store("Y"))},
      {"write after read by an instruction whose result is overwritten",
       StrCat(Load("X"), " fill.f16(&Y[0], f16(1.0), 64) sync()", Double("Z", "X")), "sync.compute",
       StrCat(" memcpy.f16.nmem.gmem.async(&X[0], &A[64], 64, 1, 0, 0)",
              " fill.f16(&Z[0], f16(2.0), 64) sync()", Store("Y"))},
      {"a scalar write of what is loaded", Load("Y"), "sync.io", StrCat(" Y[5] = f16(100.0)", end)},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    EXPECT_EQ(Found(Program(StrCat(c.before, " ", c.wait, "()", c.after))), "");
    EXPECT_THAT(Found(Program(StrCat(c.before, c.after))), Disorder());
    // A wait for another queue is none for this one.
    if (c.wait == "sync.io") {
      EXPECT_THAT(Found(Program(StrCat(c.before, " sync.move()", c.after))), Disorder());
    }
  }
}

// Instructions of one queue stay in order, and an instruction that waits leaves nothing behind.
TEST(QueueInterpreterTest, WhatNeedsNoWait) {
  EXPECT_EQ(Found(Program(StrCat(Load("X"), Store("X")))), "");
  EXPECT_EQ(Found(Program(StrCat(" memcpy.f16.nmem.gmem(&X[0], &A[0], 64, 1, 0, 0)",
                                 Double("Y", "X"), " sync.compute()", Store("Y")))),
            "");
  EXPECT_EQ(Found(Program(StrCat(Load("X"), Load("Y"), " sync.io()", Double("X", "X"),
                                 " fill.f16(&Z[0], f16(1.0), 64)", Store("Y")))),
            "");
  // Arguments are read where the call stands.
  EXPECT_EQ(Found("func f(A: f16[256] in, B: f16[256] out) { for (i, 0, 4) {"
                  " allocate X: f16[64] @nmem"
                  " memcpy.f16.nmem.gmem.async(&X[0], &A[i * 64], 64, 1, 0, 0)"
                  " memcpy.f16.gmem.nmem.async(&B[i * 64], &X[0], 64, 1, 0, 0) } }"),
            "");
}

// Cores and memory core are ordered by barriers alone.
TEST(QueueInterpreterTest, FindsMissingBarriers) {
  constexpr char kHead[] =
      "func f(B: f16[256] out, C: f16[256] out, W: f16[64] in) { thread (cid, 2) {"
      " allocate S: f16[64] @smem";
  constexpr char kFetch[] = " memcpy.f16.smem.gmem.async(&S[0], &W[0], 64, 1, 0, 0)";
  const auto use = [](std::string_view t, std::string_view to = "B") {
    return StrCat(" thread (", t, " = \"tid\", 2) { allocate X: f16[64] @nmem",
                  " memcpy.f16.nmem.smem(&X[0], &S[0], 64, 1, 0, 0)",
                  " memcpy.f16.gmem.nmem.async(&", to, "[cid * 128 + ", t,
                  " * 64], &X[0], 64, 1, 0, 0) }");
  };
  EXPECT_EQ(Found(StrCat(kHead, kFetch, " barrier.cluster()", use("t"), "} }")), "");
  EXPECT_THAT(Found(StrCat(kHead, kFetch, use("t"), "} }")), Disorder());
  // Fetching again writes the values that are there.
  const auto again = [&](std::string_view barrier) {
    return StrCat(kHead, kFetch, " barrier.cluster()", use("t"), barrier, kFetch,
                  " barrier.cluster()", use("u", "C"), "} }");
  };
  EXPECT_EQ(Found(again(" barrier.cluster()")), "");
  EXPECT_THAT(Found(again("")), Disorder());
  // What one core writes another reads: in SMEM of its cluster, in GMEM of the card.
  const auto exchange = [](std::string_view barrier) {
    return StrCat("func f(A: f16[256] in, B: f16[256], C: f16[256] out) {",
                  " thread (cid, 2) { thread (tid, 2) { allocate X: f16[64] @nmem",
                  " memcpy.f16.nmem.gmem(&X[0], &A[cid * 128 + tid * 64], 64, 1, 0, 0)",
                  " memcpy.f16.gmem.nmem.async(&B[cid * 128 + tid * 64], &X[0], 64, 1, 0, 0) } }",
                  barrier,
                  " thread (c = \"cid\", 2) { thread (t = \"tid\", 2) { allocate Y: f16[64] @nmem",
                  " memcpy.f16.nmem.gmem(&Y[0], &B[192 - c * 128 - t * 64], 64, 1, 0, 0)",
                  " memcpy.f16.gmem.nmem.async(&C[c * 128 + t * 64], &Y[0], 64, 1, 0, 0) } } }");
  };
  EXPECT_EQ(Found(exchange(" barrier.global()")), "");
  EXPECT_THAT(Found(exchange("")), Disorder());
}

// Only cluster 0 has something to run, but everyone meets the barrier.
TEST(QueueInterpreterTest, IdleClustersMeetBarriersAtTheTop) {
  const auto exchange = [](std::string_view barrier) {
    return StrCat("func f(A: f16[128] in, B: f16[128], C: f16[128] out) { thread (tid, 2) {",
                  " allocate X: f16[64] @nmem",
                  " memcpy.f16.nmem.gmem(&X[0], &A[tid * 64], 64, 1, 0, 0)",
                  " memcpy.f16.gmem.nmem.async(&B[tid * 64], &X[0], 64, 1, 0, 0) }", barrier,
                  " thread (t = \"tid\", 2) { allocate Y: f16[64] @nmem",
                  " memcpy.f16.nmem.gmem(&Y[0], &B[64 - t * 64], 64, 1, 0, 0)",
                  " memcpy.f16.gmem.nmem.async(&C[t * 64], &Y[0], 64, 1, 0, 0) } }");
  };
  EXPECT_EQ(Found(exchange(" barrier.global()")), "");
  EXPECT_THAT(Found(exchange("")), Disorder());
}

// More iterations than cores: each core runs every second one.
TEST(QueueInterpreterTest, IterationsOfThreadLoops) {
  for (const char* n : {"1", "2", "5", "n + 2"}) {
    EXPECT_EQ(Found(StrCat("func f(A: f16[1024] in, B: f16[1024], n: i32) { thread (tid, ", n,
                           ") { allocate X: f16[64] @nmem",
                           " memcpy.f16.nmem.gmem.async(&X[0], &A[tid * 64], 64, 1, 0, 0)",
                           " memcpy.f16.gmem.nmem.async(&B[tid * 64], &X[0], 64, 1, 0, 0) } }")),
              "");
  }
}

TEST(QueueInterpreterTest, Errors) {
  EXPECT_THAT(Found("func f(A: f16[64]) { allocate X: f16[64] @local A[0] = f16(1.0) }"),
              HasSubstr("'X' is allocated in 'local'"));
  EXPECT_THAT(Found("func f(A: f16[64]) { thread (cid, 2) { thread (tid, 2) {"
                    " if (tid < 1) { barrier.cluster() } } } }"),
              HasSubstr("waits at a barrier that not all others reach"));
  // A scalar that comes too late may be any number.
  EXPECT_THAT(
      Found("func f(A: i64[64] in, B: i64[64] out) { A[3] = i64(1)"
            " allocate X: i64[64] @nmem"
            " memcpy.i64.nmem.gmem.async(&X[0], &A[0], 64, 1, 0, 0)"
            " memcpy.i64.gmem.nmem.async(&B[0], &X[0], X[3], 1, 0, 0) }"),
      AnyOf(Disorder(), HasSubstr("takes bytes"), HasSubstr("requires"), HasSubstr("count")));
}

TEST(CoreProgramTest, CoresAndMemoryCore) {
  const ir::Function f = ParseOrDie(
      "func f(A: f16[256]) { thread (cid, 2) { allocate S: f16[64] @smem S[0] = f16(1.0)"
      " thread (tid, 2) { A[tid] = S[0] barrier.cluster() A[3] = S[1] } S[1] = f16(2.0) } }");
  const auto text = [&](CoreId core) {
    return ir::Print(CoreProgram(f, TestTarget("unit"), core).body);
  };
  EXPECT_EQ(text({0, 1}),
            "let cid: i32 = 0 + 0\nallocate S: f16[64] @smem\nlet tid: i32 = 0 + 1\n"
            "A[tid] = S[0]\nbarrier.cluster()\nA[3] = S[1]\n");
  EXPECT_EQ(text({1, 2}),
            "let cid: i32 = 0 + 1\nallocate S: f16[64] @smem\nS[0] = 1.0\nbarrier.cluster()\n"
            "S[1] = 2.0\n");
  EXPECT_EQ(AllCores(TestTarget("unit")).size(), 6u);
}

// ---- random programs

int Cases(int standard) {
  const char* const wanted = std::getenv("POLYNAO_RANDOM_CASES");
  return wanted != nullptr ? std::atoi(wanted) : standard;
}

ir::Function RandomProgram(uint64_t seed, bool pipelined) {
  const char* const kRunTime[] = {"n", "min(n, 3) + tid", "(n - cid) / 2", "n * 2 - tid"};
  const std::string iterations = seed % 3 == 0 ? kRunTime[seed / 3 % 4] : StrCat(1 + seed % 9);
  ir::Function f = ParseOrDie(RandomPipelineProgram(seed, iterations));
  const Target& target = TestTarget("unit");
  if (pipelined) POLYNAO_CHECK(Pipeline(f, target).ok());
  POLYNAO_CHECK(Storage(f, target, nullptr).ok());
  POLYNAO_CHECK(Sync(f, target).ok());
  return f;
}

TEST(QueueInterpreterTest, RandomProgramsAreInOrder) {
  for (int seed = 1; seed <= Cases(60) && !HasFailure(); ++seed) {
    for (const bool pipelined : {false, true}) {
      const ir::Function f = RandomProgram(static_cast<uint64_t>(seed), pipelined);
      const absl::Status status =
          CheckQueueOrder(f, TestTarget("unit"), static_cast<uint64_t>(seed));
      EXPECT_TRUE(status.ok()) << "seed " << seed << ": " << status << "\n" << ir::Print(f);
    }
  }
}

// Without a wait some schedule differs. The other waits are needed only for other arguments, such as a longer loop
// or another branch, so each program runs with four draws of its arguments.
TEST(QueueInterpreterTest, RandomProgramsNeedTheirWaits) {
  int waits = 0;
  int caught = 0;
  std::string missed;
  const Target& target = TestTarget("unit");
  for (int seed = 1; seed <= Cases(60) / 4; ++seed) {
    const ir::Function f = RandomProgram(static_cast<uint64_t>(seed), seed % 2 == 0);
    const int count = CountWaits(f, target);
    for (int i = 0; i < count; ++i) {
      ++waits;
      const ir::Function mutant = WithoutWait(f, target, i);
      bool is_needed = false;
      for (int draw = 0; draw < 4 && !is_needed; ++draw) {
        is_needed =
            !CheckQueueOrder(mutant, target, static_cast<uint64_t>(seed + 1000 * draw)).ok();
      }
      caught += is_needed;
      if (!is_needed) StrAppend(&missed, " ", seed, ":", i, ":", WaitName(f, target, i));
    }
  }
  std::printf("%d of %d waits are needed; not:%s\n", caught, waits, missed.c_str());
  EXPECT_GT(caught * 10, waits * 8);
}

}  // namespace
}  // namespace polynao
