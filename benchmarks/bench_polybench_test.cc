#include "benchmarks/bench_polybench.h"

#include <string>
#include <vector>

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::benchmarks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Error(const PolyBenchSettings& settings) {
  return std::string(RunPolyBench(settings).status().message());
}

// Real runs of all implementations that this machine has, on small sizes.
class KernelTest : public ::testing::TestWithParam<std::string> {};

TEST_P(KernelTest, ImplementationsAgree) {
  PolyBenchSettings settings;
  settings.size = "MINI";
  settings.filter = StrCat("^", GetParam(), "$");
  settings.seconds = 0;
  int rows = 0;
  settings.on_row = [&](int done, int total, const ComparisonRow& row) {
    EXPECT_EQ(done, ++rows);
    EXPECT_EQ(total, 1);
    EXPECT_FALSE(row.sizes.empty());
  };
  const absl::StatusOr<Comparison> result = RunPolyBench(settings);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->ok()) << SummaryText(*result);
  EXPECT_EQ(rows, 1);
  for (const ComparisonRow& row : result->rows) {
    ASSERT_EQ(row.entries.size(), result->implementations.size());
    for (size_t i = 0; i < row.entries.size(); ++i) {
      const ComparisonImplementation& implementation = result->implementations[i];
      EXPECT_EQ(row.entries[i].implementation, implementation.name);
      EXPECT_EQ(row.entries[i].skipped, implementation.missing);
      if (row.entries[i].ran()) EXPECT_GT(row.entries[i].time_ns, 0);
    }
    ASSERT_NE(row.Find("nao-none"), nullptr);
    EXPECT_TRUE(row.Find("nao-none")->ran());
    EXPECT_GT(row.Find("nao-none")->compile_ms, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, KernelTest, ::testing::Values("nussinov", "deriche"),
                         [](const auto& info) { return info.param; });

TEST(BenchPolyBenchTest, RunsWithoutPeers) {
  PolyBenchSettings settings;
  settings.size = "MINI";
  settings.filter = "trisolv";
  settings.peers = {};
  settings.seconds = 0;
  const absl::StatusOr<Comparison> result = RunPolyBench(settings);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->ok());
  EXPECT_EQ(result->baseline, "nao-none");
  EXPECT_DOUBLE_EQ(result->GeometricMean("nao-none").first, 1);
}

// A run of one kernel goes on to three; the known row stays as it is.
TEST(BenchPolyBenchTest, GoesOnWhereItStopped) {
  PolyBenchSettings settings;
  settings.size = "MINI";
  settings.filter = "^trisolv$";
  settings.peers = {};
  settings.schedules = {"none"};
  settings.seconds = 0;
  absl::StatusOr<Comparison> first = RunPolyBench(settings);
  ASSERT_TRUE(first.ok()) << first.status();
  first->rows[0].entries[0].time_ns = 12345;

  settings.filter = "^(trmm|trisolv|atax)$";
  settings.known = *first;
  std::vector<std::string> ran;
  settings.on_row = [&](int done, int total, const ComparisonRow& row) {
    EXPECT_EQ(total, 2);
    ran.push_back(row.kernel);
    EXPECT_EQ(done, ran.size());
  };
  std::vector<size_t> saved;
  settings.save = [&](const Comparison& so_far) {
    saved.push_back(so_far.rows.size());
    return absl::OkStatus();
  };
  const absl::StatusOr<Comparison> all = RunPolyBench(settings);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(ran, ElementsAre("atax", "trmm"));
  EXPECT_THAT(saved, ElementsAre(2, 3));
  ASSERT_EQ(all->rows.size(), 3);
  EXPECT_EQ(all->rows[0].kernel, "atax");
  EXPECT_EQ(all->rows[1].kernel, "trisolv");
  EXPECT_EQ(all->rows[1].entries[0].time_ns, 12345);
  EXPECT_EQ(all->rows[2].kernel, "trmm");
  EXPECT_EQ(all->date, first->date);
  EXPECT_GT(all->wall_seconds, first->wall_seconds);

  settings.seed = 2;
  EXPECT_EQ(Error(settings), "--resume: expected rows of seed '2', found '1'");
  settings.seed = 1;
  settings.schedules = {"none", "min"};
  EXPECT_THAT(Error(settings), HasSubstr("nao-min (this compiler, --schedule=min"));
  settings.schedules = {"none"};
  settings.known.reset();
  settings.filter = "^(trmm|atax)$";
  settings.on_row = {};
  saved.clear();
  settings.save = [&](const Comparison& so_far) {
    saved.push_back(so_far.rows.size());
    return absl::InternalError("the disk is full");
  };
  EXPECT_EQ(Error(settings), "the disk is full");
  EXPECT_THAT(saved, ElementsAre(1));
}

TEST(BenchPolyBenchTest, WithoutNoneTheFirstIsTheBaseline) {
  PolyBenchSettings settings;
  settings.size = "MINI";
  settings.filter = "trisolv";
  settings.peers = {};
  settings.schedules = {"original"};
  settings.seconds = 0;
  const absl::StatusOr<Comparison> result = RunPolyBench(settings);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->baseline, "nao-original");
}

TEST(BenchPolyBenchTest, WrongSettings) {
  EXPECT_THAT(Error({.size = "HUGE"}), HasSubstr("no data set 'HUGE': expected MINI, SMALL"));
  EXPECT_EQ(Error({.filter = "gemmm", .peers = {}}),
            "--filter='gemmm': no kernel of polybench is named so; the first is '2mm'");
  EXPECT_EQ(Error({.threads = 0, .peers = {}}), "--threads: expected 1 or more, found 0");
  EXPECT_THAT(Error({.schedules = {"best"}, .peers = {}}), HasSubstr("found 'best'"));
  EXPECT_EQ(
      Error({.peers = {"gcc", "icc"}}),
      "no compiler to compare with is named 'icc': expected gcc, clang, polly, polly-parallel");
}

}  // namespace
}  // namespace polynao::benchmarks
