#include "compiler/passes/pipeline.h"

#include "base/text.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pass_test_util.h"
#include "compiler/passes/pipeline_program_for_test.h"
#include "compiler/passes/queue_interpreter.h"
#include "compiler/passes/storage.h"
#include "compiler/passes/sync.h"
#include "compiler/passes/wait_mutation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<bool> OnUnit(ir::Function& f) { return Pipeline(f, TestTarget("unit")); }

// Whether the interpreter gets to the end: of programs that stop, RunPass compares no values.
bool Runs(const ir::Function& f) {
  std::vector<ir::Tensor> tensors;
  tensors.reserve(f.params.size());
  std::vector<ir::Argument> arguments;
  for (const ir::Param& param : f.params) {
    if (param.buffer) {
      // Small numbers: one program takes loop bounds from memory.
      tensors.push_back(ir::RandomTensor(param.buffer->type, {param.buffer->extents[0].int_value()},
                                         1, ir::Values::kExact));
    }
    arguments.push_back(param.buffer ? ir::Argument::Of(&tensors.back()) : ir::Argument::Int(3));
  }
  ir::InterpreterOptions options;
  options.intrinsics = &TestTarget("unit").instructions->intrinsics();
  const absl::Status status = ir::Interpret(f, arguments, nullptr, options);
  EXPECT_TRUE(status.ok()) << status;
  return status.ok();
}

// The text after the pass. Checks also that the queues keep the meaning, however late they run.
std::string After(std::string_view text) {
  EXPECT_TRUE(Runs(ParseOrDie(text)));
  const std::string after = RunPass(text, OnUnit, TestTarget("unit"));
  ir::Function f = ParseOrDie(after);
  EXPECT_TRUE(Storage(f, TestTarget("unit"), nullptr).ok());
  EXPECT_TRUE(Sync(f, TestTarget("unit")).ok());
  const absl::Status status = CheckQueueOrder(f, TestTarget("unit"), 1, 1);
  EXPECT_TRUE(status.ok()) << status << "\n" << ir::Print(f);
  return after;
}

// n tiles of 64 elements, doubled.
std::string Program(int n, std::string_view extra = "") {
  return StrCat(
      "func f(A: f16[2000] in, C: f16[2000] out) { for (t, 0, ", n,
      ") { pragma \"double_buffer\" { allocate X: f16[64] @nmem allocate Y: f16[64] @nmem",
      " memcpy.f16.nmem.gmem.async(&X[0], &A[t * 64], 64, 1, 0, 0)", extra,
      " add.f16(&Y[0], &X[0], &X[0], 64)",
      " memcpy.f16.gmem.nmem.async(&C[t * 64], &Y[0], 64, 1, 0, 0) } } }");
}

PipelineDecision Decision(std::string_view text, bool pipelined) {
  ir::Function f = ParseOrDie(text);
  std::vector<PipelineDecision> decisions;
  const absl::StatusOr<bool> changed = Pipeline(f, TestTarget("unit"), &decisions);
  EXPECT_TRUE(changed.ok() && *changed == pipelined);
  EXPECT_EQ(decisions.size(), 1u);
  if (decisions.size() != 1) return {};
  EXPECT_EQ(decisions[0].pipelined, pipelined) << decisions[0].reason;
  return decisions[0];
}

std::string Reason(std::string_view text) { return Decision(text, false).reason; }
std::string Form(std::string_view text) { return Decision(text, true).form; }

// Waits that sync adds to the pipelined program: none, if every step waits for all that it needs.
int WaitsInside(std::string_view text) {
  ir::Function f = ParseOrDie(text);
  EXPECT_TRUE(*Pipeline(f, TestTarget("unit")));
  EXPECT_TRUE(Storage(f, TestTarget("unit"), nullptr).ok());
  const int before = CountWaits(f, TestTarget("unit"));
  EXPECT_TRUE(Sync(f, TestTarget("unit")).ok());
  return CountWaits(f, TestTarget("unit")) - before;
}

// A loop of n iterations with these statements between its tiles' allocations and the end.
std::string Loop(std::string_view n, std::string_view body, int copies = 2,
                 std::string_view tiles = "X Y") {
  std::string text = StrCat(
      "func f(A: f16[2000] in, B: f16[2000], C: f16[2000] out, S: f16[2000] @smem in,"
      " D: f16[2000] @smem out, n: i32) { allocate O: f16[64] @nmem for (t, 0, ",
      n, ") { pragma \"double_buffer\" (", copies, ") { ");
  for (char tile : tiles) {
    if (tile != ' ') StrAppend(&text, "allocate ", std::string(1, tile), ": f16[64] @nmem ");
  }
  return StrCat(text, body, " } } }");
}

constexpr char kLoad[] = " memcpy.f16.nmem.gmem.async(&X[0], &A[t * 64], 64, 1, 0, 0)";
constexpr char kAdd[] = " add.f16(&Y[0], &X[0], &X[0], 64)";
constexpr char kStore[] = " memcpy.f16.gmem.nmem.async(&C[t * 64], &Y[0], 64, 1, 0, 0)";
constexpr char kMoveIn[] = " memcpy.f16.nmem.smem.async(&X[0], &S[t * 64], 64, 1, 0, 0)";
constexpr char kMoveOut[] = " memcpy.f16.smem.nmem.async(&D[t * 64], &X[0], 64, 1, 0, 0)";

TEST(PipelineTest, TwoIterations) {
  EXPECT_EQ(After(Program(2)),
            "func f(A: f16[2000] in, C: f16[2000] out) {\n"
            "  allocate X.0: f16[64] @nmem\n"
            "  allocate X.1: f16[64] @nmem\n"
            "  allocate Y.0: f16[64] @nmem\n"
            "  allocate Y.1: f16[64] @nmem\n"
            "  memcpy.f16.nmem.gmem.async(&X.0[0], &A[0 * 64], 64, 1, 0, 0)\n"
            "  sync()\n"
            "  add.f16(&Y.0[0], &X.0[0], &X.0[0], 64)\n"
            "  memcpy.f16.nmem.gmem.async(&X.1[0], &A[(0 + 1) * 64], 64, 1, 0, 0)\n"
            "  sync()\n"
            "  add.f16(&Y.1[0], &X.1[0], &X.1[0], 64)\n"
            "  memcpy.f16.gmem.nmem.async(&C[0 * 64], &Y.0[0], 64, 1, 0, 0)\n"
            "  sync.compute()\n"
            "  memcpy.f16.gmem.nmem.async(&C[(0 + 1) * 64], &Y.1[0], 64, 1, 0, 0)\n"
            "}\n");
}

// Whatever the number of iterations, even or odd, unrolled or with a steady loop, the meaning stays
// (RunPass compares).
TEST(PipelineTest, EveryNumberOfIterations) {
  for (int n = 2; n <= 13; ++n) {
    SCOPED_TRACE(n);
    const std::string text = After(Program(n));
    EXPECT_THAT(text, HasSubstr("X.1"));
    EXPECT_EQ(text.find("for (") != std::string::npos, n > 5) << text;
  }
}

TEST(PipelineTest, InPlace) {
  EXPECT_THAT(After("func f(A: f16[2000] in, C: f16[2000] out) { for (t, 3, 7) {"
                    " pragma \"double_buffer\" { allocate X: f16[64] @nmem"
                    " memcpy.f16.nmem.gmem.async(&X[0], &A[t * 64], 64, 1, 0, 0)"
                    " relu.f16(&X[0], &X[0], 64)"
                    " memcpy.f16.gmem.nmem.async(&C[t * 64], &X[0], 64, 1, 0, 0) } } }"),
              HasSubstr("relu.f16(&X.1[0], &X.1[0], 64)"));
}

// What is filled before a load is filled behind the computation on the same copy.
TEST(PipelineTest, Prepare) {
  const std::string text = Loop(
      "7",
      StrCat(
          " if (t % 5 == 0) { fill.f16(&X[0], f16(0.5), 64) }",
          " memcpy.f16.nmem.gmem.async(&X[0], &A[t * 64], select(t % 5 == 0, i64(9), i64(64)), 1,"
          " 0, 0)",
          kAdd, kStore));
  EXPECT_EQ(Form(text), "stages prepare, load, compute, store; copies X 2, Y 2");
  EXPECT_EQ(WaitsInside(text), 0);
  const std::string after = After(text);
  EXPECT_THAT(after, HasSubstr("  add.f16(&Y.0[0], &X.0[0], &X.0[0], 64)\n"
                               "  if ((0 + 2) % 5 == 0) {\n"
                               "    fill.f16(&X.0[0], f16(0.5), 64)\n"
                               "  }\n"
                               "  memcpy.f16.nmem.gmem.async(&X.1[0], "))
      << after;
}

// Of a sliding window an iteration stores what none before it uses, `ahead` iterations before its use:
// it needs no copies, and with one ahead no step of its own.
TEST(PipelineTest, SlidingWindows) {
  const auto window = [](int ahead) {
    return StrCat("func f(A: f16[2000] in, C: f16[2000] out) { pragma \"sliding_window\" (", ahead,
                  ") { allocate X: f16[1024] @nmem"
                  " memcpy.f16.nmem.gmem.async(&X[0], &A[0], ",
                  ahead * 64,
                  ", 1, 0, 0)"
                  " for (t, 0, 7) { pragma \"double_buffer\" { allocate Y: f16[64] @nmem"
                  " if (t < ",
                  7 - ahead,
                  ") { if (t == 2) {"
                  " fill.f16(&X[t * 64 + ",
                  ahead * 64,
                  "], f16(0.5), 64) } else {"
                  " memcpy.f16.nmem.gmem.async(&X[t * 64 + ",
                  ahead * 64, "], &A[t * 64 + ", ahead * 64,
                  "], 64, 1, 0, 0) } }"
                  " add.f16(&Y[0], &X[t * 64], &X[t * 64], 64)",
                  kStore, " } } } }");
  };
  for (const int ahead : {1, 2, 5}) {
    EXPECT_EQ(Form(window(ahead)), "stages load, compute, store; copies Y 2");
    const std::string after = After(window(ahead));
    // The first load and the first computation are of one step.
    EXPECT_THAT(after, HasSubstr(StrCat("add.f16(&Y.0[0], &X[0 * 64], &X[0 * 64], 64)\n")));
    EXPECT_LT(after.find("add.f16(&Y.0[0], &X[0 * 64]"), after.find("&A[0 * 64 + ")) << after;
  }
  EXPECT_EQ(Form(window(0)), "stages load, compute, store; copies Y 2");
  const std::string after = After(window(0));
  EXPECT_GT(after.find("add.f16(&Y.0[0], &X[0 * 64]"), after.find("&A[0 * 64")) << after;
  // Without the pragma it is memory that stages share.
  std::string plain = window(1);
  plain.replace(plain.find("sliding_window"), 14, "something_else");
  EXPECT_THAT(Reason(plain), HasSubstr("'X' is not of the body"));
}

TEST(PipelineTest, IfsLetsAndLoopsGoWithTheirInstructions) {
  const std::string text =
      Loop("5", StrCat(" let at: i32 = t * 64 let unused: i32 = t + 1 if (t < n) {",
                       " memcpy.f16.nmem.gmem.async(&X[0], &A[at], 64, 1, 0, 0) } else {",
                       " fill.f16(&X[0], f16(1.0), 64) }", kAdd, " allocate T: f16[64] @nmem",
                       " if (t == 2) { relu.f16(&Y[0], &Y[0], 64) } relu.f16(&T[0], &Y[0], 64)",
                       " for (h, 0, 2) { let at2: i32 = at + h * 32",
                       " memcpy.f16.gmem.nmem.async(&C[at2], &T[h * 32], 32, 1, 0, 0) }"));
  EXPECT_EQ(Form(text), "stages load, compute, store; copies X 2, Y 1, T 2");
  EXPECT_EQ(WaitsInside(text), 0);
  const std::string after = After(text);
  EXPECT_THAT(after,
              HasSubstr("  sync.compute()\n"
                        "  let at: i32 = (0 + 4) * 64\n"
                        "  for (h, 0, 2) {\n"
                        "    let at2: i32 = at + h * 32\n"
                        "    memcpy.f16.gmem.nmem.async(&C[at2], &T.0[h * 32], 32, 1, 0, 0)\n"
                        "  }\n"
                        "}\n"))
      << after;
  EXPECT_THAT(after, HasSubstr("  if (!(0 < n)) {\n    fill.f16(&X.0[0], f16(1.0), 64)\n  }\n"));
  EXPECT_EQ(after.find("unused"), std::string::npos);
  // A value that may stop the program is computed, used or not.
  EXPECT_THAT(After(Loop("3", StrCat(" let q: i32 = t / n", kLoad, kAdd, kStore))),
              HasSubstr("let q: i32 = (0 + 2) / n"));
}

// Only what two stages touch has copies: not what the compute queue keeps to itself.
TEST(PipelineTest, CopiesOfABuffer) {
  const std::string separate = StrCat(kLoad, kAdd, kStore);
  EXPECT_EQ(Form(Loop("3", separate)), "stages load, compute, store; copies X 2, Y 2");
  EXPECT_EQ(Form(Loop("3", separate, 3)), "stages load, compute, store; copies X 2, Y 2");
  const std::string in_place = StrCat(
      kLoad,
      " relu.f16(&X[0], &X[0], 64) memcpy.f16.gmem.nmem.async(&C[t * 64], &X[0], 64, 1, 0, 0)");
  EXPECT_EQ(Form(Loop("3", in_place, 2, "X")), "stages load, compute, store; copies X 2");
  EXPECT_EQ(Form(Loop("3", in_place, 3, "X")), "stages load, compute, store; copies X 3");
  // Copies of different numbers would come round later than either.
  EXPECT_EQ(Form(Loop("3", StrCat(in_place, kAdd, kStore), 3)),
            "stages load, compute, store; copies X 3, Y 3");
}

TEST(PipelineTest, ThreeCopies) {
  for (int n = 2; n <= 13; ++n) {
    SCOPED_TRACE(n);
    const std::string text =
        Loop(StrCat(n),
             StrCat(kLoad, kAdd, " relu.f16(&X[0], &Y[0], 64)",
                    " memcpy.f16.gmem.nmem.async(&C[t * 64], &X[0], 64, 1, 0, 0)"),
             3);
    EXPECT_EQ(Form(text), "stages load, compute, store; copies X 3, Y 1");
    EXPECT_EQ(WaitsInside(text), 0);
    const std::string after = After(text);
    EXPECT_EQ(after.find("for (") != std::string::npos, n > 7) << after;
    if (n < 3 || n > 7) continue;
    EXPECT_THAT(after,
                HasSubstr("  sync()\n"
                          "  add.f16(&Y[0], &X.1[0], &X.1[0], 64)\n"
                          "  relu.f16(&X.1[0], &Y[0], 64)\n"
                          "  memcpy.f16.nmem.gmem.async(&X.2[0], &A[(0 + 2) * 64], 64, 1, 0, 0)\n"
                          "  memcpy.f16.gmem.nmem.async(&C[0 * 64], &X.0[0], 64, 1, 0, 0)\n"))
        << after;
  }
}

TEST(PipelineTest, ThreeQueues) {
  const std::string in = Loop("6", StrCat(kMoveIn, kAdd, kStore));
  EXPECT_EQ(Form(in), "stages load, compute, store; copies X 2, Y 2");
  EXPECT_EQ(WaitsInside(in), 0);
  After(in);
  // Loaded by one queue and stored by another: no order keeps two copies.
  const std::string in_place = StrCat(kLoad, " relu.f16(&X[0], &X[0], 64)", kMoveOut);
  EXPECT_EQ(Reason(Loop("6", in_place)), "'X' needs 3 copies");
  EXPECT_EQ(WaitsInside(Loop("6", in_place, 3)), 0);
  EXPECT_EQ(Form(Loop("6", in_place, 3, "X")), "stages load, compute, store; copies X 3");
  After(Loop("6", in_place, 3));
  // Copies alone.
  EXPECT_EQ(Form(Loop("6", StrCat(kLoad, kMoveOut), 2, "X")), "stages load, store; copies X 2");
  EXPECT_EQ(Reason(Loop("6", StrCat(kMoveIn, kMoveOut))), "all that it runs is in one queue");
}

TEST(PipelineTest, RunTimeIterations) {
  for (const char* n : {"n", "n - 1", "n - 7", "max(min(n, 4) - 2, 0)", "n * 3", "3 * n - 2"}) {
    SCOPED_TRACE(n);
    EXPECT_EQ(WaitsInside(Loop(n, StrCat(kLoad, kAdd, kStore))), 0);
    After(Loop(n, StrCat(kLoad, kAdd, kStore)));
    After(Loop(n,
               StrCat(" fill.f16(&X[0], f16(0.5), 64)",
                      " memcpy.f16.nmem.gmem.async(&X[0], &A[t * 64], 9, 1, 0, 0)", kAdd, kStore)));
  }
  EXPECT_THAT(
      After("func f(A: f16[2000] in, C: f16[2000] out, n: i32) { for (t, n, n + 1) {"
            " pragma \"double_buffer\" { allocate X: f16[64] @nmem allocate Y: f16[64] @nmem" +
            StrCat(kLoad, kAdd, kStore, "} } }")),
      AllOf(
          HasSubstr(
              "  if (0 < t.count) {\n"
              "    memcpy.f16.nmem.gmem.async(&X.0[0], &A[n * 64], 64, 1, 0, 0)\n"
              "    sync()\n"
              "    add.f16(&Y.0[0], &X.0[0], &X.0[0], 64)\n"
              "    if (1 < t.count) {\n"
              "      memcpy.f16.nmem.gmem.async(&X.1[0], &A[(n + 1) * 64], 64, 1, 0, 0)\n"
              "    }\n"
              "    let t.groups: i32 = max((t.count - 2) / 2, 0)\n"
              "    for (t, 0, t.groups) {\n"
              "      sync()\n"
              "      add.f16(&Y.1[0], &X.1[0], &X.1[0], 64)\n"
              "      memcpy.f16.gmem.nmem.async(&C[(n + t * 2) * 64], &Y.0[0], 64, 1, 0, 0)\n"),
          HasSubstr(
              "    let t.done: i32 = t.groups * 2\n"
              "    if (t.done < t.count) {\n"
              "      sync()\n"
              "      if (t.done + 1 < t.count) {\n"
              "        add.f16(&Y.1[0], &X.1[0], &X.1[0], 64)\n"
              "      }\n"
              "      memcpy.f16.gmem.nmem.async(&C[(n + t.done) * 64], &Y.0[0], 64, 1, 0, 0)\n")));
  // Bounds are evaluated once, before the loop writes to what they read.
  EXPECT_THAT(After("func f(A: f16[2000] in, C: f16[2000] out, M: i32[2]) {"
                    " for (t, M[0] / 1000000000, M[1] / 300000000) {"
                    " pragma \"double_buffer\" { allocate X: f16[64] @nmem"
                    " allocate Y: f16[64] @nmem" +
                    StrCat(kLoad, kAdd, kStore, "} } }")),
              HasSubstr("let t.count: i32 = M[1] / 300000000"));
}

TEST(PipelineTest, RandomProgramsKeepTheirMeaning) {
  const char* const kRunTime[] = {"n", "min(n, 3) + tid", "(n - cid) / 2", "n * 2 - tid"};
  int pipelined = 0;
  for (uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    const std::string n = seed % 3 == 0 ? kRunTime[seed / 3 % 4] : StrCat(1 + seed % 9);
    const std::string text = RandomPipelineProgram(seed, n);
    SCOPED_TRACE(StrCat("seed ", seed, "\n", text));
    After(text);
    ir::Function f = ParseOrDie(text);
    pipelined += *Pipeline(f, TestTarget("unit"));
  }
  EXPECT_GT(pipelined, 150);
}

// The memory core loads the next block of SMEM while the cores compute on this one.
std::string Blocks(std::string_view n, std::string_view store) {
  return StrCat(
      "func f(A: f16[4000] in, C: f16[4000] out, E: f16[4000] out, n: i32) {"
      " thread (cid, 2) { for (b, 0, ",
      n,
      ") { pragma \"double_buffer\" { allocate S: f16[256] @smem allocate R: f16[256] @smem"
      " memcpy.f16.smem.gmem.async(&S[0], &A[cid * 2000 + b * 256], 256, 1, 0, 0)"
      " thread (tid, 2) { for (t, 0, 2) { pragma \"double_buffer\" {"
      " allocate X: f16[64] @nmem allocate Y: f16[64] @nmem"
      " memcpy.f16.nmem.smem.async(&X[0], &S[tid * 128 + t * 64], 64, 1, 0, 0)"
      " relu.f16(&Y[0], &X[0], 64)"
      " memcpy.f16.smem.nmem.async(&R[tid * 128 + t * 64], &Y[0], 64, 1, 0, 0)"
      " memcpy.f16.gmem.nmem.async(&C[cid * 2000 + b * 256 + tid * 128 + t * 64], &Y[0], 64, 1, 0,"
      " 0) } } }",
      store, " } } } }");
}

TEST(PipelineTest, BlocksOfACluster) {
  const std::string text = Blocks("2", "");
  ir::Function f = ParseOrDie(text);
  std::vector<PipelineDecision> decisions;
  EXPECT_TRUE(*Pipeline(f, TestTarget("unit"), &decisions));
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].loop, "for (t, 0, 2) {");
  EXPECT_EQ(decisions[0].form, "stages load, compute, store; copies X 2, Y 2");
  EXPECT_EQ(decisions[1].loop, "for (b, 0, 2) {");
  EXPECT_EQ(decisions[1].form, "stages load, compute; copies S 2, R 1");
  const std::string after = After(text);
  EXPECT_THAT(
      after,
      HasSubstr(
          "  memcpy.f16.smem.gmem.async(&S.0[0], &A[cid * 2000 + 0 * 256], 256, 1, 0, 0)\n"
          "    barrier.cluster()\n"
          "    memcpy.f16.smem.gmem.async(&S.1[0], &A[cid * 2000 + (0 + 1) * 256], 256, 1, 0, 0)\n"
          "    thread (tid, 2) {\n"));
  EXPECT_THAT(after, HasSubstr("    barrier.cluster()\n    thread (tid, 2) {\n"));
}

// By the memory core, or by all cores: what they have computed together, while they compute on the next block.
TEST(PipelineTest, BlocksOfAClusterThatAreStored) {
  for (const std::string_view back :
       {" memcpy.f16.gmem.smem.async(&E[cid * 2000 + b * 256], &R[0], 256, 1, 0, 0)",
        " thread (tid, 2) { memcpy.f16.gmem.smem.async("
        "&E[cid * 2000 + b * 256 + tid * 128], &R[tid * 128], 128, 1, 0, 0) }"}) {
    for (int n = 2; n <= 7; ++n) {
      SCOPED_TRACE(StrCat(n, back));
      ir::Function f = ParseOrDie(Blocks(StrCat(n), back));
      std::vector<PipelineDecision> decisions;
      EXPECT_TRUE(*Pipeline(f, TestTarget("unit"), &decisions));
      ASSERT_EQ(decisions.size(), 2u);
      EXPECT_EQ(decisions[1].form, "stages load, compute, store; copies S 2, R 2");
      After(Blocks(StrCat(n), back));
    }
  }
}

// What cores only copy out of the block of SMEM is a stage: the next block's copy, while they compute on this one.
TEST(PipelineTest, BlocksOfAClusterThatAreFetched) {
  const std::string text =
      "func f(A: f16[4000] in, C: f16[4000] out) { thread (cid, 2) {"
      " for (b, 0, 5) { pragma \"double_buffer\" { allocate S: f16[256] @smem"
      " allocate X: f16[64] @nmem"
      " memcpy.f16.smem.gmem.async(&S[0], &A[b * 256], 256, 1, 0, 0)"
      " thread (tid, 2) { memcpy.f16.nmem.smem.async(&X[0], &S[0], 64, 1, 0, 0) }"
      " thread (tid, 2) { relu.f16(&X[0], &X[0], 64)"
      " memcpy.f16.gmem.nmem.async(&C[cid * 2000 + b * 256 + tid * 64], &X[0], 64, 1, 0, 0)"
      " } } } } }";
  ir::Function f = ParseOrDie(text);
  std::vector<PipelineDecision> decisions;
  EXPECT_TRUE(*Pipeline(f, TestTarget("unit"), &decisions));
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].form, "stages load, fetch, compute; copies S 2, X 2");
  // Step 2 loads block 2, fetches block 1 and computes on block 0.
  const std::string printed = ir::Print(f);
  const size_t load = printed.find("&S.0[0], &A[(0 + 2) * 256]");
  const size_t fetch = printed.find("&X.1[0], &S.1[0]");
  const size_t compute = printed.find("relu.f16(&X.0[0]");
  EXPECT_LT(load, fetch);
  EXPECT_LT(fetch, compute);
  EXPECT_LT(compute, printed.size());
  // Margins are filled in that stage, too; nothing is computed there.
  const auto form = [&](std::string_view first) {
    std::string with = text;
    with.insert(with.find("memcpy.f16.nmem.smem"), StrCat(first, " "));
    ir::Function g = ParseOrDie(with);
    std::vector<PipelineDecision> of_it;
    EXPECT_TRUE(*Pipeline(g, TestTarget("unit"), &of_it));
    return of_it.empty() ? "" : of_it[0].form;
  };
  EXPECT_EQ(form("fill.f16(&X[0], f16(0.0), 64)"), decisions[0].form);
  EXPECT_EQ(form("relu.f16(&X[0], &X[0], 64)"), "stages load, compute; copies S 2, X 1");
}

// X does not fit twice beside what else is in nmem, but S does in smem.
TEST(PipelineTest, WhatDoesNotFitTwiceIsFetchedByTheComputation) {
  ir::Function f = ParseOrDie(
      "func f(A: f16[90000] in, C: f16[90000] out) { thread (cid, 1) {"
      " for (b, 0, 5) { pragma \"double_buffer\" { allocate S: f16[64] @smem"
      " allocate X: f16[9000] @nmem"
      " memcpy.f16.smem.gmem.async(&S[0], &A[b * 64], 64, 1, 0, 0)"
      " thread (tid, 2) { memcpy.f16.nmem.smem.async(&X[0], &S[0], 64, 1, 0, 0) }"
      " thread (tid, 2) { relu.f16(&X[0], &X[0], 64)"
      " memcpy.f16.gmem.nmem.async(&C[b * 128 + tid * 64], &X[0], 64, 1, 0, 0) } } } } }");
  std::vector<PipelineDecision> decisions;
  EXPECT_TRUE(*Pipeline(f, TestTarget("unit"), &decisions));
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].form, "stages load, compute; copies S 2, X 1");
}

// Four buffers of the computation are too many beside what is moved, but two of them are needed at a time.
TEST(PipelineTest, WhatTheComputationAloneUsesMayShareBytes) {
  std::string text =
      "func f(A: f16[2000] in, C: f16[2000] out) { for (t, 0, 9) { pragma \"double_buffer\" {"
      " allocate X: f16[64] @nmem allocate Y: f16[64] @nmem";
  for (const char* name : {"K", "L", "M", "N"}) {
    StrAppend(&text, " allocate ", name, ": f16[4160] @nmem");
  }
  StrAppend(&text, " memcpy.f16.nmem.gmem.async(&X[0], &A[t * 64], 64, 1, 0, 0)");
  std::string from = "X";
  for (const std::string to : {"K", "L", "M", "N", "Y"}) {
    StrAppend(&text, " add.f16(&", to, "[0], &", from, "[0], &", from, "[0], 64)");
    from = to;
  }
  StrAppend(&text, " memcpy.f16.gmem.nmem.async(&C[t * 64], &Y[0], 64, 1, 0, 0) } } }");
  const std::string after = After(text);
  // Inside the loop over groups of two iterations, and around what is computed before and behind it.
  EXPECT_THAT(after, HasSubstr("for (t"));
  EXPECT_GT(after.find("allocate N"), after.find("memcpy"));
  std::string large = text;
  while (large.find("f16[4160]") != std::string::npos) large.replace(large.find("4160"), 4, "9000");
  EXPECT_THAT(Reason(large), HasSubstr("bytes of nmem, which has 32768"));
}

TEST(PipelineTest, WhatStaysAsItIsAndWhy) {
  EXPECT_THAT(Reason(Program(1)), HasSubstr("it has 1 iterations"));
  EXPECT_THAT(Reason(Program(3, " X[3] = 1.0")), HasSubstr("no queued instruction: X[3] = 1.0"));
  EXPECT_THAT(Reason(Program(3, " memcpy.f16.gmem.nmem(&C[t], &X[0], 1, 1, 0, 0)")),
              HasSubstr("no queued instruction: memcpy.f16.gmem.nmem(&C[t]"));
  EXPECT_EQ(
      Reason(Program(3, " memcpy.f16.gmem.nmem.async(&C[t], &Y[0], 1, 1, 0, 0)")),
      "add.f16 (compute) stands behind memcpy.f16.gmem.nmem.async (store), and both touch 'Y'");
  EXPECT_THAT(Reason(Program(3, " sync()")), HasSubstr("no queued instruction: sync()"));
  std::string in_place = Program(3);
  while (in_place.find("&C") != std::string::npos) in_place.replace(in_place.find("&C"), 2, "&A");
  EXPECT_THAT(Reason(in_place), HasSubstr("'A' is loaded and stored"));
  std::string large = Program(3);
  while (large.find("f16[64] @nmem") != std::string::npos) {
    large.replace(large.find("f16[64] @nmem"), 13, "f16[4160] @nmem");
  }
  EXPECT_EQ(Reason(large), "two copies take 33280 bytes of nmem, which has 32768");
  // A condition, a scalar argument, a bound that reads what the loop may write.
  const std::string rest = StrCat(kAdd, kStore);
  EXPECT_EQ(Reason(Loop("3", StrCat(kLoad, " if (C[0] < 1.0) {", kAdd, "}", kStore))),
            "it reads memory: if (C[0] < 1.0) {");
  EXPECT_THAT(Reason(Loop("3", StrCat(kLoad, kAdd, " adds.f16(&Y[0], &X[0], X[0], 64)", kStore))),
              HasSubstr("it reads memory: adds.f16"));
  EXPECT_THAT(Reason(Loop("3", StrCat(kLoad, " thread (cid, 2) {", kAdd, "}", kStore))),
              HasSubstr("no queued instruction: thread (cid, 2) {"));
  // An accumulator outside is fine where only computation touches it.
  EXPECT_EQ(Form(Loop("3", StrCat(kLoad, " add.f16(&O[0], &O[0], &X[0], 64)"), 2, "X")),
            "stages load, compute; copies X 2");
  EXPECT_EQ(Reason(Loop("3", StrCat(kLoad, " relu.f16(&O[0], &X[0], 64)",
                                    " memcpy.f16.gmem.nmem.async(&C[t], &O[0], 64, 1, 0, 0)"))),
            "'O' is not of the body, and both relu.f16 and memcpy.f16.gmem.nmem.async touch it");
  EXPECT_EQ(Reason(Loop("3", StrCat(" memcpy.f16.nmem.gmem.async(&O[0], &A[t], 64, 1, 0, 0)",
                                    " relu.f16(&Y[0], &O[0], 64)", kStore))),
            "'O' is not of the body, and both memcpy.f16.nmem.gmem.async and relu.f16 touch it");
  // What is prepared may not be stored, nor computed from what is loaded.
  EXPECT_EQ(Reason(Loop("3", StrCat(" fill.f16(&X[0], f16(0.5), 64)", kLoad, kAdd, kMoveOut), 3)),
            "'X' needs 4 copies");
  EXPECT_EQ(
      Reason(Loop("3", StrCat(kLoad, kAdd, kLoad, kStore))),
      "add.f16 (prepare) stands behind memcpy.f16.nmem.gmem.async (load), and both touch 'X'");
  EXPECT_EQ(Reason(Loop("3", StrCat(" for (h, 0, 2) {", kLoad, kAdd, "}", kStore))),
            "memcpy.f16.nmem.gmem.async and add.f16 of two stages stand in one loop inside");
  EXPECT_EQ(Reason(Loop("3", StrCat(" for (h, 0, 2) { allocate T: f16[64] @nmem",
                                    " memcpy.f16.nmem.gmem.async(&T[0], &A[t], 64, 1, 0, 0)",
                                    " add.f16(&Y[0], &T[0], &T[0], 64) }", kStore))),
            "memcpy.f16.nmem.gmem.async and add.f16 of two stages stand in one loop inside");
  // What a loop inside needs for itself lives as long as the body.
  EXPECT_EQ(Form(Loop("3", StrCat(kLoad, " for (h, 0, 2) { allocate T: f16[64] @nmem",
                                  " relu.f16(&T[0], &X[0], 64) add.f16(&Y[0], &T[0], &T[0], 64) }",
                                  kStore))),
            "stages load, compute, store; copies X 2, Y 2, T 1");
  EXPECT_THAT(Reason(Loop("3", StrCat(kLoad, rest), 4)),
              HasSubstr("expected 2 or 3 copies, found 4"));
  const auto reason_of_blocks = [](std::string_view n, std::string_view store) {
    ir::Function f = ParseOrDie(Blocks(n, store));
    std::vector<PipelineDecision> decisions;
    EXPECT_TRUE(*Pipeline(f, TestTarget("unit"), &decisions));  // the loop in the cores
    return decisions.back().reason;
  };
  EXPECT_EQ(reason_of_blocks("n", ""), "it has n iterations, and loops over cores");
  EXPECT_EQ(reason_of_blocks("2", " allocate T: f16[64] @nmem fill.f16(&T[0], f16(0.0), 64)"),
            "fill.f16 is no work for a memory core");
  EXPECT_EQ(reason_of_blocks("2", " memcpy.f16.gmem.smem.async(&A[b], &R[0], 256, 1, 0, 0)"),
            "'A' is loaded and stored");
  // Without the pragma nobody asked.
  ir::Function f = ParseOrDie(
      "func f(A: f16[2000] in) { for (t, 0, 3) { allocate X: f16[64] @nmem"
      " memcpy.f16.nmem.gmem.async(&X[0], &A[t * 64], 64, 1, 0, 0) } }");
  EXPECT_FALSE(*Pipeline(f, TestTarget("unit")));
}

}  // namespace
}  // namespace polynao
