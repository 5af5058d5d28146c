#include "benchmarks/bench_polybench.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::benchmarks {
namespace {

using ::testing::HasSubstr;

std::string Error(const PolyBenchSettings& settings) {
  return std::string(RunPolyBench(settings).status().message());
}

// Real runs of all implementations that this machine has, on small sizes.
TEST(BenchPolyBenchTest, ImplementationsAgree) {
  PolyBenchSettings settings;
  settings.size = "MINI";
  settings.filter = "^(nussinov|deriche)$";
  settings.seconds = 0;
  int rows = 0;
  settings.on_row = [&](int done, int total, const PolyBenchRow& row) {
    EXPECT_EQ(done, ++rows);
    EXPECT_EQ(total, 2);
    EXPECT_FALSE(row.sizes.empty());
  };
  const absl::StatusOr<PolyBenchResult> result = RunPolyBench(settings);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->ok()) << SummaryText(*result);
  EXPECT_EQ(rows, 2);
  for (const PolyBenchRow& row : result->rows) {
    ASSERT_EQ(row.entries.size(), result->implementations.size());
    for (size_t i = 0; i < row.entries.size(); ++i) {
      const PolyBenchImplementation& implementation = result->implementations[i];
      EXPECT_EQ(row.entries[i].implementation, implementation.name);
      EXPECT_EQ(row.entries[i].skipped, implementation.missing);
      if (row.entries[i].ran()) EXPECT_GT(row.entries[i].time_ns, 0);
    }
    ASSERT_NE(row.Find("nao-none"), nullptr);
    EXPECT_TRUE(row.Find("nao-none")->ran());
    EXPECT_GT(row.Find("nao-none")->compile_ms, 0);
  }
}

TEST(BenchPolyBenchTest, RunsWithoutPeers) {
  PolyBenchSettings settings;
  settings.size = "MINI";
  settings.filter = "trisolv";
  settings.peers = false;
  settings.seconds = 0;
  const absl::StatusOr<PolyBenchResult> result = RunPolyBench(settings);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->ok());
  EXPECT_EQ(result->baseline, "nao-none");
  EXPECT_DOUBLE_EQ(result->GeometricMean("nao-none").first, 1);
}

TEST(BenchPolyBenchTest, WrongSettings) {
  EXPECT_THAT(Error({.size = "HUGE"}), HasSubstr("no data set 'HUGE': expected MINI, SMALL"));
  EXPECT_EQ(Error({.filter = "gemmm", .peers = false}),
            "--filter='gemmm': no kernel of polybench is named so; the first is '2mm'");
  EXPECT_EQ(Error({.threads = 0, .peers = false}), "--threads: expected 1 or more, found 0");
  EXPECT_THAT(Error({.schedules = {"best"}, .peers = false}), HasSubstr("found 'best'"));
}

}  // namespace
}  // namespace polynao::benchmarks
