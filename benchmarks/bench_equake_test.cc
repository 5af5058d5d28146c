#include "benchmarks/bench_equake.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace polynao::benchmarks {
namespace {

using ::testing::HasSubstr;

std::string Error(const EquakeSettings& settings) {
  return std::string(RunEquakeSuite(settings).status().message());
}

TEST(BenchEquakeTest, StrategiesAgree) {
  EquakeSettings settings;
  settings.size = "211";
  settings.seconds = 0;
  settings.peers = {"clang"};
  int rows = 0;
  settings.on_row = [&](int done, int total, const ComparisonRow& row) {
    EXPECT_EQ(done, ++rows);
    EXPECT_EQ(total, 2);
    EXPECT_EQ(row.entries.size(), 12);
  };
  const absl::StatusOr<Comparison> result = RunEquakeSuite(settings);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->ok()) << SummaryText(*result);
  ASSERT_EQ(result->rows.size(), 2);
  EXPECT_EQ(result->rows[0].kernel, "equake/211");
  EXPECT_EQ(result->rows[1].kernel, "equake_whole/211");
  EXPECT_EQ(result->BaselineOf("nao-fuse/2"), "nao-min/2");
  EXPECT_EQ(*result->rows[0].Speedup("nao-min/1", "nao-min/1"), 1);
  EXPECT_GT(result->rows[0].Find("nao-fuse/2")->time_ns, 0);

  // The rows of a file do not run again.
  settings.known = *ComparisonFromJson(ToJson(*result), kEquakeSuite);
  settings.on_row = [](int, int, const ComparisonRow&) { FAIL(); };
  const absl::StatusOr<Comparison> again = RunEquakeSuite(settings);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(RowsText(*again), RowsText(*result));
}

TEST(BenchEquakeTest, WrongSettings) {
  EXPECT_THAT(Error({.size = "huge"}), HasSubstr("expected test, train, ref or a number of nodes"));
  EXPECT_EQ(Error({.filter = "quake/huge", .peers = {}}),
            "--filter='quake/huge': no row of equake is named so; the first is 'equake/test'");
  EXPECT_EQ(Error({.threads = {0}}), "--threads: expected 1 or more, found 0");
  EXPECT_THAT(Error({.schedules = {"best"}}), HasSubstr("found 'best'"));
  EXPECT_EQ(Error({.peers = {"polly"}}),
            "no compiler to compare with is named 'polly': expected gcc, clang");
}

}  // namespace
}  // namespace polynao::benchmarks
