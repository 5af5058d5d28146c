// Stages that store what lives on, in the tiles of their readers. What is easy to get wrong: readers of old values, of
// both, of elements that are not updated, updates that wait for each other, and how often things run.
#include "compiler/poly/fuse/part_variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/poly/arrange/machine_for_test.h"
#include "compiler/poly/fuse/count_stores_for_test.h"
#include "compiler/poly/isl/isl_tools.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/extract.h"
#include "compiler/poly/poly.h"

namespace polynao::poly {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Result {
  std::string text;  // the report, and the code behind it
  std::map<std::string, int64_t> stores;
  InstanceCount instances;
};

Result Fused(const std::string& text, ScheduleOptions options) {
  const absl::StatusOr<ir::Function> before = ir::ParseFunction(text);
  EXPECT_TRUE(before.ok()) << before.status();
  if (!before.ok()) return {};
  ir::Function after = *before;
  options.strategy = "fuse";
  options.count = true;
  options.machine = SmallMachine(8);
  const absl::StatusOr<ScheduleReport> report = Schedule(after, options);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return {};
  EXPECT_THAT(report->internal_errors, testing::IsEmpty());
  for (uint64_t seed = 1; seed < 5; ++seed) {
    EXPECT_EQ(ir::CompareMeaning(*before, after, seed, {.runs = 1}), "")
        << report->ToString() << ir::Print(after);
  }
  Result result{.text = report->ToString() + ir::Print(after),
                .stores = StoreCounter::Count(after, 1),
                .instances = {}};
  for (const PartReport& part : report->parts) {
    for (const GroupReport& group : part.groups) {
      if (!group.instances) continue;
      result.instances.run += group.instances->run;
      result.instances.exist += group.instances->exist;
    }
  }
  return result;
}

ScheduleOptions Tiles(std::vector<int64_t> sizes) {
  ScheduleOptions options{.join_all = true};
  options.group_tile = std::move(sizes);
  options.windows = Windows::kNone;
  return options;
}

// Tiles of 4 of 20 elements of C, each with five of A.
TEST(PartVariantsTest, WhatIsStoredInPlaceRunsInTilesAndBehindThem) {
  const std::string text =
      "func f(A: f32[21], C: f32[20] out) {\n"
      "  for (i, 0, 21) { A[i] = A[i] / 3.0 }\n"
      "  for (i, 0, 20) { C[i] = A[i] / A[i + 1] }\n}\n";
  const Result result = Fused(text, Tiles({4}));
  EXPECT_THAT(result.text,
              HasSubstr("C in tiles of 4, those along dimension 0 parallel, with A_new"));
  EXPECT_THAT(result.text, HasSubstr("allocate A_new.tile: f32[i64(5)]"));
  EXPECT_EQ(result.stores.at("A_new"), 5 * 5);
  EXPECT_EQ(result.stores.at("A"), 21);
  EXPECT_EQ(result.instances.run, 20 + 5 * 5 + 21);
  EXPECT_EQ(result.instances.exist, 20 + 21);
  // It is twice the work, and reads as much.
  EXPECT_THAT(Fused(text, {}).text, Not(HasSubstr("A_new")));
}

// A tile that computes what it needs of A reads two vectors instead.
TEST(PartVariantsTest, TheModelTakesWhatReadsLess) {
  const auto report = [](const std::string& value) {
    absl::StatusOr<ir::Function> function = ir::ParseFunction(
        StrCat("func f(u: f32[3000] in, v: f32[4000] in, x: f32[3000, 4000] in, "
               "A: f32[3000, 4000] out, C: f32[2999, 4000] out) {\n"
               "  for (i, 0, 3000) { for (j, 0, 4000) { A[i, j] = ",
               value,
               " } }\n  for (i, 0, 2999) { for (j, 0, 4000) { C[i, j] = A[i, j] / A[i + 1, j] } "
               "}\n}\n"));
    EXPECT_TRUE(function.ok()) << function.status();
    const absl::StatusOr<ScheduleReport> report = Schedule(*function, {.strategy = "fuse"});
    EXPECT_TRUE(report.ok()) << report.status();
    return report->ToString();
  };
  EXPECT_THAT(report("u[i] * v[j]"), HasSubstr("with A_new"));
  EXPECT_THAT(report("x[i, j] * v[j]"), Not(HasSubstr("A_new")));
}

struct Case {
  std::string name, text;
  bool is_late;  // an update runs behind tiles that compute it, too
};

std::vector<Case> Cases() {
  const auto f = [](const std::string& params, const std::string& body) {
    return StrCat("func f(", params, ") {\n", body, "}\n");
  };
  const std::string arrays = "A: i32[21], x: i32[21] in, C: i32[20] out";
  const std::string update = "  for (i, 0, 21) { A[i] = A[i] * 3 + x[i] }\n";
  const std::string reader = "  for (i, 0, 20) { C[i] = A[i] * A[i + 1] }\n";
  return {
      {"wraps", f(arrays, update + reader), true},
      {"a_sum", f(arrays, "  for (i, 0, 21) { A[i] = A[i] + x[i] }\n" + reader), true},
      {"not_of_itself", f(arrays, "  for (i, 0, 21) { A[i] = x[i] * 3 }\n" + reader), true},
      {"backwards", f(arrays, "  for (i, 0, 21) { A[20 - i] = A[20 - i] * 3 }\n" + reader), true},
      {"of_a_select",
       f(arrays, "  for (i, 0, 21) { A[i] = select(x[i] < 0, A[i], x[i]) }\n" + reader), true},
      {"reader_of_old_values",
       f(arrays + ", D: i32[20] out",
         "  for (i, 0, 20) { D[i] = A[i + 1] - A[i] }\n" + update + reader),
       true},
      {"readers_in_a_chain",
       f(arrays, "  allocate b: i32[21]\n" + update +
                     "  for (i, 0, 21) { b[i] = A[i] * A[20 - i] }\n" +
                     "  for (i, 0, 20) { C[i] = b[i] * b[i + 1] - A[i] }\n"),
       true},
      {"two_roots",
       f(arrays + ", D: i32[20] out",
         update + reader + "  for (i, 0, 20) { D[i] = A[i + 1] - A[i] }\n"),
       true},
      {"two_roots_that_share_nothing",
       f("A: i32[21], C: i32[10] out, D: i32[9] out",
         "  for (i, 0, 21) { A[i] = A[i] * 5 }\n"
         "  for (i, 0, 10) { C[i] = A[i] * A[9 - i] }\n"
         "  for (i, 0, 9) { D[i] = A[i + 11] * A[i + 12] }\n"),
       true},
      {"a_producer_before_it",
       f(arrays,
         "  allocate b: i32[21]\n  for (i, 0, 21) { b[i] = x[i] * x[20 - i] }\n"
         "  for (i, 0, 20) { A[i] = A[i] * b[i] - b[i + 1] }\n"
         "  for (i, 0, 19) { C[i] = A[i] * A[i + 1] }\n"),
       true},
      {"two_updates",
       f(arrays + ", B: i32[21]", update + "  for (i, 0, 20) { B[i] = B[i] - A[i] * A[i + 1] }\n" +
                                      "  for (i, 0, 19) { C[i] = B[i] * B[i + 1] }\n"),
       true},
      {"part_of_it",
       f(arrays,
         "  for (i, 2, 12) { A[i] = A[i] * 3 }\n"
         "  for (i, 4, 9) { C[i] = A[i] * A[i + 1] }\n"),
       true},
      {"more_than_that_part",
       f(arrays,
         "  for (i, 2, 12) { A[i] = A[i] * 3 }\n"
         "  for (i, 4, 10) { C[i] = A[i] * A[i + 1] }\n"),
       false},
      {"every_second",
       f("A: i32[22], C: i32[10] out",
         "  for (i, 0, 11) { A[2 * i] = A[2 * i] * 3 }\n"
         "  for (i, 0, 10) { C[i] = A[2 * i] * A[2 * i + 2] }\n"),
       true},
      {"stored_with_its_reader",
       f("x: i32[11, 15] in, y: i32[10, 14] out, z: i32[10, 14] out",
         "  allocate b: i32[11, 15]\n"
         "  for (i, 0, 11) { for (j, 0, 15) { b[i, j] = x[i, j] * x[10 - i, j] } }\n"
         "  for (i, 0, 10) { for (j, 0, 14) { y[i, j] = b[i, j] - b[i + 1, j] * b[i, j + 1] } }\n"
         "  for (i, 0, 10) { for (j, 0, 14) { z[i, j] = b[i + 1, j + 1] * y[9 - i, j] } }\n"),
       true},
      {"where_the_data_say",
       f(arrays, "  for (i, 0, 21) { if (x[i] < 3) { A[i] = A[i] * 3 } }\n" + reader), false},
      {"elements_that_the_data_say",
       f(arrays, update + "  for (i, 0, 20) { C[i] = A[(x[i] % 21 + 21) % 21] * A[i] }\n"), true},
      {"below_the_diagonal",
       f("A: i32[9, 9], C: i32[8, 8]",
         "  for (i, 0, 9) { for (j, 0, i + 1) { A[i, j] = A[i, j] * 7 } }\n"
         "  for (i, 0, 8) { for (j, 0, i + 1) { C[i, j] = A[i, j] * A[i + 1, j] } }\n"),
       true},
      {"symbolic",
       f("A: i32[n + 1], C: i32[n] out, n: i32",
         "  for (i, 0, n + 1) { A[i] = A[i] * 3 }\n"
         "  for (i, 0, n) { C[i] = A[i] * A[i + 1] }\n"),
       true},
      // The reader may go beyond what is updated.
      {"symbolic_parts",
       f("A: i32[9], C: i32[8], n: i32, m: i32",
         "  for (i, 0, min(n, 9)) { A[i] = A[i] * 3 }\n"
         "  for (i, 0, min(m, 8)) { C[i] = A[i] * A[i + 1] }\n"),
       false},
      {"twice", f(arrays, "  for (t, 0, 2) { for (i, 0, 21) { A[i] = A[i] * 3 } }\n" + reader),
       false},
      {"in_steps",
       f("A: i32[3, 21], C: i32[3, 20]",
         "  for (t, 0, 3) {\n    for (i, 0, 21) { A[t, i] = A[t, i] * 3 }\n"
         "    for (i, 0, 20) { C[t, i] = A[t, i] * A[t, i + 1] }\n  }\n"),
       true},
      {"in_steps_that_wait",
       f("A: i32[3, 21], C: i32[3, 21]",
         "  for (t, 1, 2) {\n    for (i, 0, 21) { A[t, i] = A[t, i] * C[t - 1, i] }\n"
         "    for (i, 0, 20) { C[t, i] = A[t, i] * A[t, i + 1] }\n  }\n"),
       false},
      {"from_its_neighbours", f(arrays, "  for (i, 0, 20) { A[i] = A[i] * A[i + 1] }\n" + reader),
       false},
      {"stored_again", f(arrays, update + reader + "  for (i, 0, 21) { A[i] = A[i] - 1 }\n"),
       false},
      {"what_it_is_made_of_changes",
       f("A: i32[21], x: i32[21], C: i32[20] out",
         update + "  for (i, 0, 20) { x[i] = A[i] * x[i + 1] }\n" +
             "  for (i, 0, 20) { C[i] = A[i] * A[i + 1] - x[i] }\n"),
       false},
      // The reader may find its own results, or those of the update.
      {"one_name_for_two", StrCat("@may_alias(\"A\", \"C\")\n", f(arrays, update + reader)), false},
      // C waits for tiles of its own: each element for the one before.
      {"reader_in_order",
       f(arrays, update + "  for (i, 1, 19) { C[i] = C[i - 1] * A[i] - A[i + 1] }\n"), false},
      // A's size is not s any more.
      {"size_of_the_data",
       f("x: i32[21] in, C: i32[20] out, D: i32[21] out",
         "  allocate s: i32[]\n  s[] = 21\n  allocate A: i32[s[]]\n"
         "  for (i, 0, 21) { A[i] = x[i] }\n"
         "  s[] = 2\n  for (i, 0, 21) { A[i] = A[i] * 3 }\n"
         "  for (i, 0, 20) { C[i] = A[i] * A[i + 1] }\n"
         "  for (i, 0, s[]) { D[i] = A[i] }\n"),
       false},
  };
}

class LateUpdateTest : public testing::TestWithParam<Case> {};

TEST_P(LateUpdateTest, AnyTilesKeepTheMeaning) {
  for (const std::vector<int64_t>& tile :
       std::vector<std::vector<int64_t>>{{1, 1}, {0, 3}, {3, 2}, {5, 4}}) {
    for (const Windows windows : {Windows::kNone, Windows::kAll}) {
      for (const bool inline_stages : {false, true}) {
        SCOPED_TRACE(StrCat(tile[0], " x ", tile[1]));
        ScheduleOptions options = Tiles(tile);
        options.windows = windows;
        options.inline_stages = inline_stages;
        const Result result = Fused(GetParam().text, options);
        EXPECT_EQ(result.text.find("_new") != std::string::npos, GetParam().is_late) << result.text;
        // Others may have sums in registers.
        if (!GetParam().is_late || GetParam().name.starts_with("symbolic")) continue;
        // What lives on is stored as often as before.
        const auto stores = StoreCounter::Count(*ir::ParseFunction(GetParam().text), 1);
        for (const auto& [array, count] : result.stores) {
          if (stores.contains(array) && array != "b") EXPECT_EQ(count, stores.at(array)) << array;
        }
        if (!inline_stages) {
          EXPECT_EQ(result.instances.run, Sum(result.stores)) << result.text;
          EXPECT_EQ(result.instances.exist, Sum(stores)) << result.text;
        }
      }
    }
  }
  Fused(GetParam().text, {});
}

INSTANTIATE_TEST_SUITE_P(Programs, LateUpdateTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

// The new values are stored before the old ones are overwritten, in the order of the program, too.
TEST(PartVariantsTest, TheOrderOfTheProgram) {
  const absl::StatusOr<ir::Function> function = ir::ParseFunction(
      "func f(A: i32[9], C: i32[8]) {\n"
      "  for (i, 0, 9) { A[i] = A[i] * 3 }\n  for (i, 0, 8) { C[i] = A[i] * A[i + 1] }\n}\n");
  ASSERT_TRUE(function.ok()) << function.status();
  const absl::StatusOr<Extraction> extraction = Extract(*function);
  ASSERT_TRUE(extraction.ok()) << extraction.status();
  const Scop& scop = extraction->scops.at(0);
  ASSERT_THAT(UpdatesIn(scop), testing::ElementsAre("S0", "S1"));
  EXPECT_FALSE(WithLateUpdate(scop, "S1").has_value());  // nobody reads C
  const std::optional<Scop> late = WithLateUpdate(scop, "S0");
  ASSERT_TRUE(late.has_value());
  ASSERT_EQ(late->statements.size(), 3u);
  EXPECT_EQ(late->statements[0].name, SecondForm("S0"));
  EXPECT_TRUE(IsSecondForm(late->statements[0]));
  EXPECT_FALSE(IsSecondForm(late->statements[1]));
  // With names that isl reads.
  const auto is = [&](const isl::union_map& map, const std::string& expected) {
    const std::string text = absl::StrReplaceAll(Text(map), {{SecondForm("S0"), "N"}});
    isl::ctx ctx = scop.isl->ctx();
    return isl::union_map(ctx, text).is_equal(isl::union_map(ctx, expected));
  };
  EXPECT_TRUE(is(late->schedule.map().intersect_domain(late->Domain()),
                 "{ N[i] -> [0, i, 0] : 0 <= i < 9; S0[i] -> [0, i, 1] : 0 <= i < 9;"
                 " S1[i] -> [1, i, 0] : 0 <= i < 8 }"))
      << Text(late->schedule.map());
  // The update waits for the new form, which reads what it overwrites, and nothing waits for the update.
  const Dependences now = ComputeDependences(*late);
  EXPECT_TRUE(is(now.anti, "{ N[i] -> S0[i] : 0 <= i < 9 }")) << Text(now.anti);
  EXPECT_TRUE(is(now.flow, "{ N[i] -> S1[i] : 0 <= i < 8; N[i] -> S1[i - 1] : 1 <= i < 9 }"))
      << Text(now.flow);
}

}  // namespace
}  // namespace polynao::poly
