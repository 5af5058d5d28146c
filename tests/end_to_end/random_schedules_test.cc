// Any schedule that an operator may have on a card computes the same: random layers of random shapes on random
// machines, under one of their schedules drawn at random. POLYNAO_RANDOM_CASES=2000 runs more of them, POLYNAO_SEED=7
// the same ones again.
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "cases/build.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "cases/nest_on_card.h"
#include "cases/run_case.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/operators.h"
#include "tests/end_to_end/random_layer_for_test.h"

namespace polynao::cases {
namespace {

TEST(RandomSchedulesTest, AllComputeTheSame) {
  const char* count_text = std::getenv("POLYNAO_RANDOM_CASES");
  const char* seed_text = std::getenv("POLYNAO_SEED");
  const int count = count_text != nullptr ? std::atoi(count_text) : 60;
  unsigned seed = seed_text != nullptr ? std::atoi(seed_text) : std::random_device{}();
  int ran = 0, refused = 0;
  for (int round = 0; round < count; ++round, ++seed) {
    SCOPED_TRACE(testing::Message() << "POLYNAO_RANDOM_CASES=1 POLYNAO_SEED=" << seed);
    Draw draw(seed);
    const CaseText text = RandomLayer(draw);
    CaseSettings settings;
    settings.config = draw.OneOf<std::string>({"mlu270", "mlu370"});
    settings.seed = seed;
    settings.overrides = RandomCard(draw);
    const auto machine = LoadMachine(settings.config, settings.overrides);
    ASSERT_TRUE(machine.ok()) << machine.status();
    const auto target = MakeTarget("diannao", &*machine);
    ASSERT_TRUE(target.ok()) << target.status();
    auto c = ParseCase(text);
    if (!c.ok()) continue;
    const auto all = (*kernels::FindOperator(*c))->schedules(*c, *target);
    if (!all.ok() || all->empty()) continue;
    const kernels::RankedSchedule& drawn =
        (*all)[draw.Number(0, static_cast<int64_t>(all->size()) - 1)];
    c->schedule = drawn.choice;
    SCOPED_TRACE(StrCat(text.op, " ", text.shape, " ", text.dtype, " ",
                        absl::StrJoin(text.attributes, " "), " on ", settings.config, " ",
                        absl::StrJoin(settings.overrides, " "), ": ",
                        kernels::ChoiceText(c->schedule)));
    const absl::StatusOr<CaseReport> report = RunCase(*c, settings);
    // A schedule that somebody names may leave scalar code (docs/mapping.md), which does not reach weights in WMEM: one
    // in 700 does.
    if (absl::StrContains(report.status().message(), "does not reach")) {
      const auto function = BuildFunction(**kernels::FindOperator(*c), *c, *target, {});
      ASSERT_TRUE(function.ok()) << function.status();
      EXPECT_GT(StoredElements(function->body), 500) << report.status();
      ++refused;
    } else {
      EXPECT_TRUE(report.ok()) << report.status();
    }
    if (report.ok()) EXPECT_TRUE(report->ok) << report->difference;
    // Scalar code in place of an instruction takes hundreds of times as long: such schedules are not chosen.
    c->schedule.clear();
    settings.check_values = false;
    settings.timing_only = true;
    absl::StatusOr<CaseReport> chosen = RunCase(*c, settings);
    // A little scalar code may be left: one seed in some thousands.
    if (absl::StrContains(chosen.status().message(), "cannot be timed without values")) {
      settings.timing_only = false;
      chosen = RunCase(*c, settings);
    }
    EXPECT_TRUE(chosen.ok()) << chosen.status();
    if (chosen.ok()) {
      EXPECT_LT(static_cast<double>(chosen->simulated->cycles), 8 * (*all)[0].cycles + 20'000);
    }
    ++ran;
    if (HasFailure() && count_text == nullptr) return;
  }
  EXPECT_GT(2 * ran, count);
  EXPECT_LE(refused, 1 + count / 300);
}

// Twelve tiles for ten rows: on the core after the last row, the margin is scalar code, and a copy reads a part of it.
TEST(RandomSchedulesTest, MarginsOfCoresWithoutRows) {
  auto c = ParseCase({.op = "conv2d",
                      .shape = "14x1x41,82x4x2x1",
                      .dtype = "i8",
                      .attributes = {"groups=41", "stride=2", "pad=4"}});
  ASSERT_TRUE(c.ok()) << c.status();
  c->schedule = {{"clusters", 2}, {"columns", 1}, {"merged", 1}, {"rows", 1}, {"shared", 0}};
  CaseSettings settings;
  settings.config = "mlu370";
  settings.overrides = {"card.clusters=3", "core.nmem_kib=128", "core.wmem_kib=128",
                        "cluster.smem_kib=128"};
  const absl::StatusOr<CaseReport> report = RunCase(*c, settings);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->ok) << report->difference;
}

// The cost model's first choices leave scalar code here; of the second and third not even programs come, since the
// scalar unit does not reach WMEM.
TEST(RandomSchedulesTest, SchedulesThatLeaveScalarCodeAreNotTaken) {
  struct Layer {
    CaseText text;
    std::string config;
    std::vector<std::string> overrides;
    int64_t most;  // cycles
  };
  const std::vector<Layer> layers = {
      {{.op = "conv2d",
        .shape = "1x1x320,89x2x1x320",
        .dtype = "i8",
        .attributes = {"dilation=2", "pad=5"}},
       "mlu370",
       {"card.clusters=2", "cluster.cores=2", "core.nmem_kib=64", "core.wmem_kib=256",
        "cluster.smem_kib=32"},
       60'000},
      {{.op = "conv2d",
        .shape = "5x16x512,156x5x4x512",
        .dtype = "i8",
        .attributes = {"stride=2", "pad=5"}},
       "mlu270",
       {"card.clusters=1", "cluster.cores=4", "core.nmem_kib=512", "cluster.smem_kib=512"},
       300'000},
      {{.op = "conv2d_bn",
        .shape = "1x5x320,448x3x3x320",
        .dtype = "i8",
        .attributes = {"stride=2", "pad=4"}},
       "mlu370",
       {"card.clusters=2", "cluster.cores=1", "core.nmem_kib=64", "cluster.smem_kib=256"},
       300'000},
      // The first twelve have blocks of 40 or 56 channels, whose biases are rows of scalar code.
      {{.op = "matmul", .shape = "136x189,320x189", .dtype = "i8", .attributes = {"bias=1"}},
       "mlu370",
       {"card.clusters=6", "cluster.cores=4", "core.nmem_kib=32", "core.wmem_kib=16",
        "cluster.smem_kib=512"},
       5'000},
      // Clusters share a pixel's rows, of which the last pixel's are cut off.
      {{.op = "conv2d_transpose",
        .shape = "8x12x128,64x1x4x128",
        .dtype = "f16",
        .attributes = {"stride=4"}},
       "mlu370",
       {"card.clusters=6", "cluster.cores=1", "core.nmem_kib=512", "core.wmem_kib=64"},
       20'000}};
  for (const Layer& layer : layers) {
    SCOPED_TRACE(layer.text.shape);
    const auto c = ParseCase(layer.text);
    ASSERT_TRUE(c.ok()) << c.status();
    CaseSettings settings;
    settings.config = layer.config;
    settings.overrides = layer.overrides;
    const auto report = RunCase(*c, settings);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->ok);
    EXPECT_LT(report->simulated->cycles, layer.most);
  }
}

}  // namespace
}  // namespace polynao::cases
