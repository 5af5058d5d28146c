#include "compiler/poly/arrange/auto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/passes/affine_program_for_test.h"
#include "compiler/poly/arrange/cost_model.h"
#include "compiler/poly/arrange/loop_model.h"
#include "compiler/poly/arrange/machine_for_test.h"
#include "compiler/poly/isl/tree.h"
#include "compiler/poly/model/assumed.h"
#include "compiler/poly/model/expand.h"
#include "compiler/poly/model/extract.h"
#include "compiler/poly/order/schedule.h"
#include "compiler/poly/poly.h"

namespace polynao::poly {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kMatmul[] =
    "func f(C: f64[n, n], A: f64[n, n] in, B: f64[n, n] in, n: i32) {\n"
    "  for (i, 0, n) { for (j, 0, n) { for (k, 0, n) {\n"
    "    C[i, j] = C[i, j] + A[i, k] * B[k, j] } } }\n"
    "}\n";

// The first innermost band of a function's only part, in its original order as one band.
struct Band {
  explicit Band(const std::string& text, int64_t assumed = 1000)
      : function(*ir::ParseFunction(text)),
        extraction(*Extract(function, {})),
        scop(extraction.scops.at(0)),
        dependences(ComputeDependences(scop)) {
    isl::schedule_node node = ComputeSchedule(scop, dependences, Strategy::kSmart).root();
    while (!IsBand(node) || HasBandBelow(node)) node = node.child(0);
    band = node.as<isl::schedule_node_band>().partial_schedule();
    model = ModelOf(scop, PlaceOf(node), *band, AssumeParameters(scop, assumed));
  }

  ir::Function function;
  Extraction extraction;
  const Scop& scop;
  Dependences dependences;
  std::optional<isl::multi_union_pw_aff> band;
  LoopModel model;
};

const LinearAccess& AccessOf(const StatementModel& s, const std::string& name) {
  for (const LinearAccess& a : s.accesses) {
    if (a.buffer->name == name) return a;
  }
  ADD_FAILURE() << name;
  return s.accesses.front();
}

// isl keeps the loops of this nest in some order; here the member that steps a given index.
int MemberOf(const LinearAccess& access, size_t dimension) {
  for (size_t m = 0; m < access.steps[dimension].size(); ++m) {
    if (access.steps[dimension][m] != 0) return static_cast<int>(m);
  }
  return -1;
}

TEST(LoopModelTest, StepsOfMatmul) {
  const Band f(kMatmul);
  ASSERT_EQ(f.model.statements.size(), 1u);
  const StatementModel& s = f.model.statements[0];
  EXPECT_THAT(s.extents, ElementsAre(1000, 1000, 1000));
  ASSERT_EQ(s.accesses.size(), 3u);  // C, which is read and stored, A, and B
  const LinearAccess& c = AccessOf(s, "C");
  EXPECT_TRUE(c.is_read && c.is_write);
  const int i = MemberOf(c, 0), j = MemberOf(c, 1), k = MemberOf(AccessOf(s, "A"), 1);
  EXPECT_EQ(c.StrideAlong(i), Stride::kOther);
  EXPECT_EQ(c.StrideAlong(j), Stride::kOne);
  EXPECT_EQ(c.StrideAlong(k), Stride::kNone);
  EXPECT_EQ(AccessOf(s, "B").StrideAlong(k), Stride::kOther);
  EXPECT_EQ(AccessOf(s, "A").StrideAlong(j), Stride::kNone);
}

// Dimensions of one element are no dimensions: neighbours are along the one before.
TEST(LoopModelTest, RowsBeforeDimensionsOfOne) {
  const Band f(
      "func f(A: f32[n, m, 1, 1] in, B: f32[n, m], n: i32, m: i32) {\n"
      "  for (i, 0, n) { for (j, 0, m) { B[i, j] = A[i, j, 0, 0] + A[i, 2 * j, 0, 0] } }\n"
      "}\n");
  const StatementModel& s = f.model.statements.at(0);
  const int i = MemberOf(AccessOf(s, "B"), 0), j = MemberOf(AccessOf(s, "B"), 1);
  int twos = 0;
  for (const LinearAccess& a : s.accesses) {
    EXPECT_EQ(a.StrideAlong(i), Stride::kOther);
    EXPECT_EQ(a.ElementsAlong(i), std::nullopt);
    twos += a.ElementsAlong(j) == 2;
    EXPECT_EQ(a.StrideAlong(j), a.ElementsAlong(j) == 2 ? Stride::kOther : Stride::kOne);
  }
  EXPECT_EQ(twos, 1);
}

// Rows of few elements are near each other; of unknown ones it is not known.
TEST(LoopModelTest, ElementsAlongMembers) {
  const Band f(
      "func f(A: f32[100, 7, 3] in, B: f32[n, m] in, C: f32[100, 7], n: i32, m: i32) {\n"
      "  for (i, 0, 100) { for (j, 0, 7) { C[i, j] = A[i, j, 1] + B[i, j] } }\n"
      "}\n");
  const StatementModel& s = f.model.statements.at(0);
  const int i = MemberOf(AccessOf(s, "C"), 0), j = MemberOf(AccessOf(s, "C"), 1);
  EXPECT_EQ(AccessOf(s, "A").ElementsAlong(i), 21);
  EXPECT_EQ(AccessOf(s, "A").ElementsAlong(j), 3);
  EXPECT_EQ(AccessOf(s, "B").ElementsAlong(i), std::nullopt);
  EXPECT_EQ(AccessOf(s, "B").ElementsAlong(j), 1);
}

// In skewed loops one step of a member moves several iterators, and a part of its range has iterations.
TEST(LoopModelTest, SkewedLoops) {
  const Band f(
      "func f(A: f64[n], B: f64[n], n: i32, t: i32) {\n"
      "  for (s, 0, t) {\n"
      "    for (i, 1, n - 2) { B[i] = A[i - 1] + A[i + 1] }\n"
      "    for (i, 1, n - 2) { A[i] = B[i - 1] + B[i + 1] }\n"
      "  }\n"
      "}\n");
  ASSERT_EQ(f.model.statements.size(), 2u);
  for (const StatementModel& s : f.model.statements) {
    EXPECT_LE(s.extents[0], 1000);
    EXPECT_EQ(s.extents[1], 998);
    for (const LinearAccess& a : s.accesses) EXPECT_THAT(a.steps, ElementsAre(ElementsAre(-2, 1)));
  }
}

// What an iteration waits for: the shortest way from an element of the stored buffer to the store.
TEST(LoopModelTest, Chains) {
  const auto chain = [](const std::string& value) {
    const Band f("func f(x: f64[n], A: f64[n], n: i32) { for (i, 1, n - 1) { x[i] = " + value +
                 " } }");
    return f.model.statements.at(0).chain_cycles;
  };
  EXPECT_EQ(chain("A[i] + A[i - 1]"), 0);
  EXPECT_EQ(chain("x[i - 1] + A[i]"), 4);
  EXPECT_EQ(chain("A[i] * x[i - 1] + A[i - 1]"), 4);  // a product and a sum are one operation
  EXPECT_EQ(chain("1.0 / (x[i - 1] + A[i])"), 4 + 13);
  EXPECT_EQ(chain("(x[i - 1] / A[i] + A[i]) * x[i]"), 4);
}

TEST(CostModelTest, MatmulGetsATileOfRegisters) {
  const Band f(kMatmul);
  const StatementModel& s = f.model.statements[0];
  const int j = MemberOf(AccessOf(s, "C"), 1), k = MemberOf(AccessOf(s, "A"), 1);
  std::vector<Carried> carried(3, Carried::kNothing);
  carried[static_cast<size_t>(k)] = Carried::kOrder;
  CpuMachine machine;  // 16 registers of 4 doubles
  const PointPlan plan = PlanPoints(s, {0, 1, 2}, carried, machine);
  EXPECT_EQ(plan.order.back(), j);
  EXPECT_EQ(plan.serial, k);
  ASSERT_EQ(plan.jam.size(), 3u);
  int64_t elements = 1;
  for (const int64_t n : plan.jam) elements *= n;
  EXPECT_GE(elements, 4 * 4);
  EXPECT_LE(elements, 16 * 4);
  EXPECT_LT(plan.cycles, 0.3);
  // Nothing can be a vector: no tile.
  EXPECT_TRUE(
      PlanPoints(s, {0, 1, 2}, std::vector<Carried>(3, Carried::kOrder), machine).jam.empty());
}

TEST(CostModelTest, TilesFitIntoTheCacheAndCutParallelLoops) {
  const Band f(kMatmul);
  const StatementModel& s = f.model.statements[0];
  const int i = MemberOf(AccessOf(s, "C"), 0), j = MemberOf(AccessOf(s, "C"), 1);
  for (const int64_t kib : {64, 256, 1024, 4096}) {
    CpuMachine machine;
    machine.cache_bytes = kib * 1024;
    const TileQuery query{.members = {0, 1, 2},
                          .multiples = {4, 4, 4},
                          .may_be_one = {false, false, false},
                          .together = true,
                          .rows = {{.member = j, .cycles = 12, .instances = 1e9}},
                          .innermost = j,
                          .serial = -1,
                          .serial_cycles = 0,
                          .jam = {},
                          .far_cycles = 0,
                          .parallel = i,
                          .is_wave = false,
                          .is_inside_parallel = false,
                          .point_cycles = 0};
    const TilePlan plan = PlanTiles(f.model, query, machine);
    ASSERT_EQ(plan.sizes.size(), 3u);
    double bytes = 0;
    for (const LinearAccess& a : s.accesses) {
      double elements = 1;
      for (const std::vector<int64_t>& row : a.steps) {
        for (size_t m = 0; m < row.size(); ++m) {
          if (row[m] != 0) elements *= static_cast<double>(std::min<int64_t>(plan.sizes[m], 1000));
        }
      }
      bytes += 8 * elements;
    }
    EXPECT_LE(bytes, static_cast<double>(machine.cache_bytes)) << kib;
    EXPECT_LE(plan.sizes[static_cast<size_t>(i)], 128) << kib;
    for (const int64_t size : plan.sizes) EXPECT_EQ(size % 4, 0);
  }
}

// Twelve sizes for each of eight loops are 430 million tilings: not all may be tried. (A transposed convolution of
// 3 x 3 pixels took 97 s, in which short loops had sizes that they cannot have.)
TEST(AutoTest, NestsOfManyLoopsHaveTiles) {
  for (const int64_t extent : {2, 3, 100}) {
    std::string indices, loops, ends, shape;
    for (const char* name : {"a", "b", "c", "d", "e", "g", "h", "i"}) {
      StrAppend(&indices, indices.empty() ? "" : ", ", name);
      StrAppend(&shape, shape.empty() ? "" : ", ", "n");
      StrAppend(&loops, "for (", name, ", 0, n) { ");
      StrAppend(&ends, "}");
    }
    const std::string text =
        StrCat("func f(X: f32[", shape, "] in, Y: f32[", shape, "], n: i32) { ", loops, "Y[",
               indices, "] = Y[", indices, "] + X[", indices, "] ", ends, " }");
    ir::Function f = *ir::ParseFunction(text);
    ScheduleOptions options;
    options.machine = SmallMachine();
    options.machine.assumed_extent = extent;
    const absl::StatusOr<ScheduleReport> report = Schedule(f, options);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_THAT(report->internal_errors, testing::IsEmpty());
    EXPECT_THAT(ir::Print(f), HasSubstr("vectorize")) << report->ToString();
  }
}

// What `auto` says of its loops on a machine of two cores.
std::string Choices(const std::string& text, bool reassociate = true) {
  ir::Function f = *ir::ParseFunction(text);
  const absl::StatusOr<ScheduleReport> report = Schedule(f, {.reassociate = reassociate});
  EXPECT_TRUE(report.ok()) << report.status();
  return report->ToString();
}

// Each row divides by what the last one has: 17 cycles for an iteration that waits, so rows side by side are faster,
// though they are far apart in memory.
TEST(ChoicesTest, LongChainsRunSideBySide) {
  const std::string chains =
      "func f(p: f64[n, n], n: i32) {\n"
      "  for (i, 0, n) { for (j, 1, n - 1) { p[i, j] = 1.0 / (p[i, j - 1] + 2.0) } }\n"
      "}\n";
  EXPECT_THAT(Choices(chains), HasSubstr("loop 0 a vector"));
  const std::string sums =
      "func f(p: f64[n, n], n: i32) {\n"
      "  for (i, 0, n) { for (j, 1, n - 1) { p[i, j] = p[i, j - 1] + 2.0 } }\n"
      "}\n";
  EXPECT_THAT(Choices(sums), AllOf(HasSubstr("innermost"), Not(HasSubstr("vector"))));
}

// What the first loop over a row has brought into the cache is there for the second: one pass over A by one core is
// less than two by two cores, which share the memory.
TEST(ChoicesTest, OnePassOverAMatrix) {
  const std::string text = Choices(
      "func f(A: f64[n, n] in, x: f64[n] in, y: f64[n], tmp: f64[n] out, n: i32) {\n"
      "  for (i, 0, n) {\n"
      "    tmp[i] = 0.0\n"
      "    for (j, 0, n) { tmp[i] = tmp[i] + A[i, j] * x[j] }\n"
      "    for (j, 0, n) { y[j] = y[j] + A[i, j] * tmp[i] }\n"
      "  }\n"
      "}\n");
  EXPECT_THAT(text, HasSubstr("a loop around others\n"));
  EXPECT_THAT(text, Not(HasSubstr("parallel")));
}

// Both statements load A[i, j]: one loop runs both. Where iterations are not the same ones, each has its own.
TEST(ChoicesTest, StatementsShareALoop) {
  const auto text = [](const std::string& second) {
    return "func f(A: f64[n, n] in, r: f64[n] in, p: f64[n] in, q: f64[n], s: f64[n], n: i32) {\n"
           "  for (i, 0, n) { for (j, 0, n) {\n"
           "    s[j] = s[j] + r[i] * A[i, j]\n    " +
           second + "\n  } }\n}\n";
  };
  EXPECT_THAT(Choices(text("q[i] = q[i] + A[i, j] * p[j]")), HasSubstr("1 loop, loop 0 innermost"));
  EXPECT_THAT(Choices(text("if (j < i) { q[i] = q[i] + A[i, j] * p[j] }")),
              Not(HasSubstr("1 loop, loop 0 innermost")));
}

// Lines that are stored to come and go, those that are loaded come: copies to another order store along rows.
TEST(ChoicesTest, TransposesStoreAlongRows) {
  const auto text = [](const std::string& from) {
    return "func f(X: f32[n, n, n] in, Y: f32[n, n, n] out, n: i32) {\n"
           "  for (i, 0, n) { for (j, 0, n) { for (k, 0, n) { Y[i, j, k] = X[" +
           from + "] } } }\n}\n";
  };
  for (const char* from : {"k, j, i", "k, i, j", "i, k, j"}) {
    ir::Function f = *ir::ParseFunction(text(from));
    ASSERT_TRUE(Schedule(f, {}).ok());
    const std::string code = ir::Print(f);
    const size_t vector = code.find("vectorize (");
    ASSERT_NE(vector, std::string::npos) << code;
    const std::string lane = code.substr(vector + 11, code.find(':', vector) - vector - 11);
    EXPECT_THAT(code, HasSubstr(StrCat(", ", lane, "] = X["))) << code;
  }
}

// Few iterations are written out, and the next row does not wait for them: neither gathered vectors of rows nor masked
// ones of few lanes.
TEST(ChoicesTest, ShortRows) {
  const auto sums = [](int64_t count) {
    return StrCat("func f(X: f32[10000, ", count, "] in, Y: f32[10000]) {\n",
                  "  for (i, 0, 10000) { for (k, 0, ", count,
                  ") { Y[i] = max(Y[i], X[i, k]) } }\n}\n");
  };
  EXPECT_THAT(Choices(sums(8), false), Not(HasSubstr("in registers")));
  EXPECT_THAT(Choices(sums(8), false), HasSubstr("adds up"));
  EXPECT_THAT(Choices(sums(100), false), HasSubstr("in registers"));
  // Rows of 4096 bytes, of which a cache of 32 KiB has places for eight.
  EXPECT_THAT(Choices(sums(1024), false), HasSubstr("adds up"));
  EXPECT_THAT(Choices(sums(1000), false), HasSubstr("in registers"));
  const auto copies = [](int64_t channels) {
    return StrCat("func f(X: f32[100, 100, ", channels, "] in, Y: f32[102, 102, ", channels,
                  "]) {\n  for (y, 0, 100) { for (x, 0, 100) { for (c, 0, ", channels,
                  ") {\n    Y[y + 1, x + 1, c] = X[y, x, c] } } }\n}\n");
  };
  EXPECT_THAT(Choices(copies(3)), Not(HasSubstr("vector")));
  EXPECT_THAT(Choices(copies(4)), HasSubstr("vector"));
}

// Guards of the program are taken out of loops that have no tiles (loop_partition); those of tiles stay.
TEST(ChoicesTest, LoopsWithoutTilesMayBePartitioned) {
  const auto is_partitioned = [](const std::string& text) {
    ir::Function f = *ir::ParseFunction(text);
    EXPECT_TRUE(Schedule(f, {}).ok());
    return f.FindAttribute("partitioned") != nullptr;
  };
  EXPECT_FALSE(
      is_partitioned("func f(X: f32[100, 100] in, Y: f32[102, 102] out) {\n"
                     "  for (y, 0, 102) { for (x, 0, 102) { Y[y, x] =\n"
                     "    select(0 < y && y < 101 && 0 < x && x < 101, X[y - 1, x - 1], "
                     "0.0) } }\n}\n"));
  EXPECT_TRUE(is_partitioned(kMatmul));
}

std::string Expanded(const std::string& text) {
  ir::Function f = *ir::ParseFunction(text);
  const ir::Function before = f;
  ExpandScalars(f);
  bool stops = false;
  EXPECT_EQ(CompareMeaningOnRandomArguments(before, f, 1, &stops), "");
  return ir::Print(f);
}

TEST(ExpandTest, AScalarForEachIteration) {
  const std::string text = Expanded(
      "func f(A: i32[n, n] in, C: i32[n, n], n: i32) {\n"
      "  allocate w: i32[]\n"
      "  for (i, 0, n) { for (j, 0, i) {\n"
      "    w[] = 0\n"
      "    for (k, 0, n) { w[] = w[] + A[j, k] }\n"
      "    C[i, j] = w[]\n"
      "  } }\n"
      "}\n");
  // `i` iterations, but extents have no loop variables: at most n.
  EXPECT_THAT(text, HasSubstr("allocate w: i32[max(0 + cast(i64, n) - 1, 0)]"));
  EXPECT_THAT(text, HasSubstr("w[j] = w[j] + A[j, k]"));
}

TEST(ExpandTest, ValuesThatLiveAcrossIterationsStay) {
  const std::string text = Expanded(
      "func f(A: i32[n] in, C: i32[n], n: i32) {\n"
      "  allocate w: i32[]\n"
      "  w[] = 1\n"
      "  C[0] = 2\n"
      "  for (i, 0, n) { w[] = w[] + A[i] for (j, 0, n) { C[j] = C[j] + w[] } }\n"
      "}\n");
  EXPECT_THAT(text, HasSubstr("allocate w: i32[]\n"));
  EXPECT_THAT(text, Not(HasSubstr("w[i]")));
}

TEST(ExpandTest, BranchesThatMayNotStore) {
  const std::string text = Expanded(
      "func f(A: i32[n] in, C: i32[n], n: i32) {\n"
      "  allocate w: i32[]\n"
      "  w[] = 7\n"
      "  for (i, 0, n) {\n"
      "    if (0 < A[i]) { w[] = A[i] }\n"
      "    for (j, 0, n) { C[j] = C[j] + w[] }\n"
      "  }\n"
      "}\n");
  EXPECT_THAT(text, Not(HasSubstr("w[i]")));
}

// `w[] = 1` reads nothing, but may not run: what stands behind it reads what was stored before.
TEST(ExpandTest, StoresUnderConditionsBeginNothing) {
  for (const char* store : {"if (0 < A[i]) { w[] = 1 }", "for (k, 0, A[i] & 1) { w[] = 1 }"}) {
    const std::string text =
        Expanded(std::string("func f(A: i32[8] in, C: i32[8]) { for (i, 0, 8) {\n"
                             "  allocate w: i32[]\n"
                             "  w[] = 0 ") +
                 store + " C[i] = w[] } }\n");
    const size_t first = text.find("allocate");
    EXPECT_EQ(text.find("allocate", first + 1), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace polynao::poly
