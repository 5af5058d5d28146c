#include "compiler/passes/sync.h"

#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<bool> OnUnit(ir::Function& f) { return Sync(f, TestTarget("unit")); }

// The statements of the body, one a line, instructions by their name alone.
std::string Calls(std::string_view text) {
  const std::string printed = RunPass(text, OnUnit, TestTarget("unit"));
  std::string calls;
  size_t begin = 0;
  while (begin < printed.size()) {
    const size_t end = printed.find('\n', begin);
    std::string line = printed.substr(begin, end - begin);
    begin = end + 1;
    line.erase(0, line.find_first_not_of(' '));
    for (const char* name :
         {"memcpy", "add.f16", "sync", "barrier", "for", "if", "fill", "A[", "}"}) {
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
    return RunPass(text.replace(text.find("SOURCE"), 6, source), OnUnit, TestTarget("unit"));
  };
  EXPECT_THAT(from("A"), HasSubstr("barrier.global()"));
  EXPECT_THAT(from("B"), Not(HasSubstr("barrier.global()")));
}

TEST(SyncTest, UnknownInstructions) {
  EXPECT_THAT(PassError("func f(A: f16[4]) { frobnicate(&A[0]) }", OnUnit),
              HasSubstr("no instruction is named 'frobnicate'"));
}

}  // namespace
}  // namespace polynao
