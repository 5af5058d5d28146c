#include "compiler/passes/sync.h"

#include "base/text.h"
#include "compiler/passes/pass_test_util.h"
#include "compiler/passes/queue_interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<bool> OnUnit(ir::Function& f) { return Sync(f, TestTarget("unit")); }

// The text after the pass. Checks that the queues keep the meaning, however late they run.
std::string Synced(std::string_view text) {
  const std::string printed = RunPass(text, OnUnit, TestTarget("unit"));
  const absl::Status status = CheckQueueOrder(ParseOrDie(printed), TestTarget("unit"), 1);
  EXPECT_TRUE(status.ok()) << status << "\n" << printed;
  return printed;
}

// The statements of the body, one a line, instructions by their name alone.
std::string Calls(std::string_view text) {
  const std::string printed = Synced(text);
  std::string calls;
  size_t begin = 0;
  while (begin < printed.size()) {
    const size_t end = printed.find('\n', begin);
    std::string line = printed.substr(begin, end - begin);
    begin = end + 1;
    line.erase(0, line.find_first_not_of(' '));
    for (const char* name : {"memcpy", "add.f16", "adds", "sync", "barrier", "thread", "for", "if",
                             "fill", "A[", "}"}) {
      if (line.rfind(name, 0) == 0) {
        calls += line.substr(0, line.find_first_of("(&")) + ";";
        break;
      }
    }
  }
  return calls;
}

constexpr char kHead[] =
    "func f(A: f16[256], B: f16[256]) { pragma \"address\" (0) { allocate X: f16[64] @nmem"
    " pragma \"address\" (128) { allocate Y: f16[64] @nmem ";

std::string Body(std::string_view body) { return std::string(kHead) + std::string(body) + "} } }"; }

constexpr char kLoadX[] = " memcpy.f16.nmem.gmem.async(&X[0], &A[0], 64, 1, 0, 0)";
constexpr char kLoadY[] = " memcpy.f16.nmem.gmem.async(&Y[0], &A[64], 64, 1, 0, 0)";
constexpr char kAddX[] = " add.f16(&X[0], &X[0], &X[0], 64)";
constexpr char kStoreX[] = " memcpy.f16.gmem.nmem.async(&B[0], &X[0], 64, 1, 0, 0)";
constexpr char kStoreY[] = " memcpy.f16.gmem.nmem.async(&B[64], &Y[0], 64, 1, 0, 0)";

std::string Join(std::initializer_list<const char*> parts) {
  std::string all;
  for (const char* part : parts) all += part;
  return Body(all);
}

TEST(SyncTest, LoadComputeStore) {
  EXPECT_EQ(Calls(Join({kLoadX, kAddX, kStoreX})),
            "memcpy.f16.nmem.gmem.async;sync.io;add.f16;sync.compute;memcpy.f16.gmem.nmem.async;"
            "};};};");
}

TEST(SyncTest, OneQueueIsInOrder) {
  EXPECT_EQ(Calls(Join({kLoadX, kStoreX, kLoadX})),
            "memcpy.f16.nmem.gmem.async;memcpy.f16.gmem.nmem.async;memcpy.f16.nmem.gmem.async;"
            "};};};");
}

TEST(SyncTest, OtherBuffersNeedNoOrder) {
  EXPECT_EQ(Calls(Join({kLoadX, kLoadY, kAddX, kStoreY})),
            "memcpy.f16.nmem.gmem.async;memcpy.f16.nmem.gmem.async;sync.io;add.f16;"
            "memcpy.f16.gmem.nmem.async;};};};");
}

TEST(SyncTest, WriteAfterRead) {
  // The store reads X while the addition would write it.
  EXPECT_EQ(Calls(Join({kLoadX, kStoreX, kAddX})),
            "memcpy.f16.nmem.gmem.async;memcpy.f16.gmem.nmem.async;sync.io;add.f16;};};};");
}

TEST(SyncTest, LoopsWaitForTheirPreviousIteration) {
  // Within one iteration nothing conflicts; the next one's addition writes what this one's store
  // reads.
  const std::string text =
      Calls(Join({kLoadX, "sync.io() for (i, 0, 3) {", kAddX, " sync.compute()", kStoreX, "}"}));
  EXPECT_EQ(text,
            "memcpy.f16.nmem.gmem.async;sync.io;for ;sync.io;add.f16;sync.compute;"
            "memcpy.f16.gmem.nmem.async;};};};};");
}

TEST(SyncTest, EitherBranchMayBePending) {
  EXPECT_EQ(
      Calls(Join({"for (i, 0, 2) { if (i < 1) {", kLoadX, "} else {", kLoadY, "}", kAddX, "}"})),
      "for ;if ;sync.compute;memcpy.f16.nmem.gmem.async;} else {;memcpy.f16.nmem.gmem.async;};"
      "sync.io;add.f16;};};};};");
}

TEST(SyncTest, ScalarAccessesWait) {
  EXPECT_EQ(Calls(Join({kLoadX, " A[0] = X[1]"})),
            "memcpy.f16.nmem.gmem.async;sync.io;A[0] = X[1];};};};");
}

TEST(SyncTest, BuffersOnTheSameBytesAreOne) {
  const std::string body =
      "func f(A: f16[256], B: f16[256]) {"
      " pragma \"address\" (0) { allocate X: f16[64] @nmem"
      " memcpy.f16.nmem.gmem.async(&X[0], &A[0], 64, 1, 0, 0)"
      " memcpy.f16.gmem.nmem.async(&B[0], &X[0], 64, 1, 0, 0) }"
      " pragma \"address\" (ADDRESS) { allocate Z: f16[64] @nmem fill.f16(&Z[0], f16(1.0), 64) }"
      " pragma \"address\" (0) { allocate W: f16[64] @nmem fill.f16(&W[0], f16(1.0), 64) } }";
  const auto at = [&](std::string address) {
    std::string text = body;
    return text.replace(text.find("ADDRESS"), 7, address);
  };
  EXPECT_THAT(Calls(at("0")), HasSubstr("sync.io;fill.f16;};fill.f16;"));
  EXPECT_THAT(Calls(at("128")), HasSubstr("};fill.f16;};sync.io;fill.f16;"));
}

TEST(SyncTest, ThreadNestsThatShareTensorsMeetAtABarrier) {
  const std::string nests =
      "func f(A: f16[4], B: f16[4], C: f16[4]) {"
      " thread (cid, 2) { thread (tid, 2) { A[cid * 2 + tid] = B[cid] } }"
      " thread (c2 = \"cid\", 2) { thread (t2 = \"tid\", 2) { C[c2 * 2 + t2] = SOURCE[t2] } } }";
  const auto from = [&](std::string source) {
    std::string text = nests;
    return Synced(text.replace(text.find("SOURCE"), 6, source));
  };
  EXPECT_THAT(from("A"), HasSubstr("barrier.global()"));
  EXPECT_THAT(from("B"), Not(HasSubstr("barrier.global()")));
  // The same by way of a temporary.
  EXPECT_THAT(Synced("func f(B: f16[4], C: f16[4]) { allocate A: f16[4]"
                     " thread (cid, 2) { thread (tid, 2) { A[cid * 2 + tid] = B[cid] } }"
                     " thread (c2 = \"cid\", 2) { thread (t2 = \"tid\", 2) {"
                     " C[c2 * 2 + t2] = A[t2] } } }"),
              HasSubstr("barrier.global()"));
}

TEST(SyncTest, HalvesOfABufferAreApart) {
  const auto halves = [&](std::string_view used) {
    return Calls(
        Body(StrCat(" memcpy.f16.nmem.gmem.async(&X[0], &A[0], 32, 1, 0, 0)"
                    " fill.f16(&X[",
                    used, "], f16(1.0), 16)")));
  };
  EXPECT_THAT(halves("32"), Not(HasSubstr(";sync.")));
  EXPECT_THAT(halves("31"), HasSubstr("sync.io;fill.f16;"));
  // What a loop's bounds allow.
  const auto in_loop = [&](std::string_view count) {
    return Calls(Body(StrCat(" for (i, 0, ", count,
                             ") { memcpy.f16.nmem.gmem.async(&X[i * 16], &A[i * 16], 16, 1, 0, 0) }"
                             " fill.f16(&X[48], f16(1.0), 16)")));
  };
  EXPECT_THAT(in_loop("3"), Not(HasSubstr(";sync.")));
  EXPECT_THAT(in_loop("4"), HasSubstr("sync.io;fill.f16;"));
}

// What an iteration computes on and what it loads for a later one move along together.
TEST(SyncTest, MovingBytesAreComparedAtOneIteration) {
  const auto window = [&](std::string_view begin, std::string_view count = "16") {
    return Synced(
        StrCat("func f(A: f16[256], n: i64) { pragma \"address\" (0) { allocate X: f16[256] @nmem"
               " for (i, 0, 8) { sync() fill.f16(&X[i * 16], f16(1.0), 16)"
               " memcpy.f16.nmem.gmem.async(&X[",
               begin, "], &A[0], ", count, ", 1, 0, 0) } } }"));
  };
  const auto waits = HasSubstr("sync.compute()");
  EXPECT_THAT(window("i * 16 + 16"), Not(waits));
  EXPECT_THAT(window("i * 16 + 15"), waits);
  EXPECT_THAT(window("112 - i * 16"), waits);
  // With counts known at run time: as many elements as the operand's extent.
  EXPECT_THAT(window("i * 16 + 16", "n"), Not(waits));
  EXPECT_THAT(window("i * 16 + 15", "n"), waits);
  EXPECT_THAT(window("16 - i % 2 * 16 + i * 16", "cast(i64, i % 2) * 16"), waits);
  EXPECT_THAT(window("i * 16 + 16 + i % 2 * 16", "16 - cast(i64, i % 2) * 16"), Not(waits));
  // Quotients of neighbours differ by 0 or 1.
  EXPECT_THAT(window("i * 16 + 16 + ((i + 3) / 4 - i / 4) * 16"), Not(waits));
  EXPECT_THAT(window("i * 16 + 32 + (i / 4 - (i + 3) / 4) * 16"), Not(waits));
  EXPECT_THAT(window("i * 16 + 31 + (i / 4 - (i + 3) / 4) * 16"), waits);
  EXPECT_THAT(window("i * 16 + 31 + (i / 4 - (i + 5) / 4) * 16"), waits);
}

// Of another iteration, or behind the loop, it is anywhere.
TEST(SyncTest, MovingBytesOfAnotherIteration) {
  const auto loop = [&](std::string_view body, std::string_view behind = "") {
    return Synced(
        StrCat("func f(A: f16[256]) { pragma \"address\" (0) { allocate X: f16[256] @nmem"
               " for (i, 0, 8) { ",
               body, " } ", behind, " } }"));
  };
  constexpr char kFill[] = " fill.f16(&X[i * 16], f16(1.0), 16)";
  constexpr char kCopy[] = " memcpy.f16.nmem.gmem.async(&X[i * 16 + 16], &A[0], 16, 1, 0, 0)";
  EXPECT_THAT(loop(StrCat("sync()", kFill, kCopy)), Not(HasSubstr("sync.")));
  // The next iteration fills what this one has loaded.
  EXPECT_THAT(loop(StrCat(kFill, kCopy)), HasSubstr("sync.io()\n      fill"));
  EXPECT_THAT(loop(StrCat("sync()", kFill, kCopy),
                   "memcpy.f16.nmem.gmem.async(&X[32], &A[0], 16, 1, 0, 0)"),
              HasSubstr("sync.compute()\n    memcpy"));
  // Conditions around count.
  EXPECT_THAT(loop(StrCat("sync()", kFill,
                          " if (i < 3) { memcpy.f16.nmem.gmem.async("
                          "&X[i % 2 + 48], &A[0], 16, 1, 0, 0) }")),
              Not(HasSubstr("sync.")));
  EXPECT_THAT(loop(StrCat("sync()", kFill,
                          " if (i < 4) { memcpy.f16.nmem.gmem.async("
                          "&X[i % 2 + 48], &A[0], 16, 1, 0, 0) }")),
              HasSubstr("sync.compute()"));
}

TEST(SyncTest, CountsThatAreNotConstantMeanTheWholeBuffer) {
  EXPECT_THAT(
      Synced("func f(A: f16[256], n: i64) { pragma \"address\" (0) { allocate X: f16[64] @nmem"
             " memcpy.f16.nmem.gmem.async(&X[0], &A[0], n, 1, 0, 0) fill.f16(&X[32], f16(1.0), 16)"
             " } }"),
      HasSubstr("sync.io()"));
}

TEST(SyncTest, AWaitingInstructionLeavesNothingPending) {
  EXPECT_THAT(Calls(Join({kLoadY, " memcpy.f16.nmem.gmem(&X[0], &A[0], 64, 1, 0, 0)", kAddX,
                          " fill.f16(&Y[0], f16(1.0), 64)"})),
              Not(HasSubstr(";sync.")));
}

TEST(SyncTest, ArgumentsAreReadBeforeTheQueue) {
  EXPECT_THAT(Calls(Join({" fill.f16(&Y[0], f16(2.0), 64) adds.f16(&X[0], &X[0], Y[1], 64)"})),
              HasSubstr("fill.f16;sync.compute;adds.f16;"));
}

TEST(SyncTest, WaitsLeaveLoopsThatDoNotUseTheQueue) {
  EXPECT_EQ(Calls(Join({kLoadX, " for (i, 0, 4) { for (j, 0, 8) { A[j] = X[j + i * 8] } }"})),
            "memcpy.f16.nmem.gmem.async;sync.io;for ;for ;A[j] = X[j + i * 8];};};};};};");
  // Not if the loop loads more, nor if it has something else to start first.
  EXPECT_THAT(Calls(Join({kLoadX, " for (i, 0, 4) { A[i] = X[i]", kLoadX, "}"})),
              HasSubstr("for ;sync.io;A["));
  EXPECT_THAT(Calls(Join({kLoadX, " for (i, 0, 4) { fill.f16(&Y[0], f16(1.0), 64) A[i] = X[i] }"})),
              HasSubstr("for ;fill.f16;sync.io;A["));
}

TEST(SyncTest, WhatALaterRoundOrdersIsNotPending) {
  // The addition waits for the load of its own iteration, and so for that of the one before.
  EXPECT_EQ(Calls(Join({" for (i, 0, 4) {", kLoadX, kAddX, "} fill.f16(&Y[0], f16(1.0), 64)"})),
            "for ;sync.compute;memcpy.f16.nmem.gmem.async;sync.io;add.f16;};fill.f16;};};};");
}

// ---- memory core

// One wait for all queues, if none of them has anything else to do.
TEST(SyncTest, OneWaitForAllQueues) {
  const auto sum = [](std::string_view before) {
    return Synced(
        StrCat("func f(A: f16[256]) { pragma \"address\" (0) { allocate X: f16[64] @nmem"
               " pragma \"address\" (128) { allocate Y: f16[64] @nmem"
               " pragma \"address\" (256) { allocate Z: f16[64] @nmem"
               " pragma \"address\" (0) { allocate S: f16[64] @smem"
               " memcpy.f16.smem.gmem(&S[0], &A[0], 64, 1, 0, 0) ",
               before,
               " memcpy.f16.nmem.gmem.async(&X[0], &A[0], 64, 1, 0, 0)"
               " memcpy.f16.nmem.smem.async(&Y[0], &S[0], 64, 1, 0, 0)"
               " add.f16(&X[0], &X[0], &Y[0], 64) } } } } }"));
  };
  EXPECT_THAT(sum(""), HasSubstr("  sync()\n"));
  EXPECT_THAT(sum(""), Not(HasSubstr("sync.")));
  // The fill need not be over.
  EXPECT_THAT(sum("fill.f16(&Z[0], f16(1.0), 64)"), HasSubstr("sync.io()\n"));
  EXPECT_THAT(sum("fill.f16(&Z[0], f16(1.0), 64)"), HasSubstr("sync.move()\n"));
  EXPECT_THAT(sum("fill.f16(&Z[0], f16(1.0), 64)"), Not(HasSubstr("sync()")));
}

// Statements of a cluster with X, Y in SMEM. L is a tile of each core.
std::string InCluster(std::string_view body) {
  return Calls(
      StrCat("func f(A: f16[256], B: f16[256]) { thread (cid, 2) {"
             " pragma \"address\" (0) { allocate X: f16[64] @smem"
             " pragma \"address\" (128) { allocate Y: f16[64] @smem ",
             body, "} } } }"));
}
std::string Fetch(std::string_view buffer) {
  return StrCat(" memcpy.f16.smem.gmem.async(&", buffer, "[0], &A[0], 64, 1, 0, 0)");
}
std::string Nest(std::string_view body) {
  return StrCat(" thread (tid, 2) { pragma \"address\" (0) { allocate L: f16[64] @nmem", body,
                " } }");
}
std::string Use(std::string_view buffer) {
  return Nest(StrCat(" memcpy.f16.nmem.smem.async(&L[0], &", buffer, "[0], 64, 1, 0, 0)"));
}
std::string Produce(std::string_view buffer) {
  return Nest(
      StrCat(" fill.f16(&L[0], f16(1.0), 64)"
             " memcpy.f16.smem.nmem(&",
             buffer, "[tid * 32], &L[0], 32, 1, 0, 0)"));
}
constexpr char kFetch[] = "memcpy.f16.smem.gmem.async;";
constexpr char kUse[] = "thread ;memcpy.f16.nmem.smem.async;};};";
constexpr char kProduce[] = "thread ;fill.f16;sync.compute;memcpy.f16.smem.nmem;};};";
constexpr char kBarrier[] = "barrier.cluster;";
std::string Cluster(std::initializer_list<std::string_view> parts) {
  std::string all = "thread ;";
  for (std::string_view part : parts) all += part;
  return all + "};};};};";
}

TEST(SyncTest, CoresMeetTheirMemoryCoreAtABarrier) {
  EXPECT_EQ(InCluster(Fetch("X") + Use("X")), Cluster({kFetch, kBarrier, kUse}));
  EXPECT_EQ(InCluster(Fetch("X") + Use("Y")), Cluster({kFetch, kUse}));
  // A write after reads; Y is fetched while the cores work.
  EXPECT_EQ(InCluster(Use("X") + Fetch("Y") + Fetch("X")),
            Cluster({kUse, kFetch, kBarrier, kFetch}));
  // Two reads.
  EXPECT_EQ(InCluster(Fetch("X") + Use("X") +
                      " memcpy.f16.gmem.smem.async(&B[cid * 64], &X[0], 64, 1, 0, 0)"),
            Cluster({kFetch, kBarrier, kUse, "memcpy.f16.gmem.smem.async;"}));
  // One barrier serves all before it.
  EXPECT_EQ(InCluster(Fetch("X") + Fetch("Y") + Use("X") + Use("Y")),
            Cluster({kFetch, kFetch, kBarrier, kUse, kUse}));
}

TEST(SyncTest, NestsOfCoresMeetToo) {
  EXPECT_EQ(InCluster(Produce("X") + Use("X")), Cluster({kProduce, kBarrier, kUse}));
  EXPECT_EQ(InCluster(Produce("X") + Use("Y")), Cluster({kProduce, kUse}));
  EXPECT_EQ(InCluster(Use("X") + Use("X")), Cluster({kUse, kUse}));
}

// Computation that does not need what the barrier waits for comes before it.
TEST(SyncTest, ABarrierInANest) {
  const auto nest = [](std::string_view count, std::string_view first) {
    return Synced(
        StrCat("func f(A: f16[256], B: f16[256]) { thread (cid, 2) {"
               " pragma \"address\" (0) { allocate X: f16[64] @smem"
               " memcpy.f16.smem.gmem.async(&X[0], &A[0], 64, 1, 0, 0)"
               " thread (tid, ",
               count, ") { pragma \"address\" (0) { allocate T: f16[128] @nmem ", first,
               " memcpy.f16.nmem.smem.async(&T[64], &X[0], 64, 1, 0, 0) } } } } }"));
  };
  constexpr char kFill[] = "fill.f16(&T[0], f16(1.0), 64)";
  EXPECT_THAT(nest("2", kFill), HasSubstr("64)\n          barrier.cluster()\n          memcpy"));
  // A copy would hold the barrier up; not all cores would get there; nothing to gain.
  EXPECT_THAT(nest("2", "memcpy.f16.nmem.gmem.async(&T[0], &B[0], 64, 1, 0, 0)"),
              HasSubstr("barrier.cluster()\n      thread (tid, 2)"));
  // But for one that such computation needs. One that it does not need stays behind with all that follows.
  constexpr char kLoad[] = "memcpy.f16.nmem.gmem.async(&T[0], &B[0], 64, 1, 0, 0)";
  EXPECT_THAT(
      nest("2", StrCat(kLoad, " relu.f16(&T[0], &T[0], 64)")),
      HasSubstr("relu.f16(&T[0], &T[0], 64)\n          barrier.cluster()\n          memcpy"));
  EXPECT_THAT(
      nest("2", StrCat(kFill, " memcpy.f16.nmem.gmem.async(&T[64], &B[0], 64, 1, 0, 0) ", kFill)),
      HasSubstr("64)\n          barrier.cluster()\n          memcpy.f16.nmem.gmem"));
  EXPECT_THAT(nest("1", kFill), HasSubstr("barrier.cluster()\n      thread (tid, 1)"));
  // What a nest reads in SMEM is ordered by the barrier in front of it, for what is stored there later.
  const std::string reads_smem = Synced(
      "func f(A: f16[256], B: f16[256]) { thread (cid, 2) {"
      " pragma \"address\" (0) { allocate X: f16[64] @smem"
      " pragma \"address\" (128) { allocate Z: f16[64] @smem"
      " memcpy.f16.smem.gmem.async(&Z[0], &A[0], 64, 1, 0, 0) barrier.cluster()"
      " memcpy.f16.smem.gmem.async(&X[0], &A[64], 64, 1, 0, 0)"
      " thread (tid, 2) { pragma \"address\" (0) { allocate T: f16[128] @nmem"
      " memcpy.f16.nmem.smem.async(&T[0], &Z[0], 64, 1, 0, 0) relu.f16(&T[0], &T[0], 64)"
      " memcpy.f16.nmem.smem.async(&T[64], &X[0], 64, 1, 0, 0) } } } } } }");
  EXPECT_LT(reads_smem.find("&X[0], &A[64]"), reads_smem.rfind("barrier.cluster()"));
  EXPECT_LT(reads_smem.rfind("barrier.cluster()"), reads_smem.find("thread (tid, 2)"));
  EXPECT_THAT(nest("2", ""), HasSubstr("barrier.cluster()\n      thread (tid, 2)"));
}

// What the loops around a nest say of its variables holds also where a barrier went into it: there
// cid + i is 0, what is filled lies before what is loaded.
TEST(SyncTest, ABarrierInANestLeavesTheRestAsItWas) {
  const auto nest = [](std::string_view condition) {
    return Synced(StrCat(
        "func f(A: f16[256], B: f16[256]) { thread (cid, 2) { pragma \"address\" (0) {"
        " allocate X: f16[64] @smem memcpy.f16.smem.gmem.async(&X[0], &A[0], 64, 1, 0, 0)"
        " thread (tid, 2) { pragma \"address\" (0) { allocate T: f16[256] @nmem"
        " fill.f16(&T[0], f16(1.0), 64)"
        " memcpy.f16.nmem.smem.async(&T[192], &X[0], 64, 1, 0, 0)"
        " for (i, 0, 2) { sync() fill.f16(&T[i * 16 + (cid + i + 2) / 3 * 16], f16(1.0), 16)"
        " if (",
        condition,
        ") { memcpy.f16.nmem.gmem.async(&T[i * 16 + 16], &B[0], 16, 1, 0, 0) } } } } } } }"));
  };
  EXPECT_THAT(nest("(cid + i) % 3 == 0"), Not(HasSubstr("sync.compute()")));
  EXPECT_THAT(nest("(cid + i) % 3 == 1"), HasSubstr("sync.compute()"));
}

TEST(SyncTest, TheMemoryCoreWaitsForItsOwnQueues) {
  EXPECT_EQ(
      InCluster(Fetch("X") + " memcpy.f16.smem.smem.async(&Y[0], &X[0], 64, 1, 0, 0)" + Use("Y")),
      Cluster({kFetch, "sync.io;memcpy.f16.smem.smem.async;", kBarrier, kUse}));
}

TEST(SyncTest, LoopsAroundNestsMeetAcrossIterations) {
  const auto loop = [](const std::string& body) { return " for (b, 0, 3) {" + body + "}"; };
  EXPECT_EQ(InCluster(loop(Fetch("X") + Use("X"))),
            Cluster({"for ;", kBarrier, kFetch, kBarrier, kUse, "};"}));
  // Two copies take turns: one barrier for each.
  EXPECT_EQ(InCluster(Fetch("X") + loop(Fetch("Y") + Use("X") + Fetch("X") + Use("Y"))),
            Cluster({kFetch, "for ;", kBarrier, kFetch, kUse, kBarrier, kFetch, kUse, "};"}));
  // What is fetched once needs no barrier in each iteration.
  EXPECT_EQ(InCluster(Fetch("X") + loop(Use("X"))),
            Cluster({kFetch, kBarrier, "for ;", kUse, "};"}));
  EXPECT_EQ(InCluster(loop(Fetch("X")) + Use("X")),
            Cluster({"for ;", kFetch, "};", kBarrier, kUse}));
  // All iterations of the memory core's own loop pass without one.
  EXPECT_EQ(InCluster(Use("X") + loop(Fetch("X"))),
            Cluster({kUse, kBarrier, "for ;", kFetch, "};"}));
}

TEST(SyncTest, BranchesOfAllCoresMayHoldBarriers) {
  EXPECT_EQ(InCluster(Fetch("X") + " for (b, 0, 2) { if (b < 1) {" + Use("X") + "} else {" +
                      Use("Y") + "} " + Use("Y") + "}"),
            Cluster({kFetch, kBarrier, "for ;if ;", kUse, "} else {;", kUse, "};", kUse, "};"}));
  // A condition that reads SMEM is read by all.
  EXPECT_EQ(InCluster(Fetch("X") + " if (X[0] < f16(1.0)) {" + Use("Y") + "}"),
            Cluster({kFetch, kBarrier, "if ;", kUse, "};"}));
}

TEST(SyncTest, BarriersOfTheProgramCount) {
  EXPECT_EQ(InCluster(Fetch("X") + " barrier.cluster()" + Use("X")),
            Cluster({kFetch, kBarrier, kUse}));
}

TEST(SyncTest, SmemOfTwoNestsAtTheTop) {
  const auto nests = [](std::string_view address) {
    std::string text = "func f(A: f16[256]) {";
    for (std::string_view name : {"X", "Z"}) {
      StrAppend(&text, " thread (", name == "X" ? "c" : "d", " = \"cid\", 2) {",
                " pragma \"address\" (", name == "X" ? "0" : address, ") { allocate ", name,
                ": f16[64] @smem", Fetch(name));
      std::string use = Use(name);
      if (name == "Z") use.replace(use.find("tid"), 3, "t = \"tid\"");
      StrAppend(&text, use, " } }");
    }
    return Calls(text + " }");
  };
  const std::string first = StrCat("thread ;", kFetch, kBarrier, kUse, "};};thread ;");
  EXPECT_THAT(nests("0"), HasSubstr(StrCat(first, kBarrier, kFetch, kBarrier, kUse)));
  EXPECT_THAT(nests("128"), HasSubstr(StrCat(first, kFetch, kBarrier, kUse)));
}

TEST(SyncTest, UnknownInstructions) {
  EXPECT_THAT(PassError("func f(A: f16[4]) { frobnicate(&A[0]) }", OnUnit),
              HasSubstr("no instruction is named 'frobnicate'"));
}

}  // namespace
}  // namespace polynao
