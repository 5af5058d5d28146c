#include "compiler/te/schedule.h"

#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::te {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The body of the lowered function, without its parameters.
std::string Text(const Schedule& s) {
  absl::StatusOr<ir::Function> function = Lower(s);
  if (!function.ok()) return std::string(function.status().message());
  EXPECT_TRUE(ir::Verify(*function).ok()) << ir::Verify(*function);
  return ir::Print(function->body);
}

// B[i, j] = A[i, j] + 1 on 6 x 10, D = B * 2.
class ScheduleTest : public ::testing::Test {
 protected:
  Graph g_{"test"};
  Tensor a_ = g_.Placeholder("A", {6, 10}, Type::kI32);
  Tensor b_ = g_.Compute("B", {6, 10}, [&](Expr i, Expr j) { return a_(i, j) + 1; });
  Tensor d_ = g_.Compute("D", {6, 10}, [&](Expr i, Expr j) { return b_(i, j) * 2; });
  ReduceAxis k_ = g_.ReduceAxisOf("k", 10);
  Tensor r_ = g_.Compute("R", {6}, [&](Expr i) { return ReduceMax(a_(i, k_), k_); });
};

// ---- primitives: before --> after
// ----------------------------------------------------------------

TEST_F(ScheduleTest, NoPrimitive) {
  Schedule s(b_);
  EXPECT_EQ(Text(s),
            "for (i, 0, 6) {\n"
            "  for (j, 0, 10) {\n"
            "    B[i, j] = A[i, j] + 1\n"
            "  }\n"
            "}\n");
}

TEST_F(ScheduleTest, Split) {
  Schedule s(b_);
  s[b_].Split(s[b_].axis(1), 4);
  EXPECT_EQ(Text(s),
            "for (i, 0, 6) {\n"
            "  for (jo, 0, 3) {\n"
            "    for (ji, 0, 4) {\n"
            "      if (jo * 4 + ji < 10) {\n"
            "        B[i, jo * 4 + ji] = A[i, jo * 4 + ji] + 1\n"
            "      }\n"
            "    }\n"
            "  }\n"
            "}\n");
}

TEST_F(ScheduleTest, SplitThatDividesNeedsNoGuard) {
  Schedule s(b_);
  s[b_].Split(s[b_].axis(1), 5);
  EXPECT_EQ(Text(s),
            "for (i, 0, 6) {\n"
            "  for (jo, 0, 2) {\n"
            "    for (ji, 0, 5) {\n"
            "      B[i, jo * 5 + ji] = A[i, jo * 5 + ji] + 1\n"
            "    }\n"
            "  }\n"
            "}\n");
}

TEST_F(ScheduleTest, SplitParts) {
  Schedule s(b_);
  s[b_].SplitParts(s[b_].axis(1), 4);
  EXPECT_THAT(Text(s), HasSubstr("for (jo, 0, 4) {\n    for (ji, 0, 3) {\n"
                                 "      if (jo * 3 + ji < 10) {\n"));
}

TEST_F(ScheduleTest, SplitWithPlacesBefore) {
  Schedule s(b_);
  s[b_].Split(s[b_].axis(1), 4, 3);
  EXPECT_THAT(Text(s), HasSubstr("for (jo, 0, 4) {\n    for (ji, 0, 4) {\n"
                                 "      if (0 <= jo * 4 + ji - 3 && jo * 4 + ji - 3 < 10) {\n"));
}

TEST_F(ScheduleTest, SplitOfSplitGuardsBoth) {
  Schedule s(b_);
  auto [jo, ji] = s[b_].Split(s[b_].axis(1), 4);
  s[b_].Split(ji, 3);
  EXPECT_EQ(Text(s),
            "for (i, 0, 6) {\n"
            "  for (jo, 0, 3) {\n"
            "    for (jio, 0, 2) {\n"
            "      for (jii, 0, 3) {\n"
            "        if (jo * 4 + jio * 3 + jii < 10 && jio * 3 + jii < 4) {\n"
            "          B[i, jo * 4 + jio * 3 + jii] = A[i, jo * 4 + jio * 3 + jii] + 1\n"
            "        }\n"
            "      }\n"
            "    }\n"
            "  }\n"
            "}\n");
}

TEST_F(ScheduleTest, Tile) {
  Schedule s(b_);
  s[b_].Tile(s[b_].axis(0), s[b_].axis(1), 3, 5);
  EXPECT_EQ(Text(s),
            "for (io, 0, 2) {\n"
            "  for (jo, 0, 2) {\n"
            "    for (ii, 0, 3) {\n"
            "      for (ji, 0, 5) {\n"
            "        B[io * 3 + ii, jo * 5 + ji] = A[io * 3 + ii, jo * 5 + ji] + 1\n"
            "      }\n"
            "    }\n"
            "  }\n"
            "}\n");
}

TEST_F(ScheduleTest, Fuse) {
  Schedule s(b_);
  s[b_].Fuse(s[b_].axis(0), s[b_].axis(1));
  EXPECT_EQ(Text(s),
            "for (i_j, 0, 60) {\n"
            "  B[i_j / 10, i_j % 10] = A[i_j / 10, i_j % 10] + 1\n"
            "}\n");
}

TEST_F(ScheduleTest, FuseAllAndSplit) {
  Schedule s(b_);
  s[b_].Split(s[b_].Fuse(s[b_].leaves()), 7);
  EXPECT_EQ(Text(s),
            "for (i_jo, 0, 9) {\n"
            "  for (i_ji, 0, 7) {\n"
            "    if (i_jo * 7 + i_ji < 60) {\n"
            "      B[(i_jo * 7 + i_ji) / 10, (i_jo * 7 + i_ji) % 10] = "
            "A[(i_jo * 7 + i_ji) / 10, (i_jo * 7 + i_ji) % 10] + 1\n"
            "    }\n"
            "  }\n"
            "}\n");
}

TEST_F(ScheduleTest, FuseOfNothingIsOneIteration) {
  Tensor scalar = g_.Compute("S", {}, [&] { return a_(0, 0); });
  Schedule s(scalar);
  const Axis one = s[scalar].Fuse(s[scalar].leaves());
  auto [outer, inner] = s[scalar].Split(one, 4);
  s[scalar].Bind(outer, "tid");
  EXPECT_EQ(Text(s),
            "thread (tid, 1) {\n"
            "  for (onei, 0, 4) {\n"
            "    if (tid * 4 + onei < 1) {\n"
            "      S[] = A[0, 0]\n"
            "    }\n"
            "  }\n"
            "}\n");
}

TEST_F(ScheduleTest, Reorder) {
  Schedule s(b_);
  auto [jo, ji] = s[b_].Split(s[b_].axis(1), 5);
  s[b_].Reorder({ji, s[b_].axis(0)});  // the places of i and ji, jo stays
  EXPECT_THAT(Text(s), HasSubstr("for (ji, 0, 5) {\n  for (jo, 0, 2) {\n    for (i, 0, 6) {\n"));
}

TEST_F(ScheduleTest, ComputeRootIsTheDefault) {
  Schedule s(d_);
  const std::string plain = Text(s);
  EXPECT_EQ(plain,
            "allocate B: i32[6, 10]\n"
            "for (i, 0, 6) {\n"
            "  for (j, 0, 10) {\n"
            "    B[i, j] = A[i, j] + 1\n"
            "  }\n"
            "}\n"
            "for (i, 0, 6) {\n"
            "  for (j, 0, 10) {\n"
            "    D[i, j] = B[i, j] * 2\n"
            "  }\n"
            "}\n");
  s[b_].ComputeAt(s[d_], s[d_].axis(0)).ComputeRoot();
  EXPECT_EQ(Text(s), plain);
}

TEST_F(ScheduleTest, ComputeAt) {
  Schedule s(d_);
  s[b_].ComputeAt(s[d_], s[d_].axis(0));
  EXPECT_EQ(Text(s),
            "for (i, 0, 6) {\n"
            "  allocate B: i32[1, 10]\n"
            "  for (i_1, 0, 1) {\n"
            "    for (j, 0, 10) {\n"
            "      B[i_1, j] = A[i + i_1, j] + 1\n"
            "    }\n"
            "  }\n"
            "  for (j, 0, 10) {\n"
            "    D[i, j] = B[0, j] * 2\n"
            "  }\n"
            "}\n");
}

TEST_F(ScheduleTest, ComputeInline) {
  Schedule s(d_);
  s[b_].ComputeInline();
  EXPECT_EQ(Text(s),
            "for (i, 0, 6) {\n"
            "  for (j, 0, 10) {\n"
            "    D[i, j] = (A[i, j] + 1) * 2\n"
            "  }\n"
            "}\n");
}

TEST_F(ScheduleTest, CacheRead) {
  Schedule s(b_);
  Tensor al = s.CacheRead(a_, "nmem");
  EXPECT_EQ(al.name(), "A.nmem");
  EXPECT_EQ(Text(s),
            "allocate A.nmem: i32[6, 10] @nmem\n"
            "for (i, 0, 6) {\n"
            "  for (j, 0, 10) {\n"
            "    A.nmem[i, j] = A[i, j]\n"
            "  }\n"
            "}\n"
            "for (i, 0, 6) {\n"
            "  for (j, 0, 10) {\n"
            "    B[i, j] = A.nmem[i, j] + 1\n"
            "  }\n"
            "}\n");
}

TEST_F(ScheduleTest, CacheReadForSomeReaders) {
  Tensor sum = g_.Compute("S", {6, 10}, [&](Expr i, Expr j) { return a_(i, j) + b_(i, j); });
  Schedule s(sum);
  s.CacheRead(a_, "nmem", {sum}, "AL");
  const std::string body = Text(s);
  EXPECT_THAT(body, HasSubstr("B[i, j] = A[i, j] + 1\n"));
  EXPECT_THAT(body, HasSubstr("S[i, j] = AL[i, j] + B[i, j]\n"));
}

TEST_F(ScheduleTest, CacheWriteOfAReduction) {
  Schedule s(r_);
  Tensor rl = s.CacheWrite(r_, "nmem", "RL");
  s[rl].ComputeAt(s[r_], s[r_].axis(0));
  EXPECT_EQ(Text(s),
            "for (i, 0, 6) {\n"
            "  allocate RL: i32[1] @nmem\n"
            "  for (i_1, 0, 1) {\n"
            "    RL[i_1] = -2147483648\n"
            "    for (k, 0, 10) {\n"
            "      RL[i_1] = max(RL[i_1], A[i + i_1, k])\n"
            "    }\n"
            "  }\n"
            "  R[i] = RL[0]\n"
            "}\n");
}

TEST_F(ScheduleTest, CacheWriteOfSeveralResults) {
  std::vector<Tensor> two = g_.ComputeMany(
      "M", {6}, [&](Expr i) { return std::vector<Body>{a_(i, Expr(i)), a_(i, i) * 2}; });
  Schedule s(two);
  Tensor cached = s.CacheWrite(two[1], "nmem");
  EXPECT_EQ(cached.name(), "M.nmem.1");
  EXPECT_EQ(cached.output(0).name(), "M.nmem.0");
  EXPECT_THAT(Text(s), HasSubstr("M.0[i] = M.nmem.0[i]\n  M.1[i] = M.nmem.1[i]\n"));
}

TEST_F(ScheduleTest, KindsOfLoops) {
  Schedule s(b_);
  auto [jo, ji] = s[b_].Split(s[b_].axis(1), 5);
  s[b_].Parallel(s[b_].axis(0)).Unroll(jo).Vectorize(ji);
  EXPECT_THAT(
      Text(s),
      HasSubstr("parallel (i, 0, 6) {\n  unroll (jo, 0, 2) {\n    vectorize (ji, 0, 5) {\n"));
}

TEST_F(ScheduleTest, BindNamesTheLoop) {
  Schedule s(b_);
  s[b_].Bind(s[b_].axis(0), "cid").Bind(s[b_].axis(1), "tid");
  EXPECT_EQ(Text(s),
            "thread (cid, 6) {\n"
            "  thread (tid, 10) {\n"
            "    B[cid, tid] = A[cid, tid] + 1\n"
            "  }\n"
            "}\n");
}

// What all threads share is computed outside their loop, by a loop of its own over them.
TEST_F(ScheduleTest, SiblingStagesShareAThreadAxis) {
  Schedule s(d_);
  s[d_].Bind(s[d_].axis(0), "cid").Bind(s[d_].axis(1), "tid");
  s[b_].SetScope("smem").ComputeAt(s[d_], s[d_].axis(0)).Bind(s[b_].axis(1), "tid");
  EXPECT_EQ(Text(s),
            "thread (cid, 6) {\n"
            "  allocate B: i32[1, 10] @smem\n"
            "  for (i, 0, 1) {\n"
            "    thread (tid, 10) {\n"
            "      B[i, tid] = A[cid + i, tid] + 1\n"
            "    }\n"
            "  }\n"
            "  thread (tid, 10) {\n"
            "    D[cid, tid] = B[0, tid] * 2\n"
            "  }\n"
            "}\n");
}

TEST_F(ScheduleTest, PragmasStandAroundTheirLoop) {
  Schedule s(r_);
  s[r_].Reorder({s[r_].reduce_axis(0), s[r_].axis(0)});
  s[r_].Pragma(s[r_].axis(0), "vmax", {g_.context().I32(6)}).PragmaInit(s[r_].axis(0), "fill");
  EXPECT_EQ(Text(s),
            "pragma \"fill\" {\n"
            "  for (i.init, 0, 6) {\n"
            "    R[i.init] = -2147483648\n"
            "  }\n"
            "}\n"
            "for (k, 0, 10) {\n"
            "  pragma \"vmax\" (6) {\n"
            "    for (i, 0, 6) {\n"
            "      R[i] = max(R[i], A[i, k])\n"
            "    }\n"
            "  }\n"
            "}\n");
}

TEST_F(ScheduleTest, DoubleBuffer) {
  Schedule s(d_);
  s[b_].ComputeAt(s[d_], s[d_].axis(0)).DoubleBuffer().SetScope("nmem");
  EXPECT_THAT(Text(s), HasSubstr("for (i, 0, 6) {\n"
                                 "  pragma \"double_buffer\" {\n"
                                 "    allocate B: i32[1, 10] @nmem\n"));
  s[b_].DoubleBuffer(3);
  EXPECT_THAT(Text(s), HasSubstr("  pragma \"double_buffer\" (i64(3)) {\n"
                                 "    allocate B: i32[1, 10] @nmem\n"));
}

TEST_F(ScheduleTest, StorageAlign) {
  Schedule s(d_);
  s[b_].StorageAlign(s[b_].axis(0), 16, 0);
  EXPECT_THAT(Text(s), HasSubstr("allocate B: i32[6, 16]\n"));
  s[b_].StorageAlign(s[b_].axis(0), 32, 1);  // against bank conflicts; replaces the first
  EXPECT_THAT(Text(s), HasSubstr("allocate B: i32[6, 33]\n"));
  s[b_].StorageAlign(s[b_].axis(0), 10, 0);  // so already
  EXPECT_THAT(Text(s), HasSubstr("allocate B: i32[6, 10]\n"));
}

TEST_F(ScheduleTest, StorageAlignOfOuterDimensions) {
  Tensor p = g_.Placeholder("P", {3, 5, 6}, Type::kI32);
  Tensor q = g_.Compute("Q", {3, 5, 6}, [&](const Axes& i) { return p(i) + 1; });
  Tensor o = g_.Compute("O", {3, 5, 6}, [&](const Axes& i) { return q(i) + 1; });
  Schedule s(o);
  s[q].StorageAlign(s[q].axis(0), 64, 0).StorageAlign(s[q].axis(1), 8, 0);
  EXPECT_THAT(Text(s), HasSubstr("allocate Q: i32[3, 8, 8]\n"));
}

// ---- wrong use ----------------------------------------------------------------------------------

struct WrongUse {
  std::string_view message;
  std::function<void(Schedule&, const Tensor& b, const Tensor& d, const Tensor& r)> program;
};

TEST_F(ScheduleTest, WrongUseIsNamed) {
  const std::vector<WrongUse> cases = {
      {"stage D: Split: axis j is no leaf axis, leaves are [i, jo, ji]",
       [](Schedule& s, auto&, auto& d, auto&) {
         const Axis j = s[d].axis(1);
         s[d].Split(j, 4);
         s[d].Split(j, 2);
       }},
      {"stage B: ComputeWhole: there is no dimension 2",
       [](Schedule& s, auto& b, auto&, auto&) { s[b].ComputeWhole(2); }},
      {"stage D: Split: axis i by 0, expected 1 or more",
       [](Schedule& s, auto&, auto& d, auto&) { s[d].Split(s[d].axis(0), 0); }},
      {"stage D: Split: axis i with -1 places before it, expected 0 or more",
       [](Schedule& s, auto&, auto& d, auto&) { s[d].Split(s[d].axis(0), 3, -1); }},
      {"stage D: SplitParts: axis i by -3, expected 1 or more",
       [](Schedule& s, auto&, auto& d, auto&) { s[d].SplitParts(s[d].axis(0), -3); }},
      {"stage D: Split: the axis is not set",
       [](Schedule& s, auto&, auto& d, auto&) { s[d].Split(Axis(), 4); }},
      {"stage D: Split: axis i belongs to stage B",
       [](Schedule& s, auto& b, auto& d, auto&) { s[d].Split(s[b].axis(0), 4); }},
      {"stage D: Split: axis i is already bound to tid",
       [](Schedule& s, auto&, auto& d, auto&) {
         s[d].Bind(s[d].axis(0), "tid").Split(s[d].axis(0), 4);
       }},
      {"stage D: Split: axis i has a pragma",
       [](Schedule& s, auto&, auto& d, auto&) {
         s[d].Pragma(s[d].axis(0), "x").Split(s[d].axis(0), 4);
       }},
      {"stage D: Split: a stage is computed at axis i",
       [](Schedule& s, auto& b, auto& d, auto&) {
         s[b].ComputeAt(s[d], s[d].axis(0));
         s[d].Split(s[d].axis(0), 4);
       }},
      {"stage D: axis: there is no axis 2 of 2",
       [](Schedule& s, auto&, auto& d, auto&) { s[d].axis(2); }},
      {"stage D: reduce_axis: there is no reduce axis 0 of 0",
       [](Schedule& s, auto&, auto& d, auto&) { s[d].reduce_axis(0); }},
      {"stage D: Fuse: axis i is not right inside axis j",
       [](Schedule& s, auto&, auto& d, auto&) { s[d].Fuse(s[d].axis(1), s[d].axis(0)); }},
      {"stage R: Fuse: of i and k one is a reduce axis, expected both or none",
       [](Schedule& s, auto&, auto&, auto& r) { s[r].Fuse(s[r].axis(0), s[r].reduce_axis(0)); }},
      {"stage D: Reorder: axis i is named twice",
       [](Schedule& s, auto&, auto& d, auto&) {
         s[d].Reorder({s[d].axis(0), s[d].axis(1), s[d].axis(0)});
       }},
      {"stage D: Reorder: axis i is no leaf axis",
       [](Schedule& s, auto&, auto& d, auto&) {
         const Axis i = s[d].axis(0);
         s[d].Split(i, 2);
         s[d].Reorder({i, s[d].axis(1)});
       }},
      {"stage B: ComputeAt: a stage can not be computed inside itself",
       [](Schedule& s, auto& b, auto&, auto&) { s[b].ComputeAt(s[b], s[b].axis(0)); }},
      {"stage D: ComputeAt: the stage is an output",
       [](Schedule& s, auto& b, auto& d, auto&) { s[d].ComputeAt(s[b], s[b].axis(0)); }},
      {"stage D: ComputeAt of B: axis k belongs to stage R",
       [](Schedule& s, auto& b, auto& d, auto& r) { s[b].ComputeAt(s[d], s[r].reduce_axis(0)); }},
      {"stage B: ComputeAt: the stage is inlined",
       [](Schedule& s, auto& b, auto& d, auto&) {
         s[b].ComputeInline().ComputeAt(s[d], s[d].axis(0));
       }},
      {"stage B: ComputeRoot: the stage is inlined",
       [](Schedule& s, auto& b, auto&, auto&) { s[b].ComputeInline().ComputeRoot(); }},
      // R does not read B.
      {"stage B: ComputeAt(R, i): stage D reads B outside that loop",
       [](Schedule& s, auto& b, auto&, auto& r) { s[b].ComputeAt(s[r], s[r].axis(0)); }},
      {"stage D: ComputeInline: the stage is an output",
       [](Schedule& s, auto&, auto& d, auto&) { s[d].ComputeInline(); }},
      {"stage B: ComputeInline: the stage is computed at an axis of another one",
       [](Schedule& s, auto& b, auto& d, auto&) {
         s[b].ComputeAt(s[d], s[d].axis(0)).ComputeInline();
       }},
      {"stage D: Bind: axis i is already bound to tid",
       [](Schedule& s, auto&, auto& d, auto&) {
         s[d].Bind(s[d].axis(0), "tid").Bind(s[d].axis(0), "cid");
       }},
      {"stage D: Bind: axis i is bound to tid already",
       [](Schedule& s, auto&, auto& d, auto&) {
         s[d].Bind(s[d].axis(0), "tid").Bind(s[d].axis(1), "tid");
       }},
      {"stage D: Bind: \"warp\" is no thread axis, expected one of cid, tid, blockIdx.x,",
       [](Schedule& s, auto&, auto& d, auto&) { s[d].Bind(s[d].axis(0), "warp"); }},
      {"stage R: Bind: axis k is a reduce axis",
       [](Schedule& s, auto&, auto&, auto& r) { s[r].Bind(s[r].reduce_axis(0), "tid"); }},
      {"stage R: Vectorize: axis k is a reduce axis",
       [](Schedule& s, auto&, auto&, auto& r) { s[r].Vectorize(s[r].reduce_axis(0)); }},
      {"stage R: Parallel: axis k is a reduce axis",
       [](Schedule& s, auto&, auto&, auto& r) { s[r].Parallel(s[r].reduce_axis(0)); }},
      {"stage D: Unroll: axis i is already vectorized",
       [](Schedule& s, auto&, auto& d, auto&) {
         s[d].Vectorize(s[d].axis(0)).Unroll(s[d].axis(0));
       }},
      {"stage B: axis j is bound to tid, but the stage is computed inside the loop i of stage D "
       "over the same threads",
       [](Schedule& s, auto& b, auto& d, auto&) {
         s[d].Bind(s[d].axis(0), "tid");
         s[b].ComputeAt(s[d], s[d].axis(0)).Bind(s[b].axis(1), "tid");
       }},
      {"stage R: PragmaInit: axis k is a reduce axis",
       [](Schedule& s, auto&, auto&, auto& r) { s[r].PragmaInit(s[r].reduce_axis(0), "x"); }},
      {"stage D: PragmaInit: the stage is no reduction",
       [](Schedule& s, auto&, auto& d, auto&) { s[d].PragmaInit(s[d].axis(0), "x"); }},
      {"stage D: SetScope: the stage is an output, the caller owns its memory",
       [](Schedule& s, auto&, auto& d, auto&) { s[d].SetScope("nmem"); }},
      {"stage D: DoubleBuffer: the stage is an output",
       [](Schedule& s, auto&, auto& d, auto&) { s[d].DoubleBuffer(); }},
      {"stage B: DoubleBuffer: 4 copies, expected 2 or 3",
       [](Schedule& s, auto& b, auto&, auto&) { s[b].DoubleBuffer(4); }},
      {"stage D: InPlace: the stage is an output",
       [](Schedule& s, auto& b, auto& d, auto&) { s[d].InPlace(b); }},
      {"stage B: InPlace: the tensor is not set",
       [](Schedule& s, auto& b, auto&, auto&) { s[b].InPlace(Tensor()); }},
      {"stage D: StorageAlign: the stage is an output",
       [](Schedule& s, auto&, auto& d, auto&) { s[d].StorageAlign(s[d].axis(0), 16, 0); }},
      {"stage B: StorageAlign: axis j is the last dimension, its stride is 1",
       [](Schedule& s, auto& b, auto&, auto&) { s[b].StorageAlign(s[b].axis(1), 16, 0); }},
      {"stage B: StorageAlign: axis jo is no dimension of the stage",
       [](Schedule& s, auto& b, auto&, auto&) {
         auto [jo, ji] = s[b].Split(s[b].axis(1), 2);
         s[b].StorageAlign(jo, 16, 0);
       }},
      {"stage B: StorageAlign: factor 16 and offset 16, expected 0 <= offset < factor",
       [](Schedule& s, auto& b, auto&, auto&) { s[b].StorageAlign(s[b].axis(0), 16, 16); }},
      {"stage D: CacheWrite: the stage's axes were changed before",
       [](Schedule& s, auto&, auto& d, auto&) {
         s[d].Split(s[d].axis(0), 2);
         s.CacheWrite(d, "nmem");
       }},
      {"stage B: CacheWrite: the stage is inlined",
       [](Schedule& s, auto& b, auto&, auto&) {
         s[b].ComputeInline();
         s.CacheWrite(b, "nmem");
       }},
      {"stage R: CacheRead: it does not read B",
       [](Schedule& s, auto& b, auto&, auto& r) { s.CacheRead(b, "nmem", {r}); }},
      {"CacheRead: no stage reads D",
       [](Schedule& s, auto&, auto& d, auto&) { s.CacheRead(d, "nmem"); }},
      {"CacheRead: the tensor is not set",
       [](Schedule& s, auto&, auto&, auto&) { s.CacheRead(Tensor(), "nmem"); }},
      {"the tensor is not set", [](Schedule& s, auto&, auto&, auto&) { s[Tensor()]; }},
  };
  for (const WrongUse& wrong : cases) {
    Schedule s(std::vector<Tensor>{d_, r_});
    wrong.program(s, b_, d_, r_);
    const absl::StatusOr<ir::Function> function = Lower(s);
    EXPECT_EQ(function.status().code(), absl::StatusCode::kInvalidArgument) << wrong.message;
    EXPECT_THAT(std::string(function.status().message()), HasSubstr(wrong.message));
  }
}

TEST_F(ScheduleTest, ReadersMustBeInsideTheLoop) {
  Tensor e = g_.Compute("E", {6, 10}, [&](Expr i, Expr j) { return b_(i, j) + d_(i, j); });
  {
    Schedule s(e);
    s[b_].ComputeAt(s[d_], s[d_].axis(0));
    EXPECT_THAT(Text(s), HasSubstr("stage B: ComputeAt(D, i): stage E reads B outside that loop"));
  }
  {
    Schedule s(e);  // D inside the same loop, after B
    s[b_].ComputeAt(s[e], s[e].axis(0));
    s[d_].ComputeAt(s[e], s[e].axis(0));
    EXPECT_THAT(Text(s), HasSubstr("allocate B: i32[1, 10]\n  allocate D: i32[1, 10]\n"));
  }
  {
    Schedule s(e);  // D outside of the loop in which B is computed
    s[b_].ComputeAt(s[e], s[e].axis(1));
    s[d_].ComputeAt(s[e], s[e].axis(0));
    EXPECT_THAT(Text(s), HasSubstr("stage B: ComputeAt(E, j): stage D reads B outside that loop"));
  }
  {
    Schedule s(e);
    s[b_].ComputeInline();
    s[d_].ComputeAt(s[b_], s[b_].axis(0));
    EXPECT_THAT(Text(s), HasSubstr("stage D: ComputeAt(B, i): stage B is inlined or needed by no"));
  }
  {
    Schedule s(e);  // backwards
    s[d_].ComputeAt(s[b_], s[b_].axis(0));
    EXPECT_THAT(Text(s), HasSubstr("stage D: ComputeAt(B, i): stage B does not read D"));
  }
}

// Y = max(T, U), T = 2 X, U = T + 1 in tiles of four, each stage in place where a case says so.
struct Chain {
  Chain()
      : x(g.Placeholder("X", {12}, Type::kI32)),
        t(g.Compute("T", {12}, [&](Expr i) { return x(i) * 2; })),
        u(g.Compute("U", {12}, [&](Expr i) { return t(i) + 1; })),
        y(g.Compute("Y", {12}, [&](Expr i) { return ir::Max(t(i), u(i)); })),
        s(y) {
    local = s.CacheWrite(y, "nmem");
    auto [io, ii] = s[y].Split(s[y].axis(0), 4);
    for (const Tensor& stage : {t, u, local}) {
      s[stage].ComputeAt(s[y], io).SetScope("nmem");
    }
    outer = io;
  }
  Graph g{"chain"};
  Tensor x, t, u, y, local;
  Schedule s;
  Axis outer;
};

TEST_F(ScheduleTest, InPlace) {
  Chain c;
  c.s[c.local].InPlace(c.t);
  EXPECT_EQ(Text(c.s), R"(for (io, 0, 3) {
  allocate U: i32[4] @nmem
  allocate Y.nmem: i32[4] @nmem
  for (i, 0, 4) {
    Y.nmem[i] = X[io * 4 + i] * 2
  }
  for (i, 0, 4) {
    U[i] = Y.nmem[i] + 1
  }
  for (i, 0, 4) {
    Y.nmem[i] = max(Y.nmem[i], U[i])
  }
  for (ii, 0, 4) {
    Y[io * 4 + ii] = Y.nmem[ii]
  }
}
)");
}

TEST_F(ScheduleTest, InPlaceMoreThanOnce) {
  Tensor q = g_.Compute("Q", {6, 10}, [&](const Axes& i) { return b_(i) * 2; });
  Tensor o = g_.Compute("O", {6, 10}, [&](const Axes& i) { return q(i) + 1; });
  Tensor p = g_.Compute("P", {6, 10}, [&](const Axes& i) { return o(i) - 3; });
  Schedule s(p);
  s[q].InPlace(b_);
  s[o].InPlace(q);
  const std::string text = Text(s);
  EXPECT_THAT(text, HasSubstr("allocate O: i32[6, 10]\n"));
  EXPECT_THAT(text, Not(HasSubstr("allocate Q")));
  EXPECT_THAT(text, Not(HasSubstr("allocate B")));
  EXPECT_THAT(text, HasSubstr("O[i, j] = O[i, j] * 2\n"));
  EXPECT_THAT(text, HasSubstr("O[i, j] = O[i, j] + 1\n"));
}

TEST_F(ScheduleTest, WhatIsNotInPlace) {
  struct Case {
    const char* message;
    void (*program)(Chain&);
  };
  const Case cases[] = {
      {"stage U: InPlace(T): stage Y.nmem reads it later or in another loop",
       [](Chain& c) { c.s[c.u].InPlace(c.t); }},
      {"stage Y.nmem: InPlace(X): no stage of the program computes it",
       [](Chain& c) { c.s[c.local].InPlace(c.x); }},
      {"stage T: InPlace(U): stage Y.nmem reads it later or in another loop",
       [](Chain& c) { c.s[c.t].InPlace(c.u); }},
      {"stage Y.nmem: InPlace(Y): it is an output", [](Chain& c) { c.s[c.local].InPlace(c.y); }},
      {"stage Y.nmem: InPlace(T): the scopes differ",
       [](Chain& c) { c.s[c.local].InPlace(c.t).SetScope("smem"); }},
      {"stage Y.nmem: InPlace(T): DoubleBuffer and StorageAlign belong to the stage computed",
       [](Chain& c) {
         c.s[c.local].InPlace(c.t);
         c.s[c.t].DoubleBuffer();
       }},
      {"stage Y.nmem: InPlace(U): stage Y.nmem reads it later or in another loop",
       [](Chain& c) {
         c.s[c.local].InPlace(c.u);
         c.s[c.u].ComputeRoot();
         c.s[c.t].ComputeRoot();
       }},
  };
  for (const Case& wrong : cases) {
    Chain c;
    wrong.program(c);
    EXPECT_THAT(Text(c.s), HasSubstr(wrong.message));
  }
}

TEST_F(ScheduleTest, InPlaceReadsItsOwnElement) {
  const auto text = [&](Type type, Expr (*value)(const Tensor& t, Expr i)) {
    Graph g("shift");
    Tensor x = g.Placeholder("X", {12}, Type::kI32);
    Tensor t = g.Compute("T", {12}, [&](Expr i) { return x(i) * 2; });
    Tensor u = g.Compute("U", {8}, [&](Expr i) { return g.context().Cast(type, value(t, i)); });
    Tensor y = g.Compute("Y", {8}, [&](Expr i) { return u(i); });
    Schedule s(y);
    s[u].InPlace(t);
    return Text(s);
  };
  EXPECT_THAT(text(Type::kI32, [](const Tensor& t, Expr i) { return t(i + 1); }),
              HasSubstr("InPlace(T): another element than the one that is computed is read"));
  EXPECT_THAT(text(Type::kI32, [](const Tensor& t, Expr i) { return t(i) + t(i + 4); }),
              HasSubstr("InPlace(T): another element than the one that is computed is read"));
  EXPECT_THAT(text(Type::kF32, [](const Tensor& t, Expr i) { return t(i); }),
              HasSubstr("InPlace(T): the types differ"));
  EXPECT_THAT(text(Type::kI32, [](const Tensor& t, Expr i) { return t(i); }),
              HasSubstr("InPlace(T): other parts of the two are computed there"));
}

TEST_F(ScheduleTest, ReductionsAreNotInlined) {
  Tensor after = g_.Compute("O", {6}, [&](Expr i) { return r_(i) + 1; });
  Schedule s(after);
  s[r_].ComputeInline();
  EXPECT_THAT(Text(s), HasSubstr("stage R: ComputeInline: the stage is a reduction"));
}

TEST_F(ScheduleTest, AlignmentThatNoPaddingReaches) {
  Tensor p = g_.Placeholder("P", {3, 5, 6}, Type::kI32);
  Tensor q = g_.Compute("Q", {3, 5, 6}, [&](const Axes& i) { return p(i) + 1; });
  Tensor o = g_.Compute("O", {3, 5, 6}, [&](const Axes& i) { return q(i) + 1; });
  Schedule s(o);
  s[q].StorageAlign(s[q].axis(0), 8, 1);  // multiples of 6 are never 1 modulo 8
  EXPECT_THAT(Text(s),
              HasSubstr("stage Q: StorageAlign: no padding of dimension 1 makes the stride "
                        "of axis i 1 modulo 8"));
}

TEST_F(ScheduleTest, TheFirstMistakeCounts) {
  Schedule s(d_);
  auto [io, ii] = s[d_].Split(s[d_].axis(0), 0);
  s[d_].Bind(io, "tid").Vectorize(ii);
  s[s.CacheRead(a_, "nmem")].ComputeAt(s[d_], io);
  EXPECT_EQ(s.status().message(), "stage D: Split: axis i by 0, expected 1 or more");
  EXPECT_EQ(Lower(s).status(), s.status());
}

TEST_F(ScheduleTest, OutputsMustBeComputesOfOneGraph) {
  Graph other("other");
  Tensor p = other.Placeholder("P", {2}, Type::kI32);
  Tensor q = other.Compute("Q", {2}, [&](Expr i) { return p(i); });
  auto error = [](const std::vector<Tensor>& outputs) {
    Schedule s(outputs);
    return std::string(Lower(s).status().message());
  };
  EXPECT_EQ(error({}), "a schedule needs an output");
  EXPECT_EQ(error({Tensor()}), "output 0 is not set");
  EXPECT_EQ(error({d_, q}), "output Q belongs to another graph than D");
  EXPECT_EQ(error({p}), "output P is an input, expected a compute");
  EXPECT_EQ(error({d_, r_, d_}), "output D is named twice");
  Schedule s(b_);
  s[a_];
  EXPECT_EQ(s.status().message(), "tensor A has no stage: it is an input");
  Schedule t(b_);
  t[d_];
  EXPECT_EQ(t.status().message(), "tensor D has no stage: no output needs it");
}

}  // namespace
}  // namespace polynao::te
