// `nao bench` on the smallest cases: real programs, real cycles, reasons for what is skipped.

#include "benchmarks/bench_suite.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::benchmarks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The smallest cases, an operator that does not exist, and a type that the card lacks.
Suite Small() {
  Suite suite;
  suite.name = "small";
  suite.doc = "For tests";
  ClassFigures binary;
  binary.op_class = "binary";
  binary.elementwise = true;
  ClassFigures other;
  other.op_class = "other";
  suite.classes = {binary, other};
  suite.cases = {{"binary", "add", "127x27x27", "f16"},
                 {"binary", "mul", "63x65", "f16"},
                 {"other", "frobnicate", "4x4,2", "f16"},
                 {"other", "sub", "100", "f64"}};
  return suite;
}

SuiteResult MustRun(const BenchSettings& settings) {
  absl::StatusOr<SuiteResult> result = RunSuite(Small(), settings);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : SuiteResult();
}

std::string Error(const BenchSettings& settings) {
  return std::string(RunSuite(Small(), settings).status().message());
}

std::vector<std::string> Names(const SuiteResult& result) {
  std::vector<std::string> names;
  for (const Row& row : result.rows) names.push_back(row.Name());
  return names;
}

TEST(BenchTest, RunsCompiledAndLibraryOfTheSmallestCases) {
  BenchSettings settings;
  settings.filter = "^binary/.*/(compiled|library)$";
  settings.jobs = 2;
  int calls = 0;
  settings.on_row = [&](int done, int total, const Row&) {
    EXPECT_EQ(done, ++calls);
    EXPECT_EQ(total, 4);
  };
  const SuiteResult result = MustRun(settings);
  EXPECT_THAT(Names(result),
              ElementsAre("binary/add/127x27x27/compiled", "binary/add/127x27x27/library",
                          "binary/mul/63x65/compiled", "binary/mul/63x65/library"));
  EXPECT_EQ(calls, 4);
  EXPECT_TRUE(result.ok());
  for (const Row& row : result.rows) {
    EXPECT_EQ(row.state, Row::State::kAgrees) << row.Name() << ": " << row.reason;
    EXPECT_GE(row.cycles, row.bound_cycles);
    EXPECT_GT(row.bound_cycles, 0);
    EXPECT_GT(row.instructions, 0);
    EXPECT_FALSE(row.bytes.empty());
  }
  EXPECT_EQ(result.rows[0].traffic_bytes, 3 * 127 * 27 * 27 * 2);
  EXPECT_EQ(result.summary.classes[0].Speedup("library")->cases, 2);
}

TEST(BenchTest, SameCyclesWithAnyNumberOfJobs) {
  BenchSettings settings;
  settings.filter = "mul";
  settings.jobs = 1;
  const SuiteResult one = MustRun(settings);
  settings.jobs = 3;
  const SuiteResult three = MustRun(settings);
  ASSERT_EQ(Names(one), Names(three));
  for (size_t i = 0; i < one.rows.size(); ++i) {
    EXPECT_EQ(one.rows[i].cycles, three.rows[i].cycles);
    EXPECT_EQ(one.rows[i].bytes, three.rows[i].bytes);
  }
}

TEST(BenchTest, WhatDoesNotExistIsSkippedAndWhatDoesNotCompileFails) {
  BenchSettings settings;
  settings.filter = "other/";
  const SuiteResult result = MustRun(settings);
  ASSERT_EQ(result.rows.size(), 6);  // compiled, library, expert of two cases
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(result.rows[i].state, Row::State::kSkipped);
    EXPECT_EQ(result.rows[i].reason, "no operator is named 'frobnicate'");
  }
  for (int i : {3, 4}) {
    EXPECT_EQ(result.rows[i].state, Row::State::kFailed);
    EXPECT_THAT(result.rows[i].reason, HasSubstr("the card has no instruction "));
  }
  EXPECT_FALSE(result.ok());
}

TEST(BenchTest, AblationsLeavePassesOut) {
  BenchSettings settings;
  settings.filter = "mul";
  settings.without = {"partition"};
  const SuiteResult result = MustRun(settings);
  ASSERT_EQ(result.rows.size(), 4);
  const Row& ablation = result.rows[3];
  EXPECT_EQ(ablation.impl, "without-loop_partition");
  EXPECT_EQ(ablation.state, Row::State::kAgrees) << ablation.reason;
  // Guards in the loops keep tensorize from matching.
  EXPECT_GT(ablation.cycles, 2 * result.rows[0].cycles);
}

// Without SMEM each core loads its own filters: also where the compiler would bring them once for all.
TEST(BenchTest, FiltersWithoutSmem) {
  Suite suite = Small();
  suite.cases = {{"conv", "conv2d", "28x28x64,64x3x3x64", "i8"}};
  suite.classes[1].op_class = "conv";
  BenchSettings settings;
  settings.filter = "/(compiled|without-.*)$";
  settings.without = {"smem"};
  const absl::StatusOr<SuiteResult> result = RunSuite(suite, settings);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_THAT(Names(*result), ElementsAre("conv/conv2d/28x28x64,64x3x3x64/compiled",
                                          "conv/conv2d/28x28x64,64x3x3x64/without-smem"));
  EXPECT_EQ(result->rows[1].state, Row::State::kAgrees) << result->rows[1].reason;
  EXPECT_FALSE(result->rows[1].bytes.contains("smem_wmem"));
}

// Programs of a sequence run one after the other: their cycles, bounds and bytes are sums.
TEST(BenchTest, SequencesAreSums) {
  Suite suite = Small();
  suite.cases = {{"binary", "add_relu", "63x65", "f16"}};
  suite.sequences = {{.name = "two", .doc = "add, then relu", .programs = [](const SuiteCase& c) {
                        return std::vector<SuiteProgram>{
                            {.op = "add", .shape = c.shape, .dtype = c.dtype},
                            {.op = "relu", .shape = c.shape, .dtype = c.dtype}};
                      }}};
  const absl::StatusOr<SuiteResult> result = RunSuite(suite, {});
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_THAT(Names(*result),
              ElementsAre("binary/add_relu/63x65/compiled", "binary/add_relu/63x65/two"));
  const Row& fused = result->rows[0];
  const Row& two = result->rows[1];
  EXPECT_TRUE(result->ok());
  constexpr int64_t kTensor = 63 * 65 * 2;
  EXPECT_EQ(fused.traffic_bytes, 3 * kTensor);
  EXPECT_EQ(two.traffic_bytes, 5 * kTensor);
  EXPECT_EQ(fused.bytes["gmem_nmem"], 2 * kTensor);
  EXPECT_EQ(two.bytes["gmem_nmem"], 3 * kTensor);
  EXPECT_EQ(two.bytes["nmem_gmem"], 2 * kTensor);
  EXPECT_GT(two.cycles, fused.cycles);
}

// A layer of the network: less traffic than its sequences, and faster than each of them.
TEST(BenchTest, ALayerOfResNet50) {
  BenchSettings settings;
  settings.filter = "56x56x64,256x1x1x64/residual=1/(compiled|unfused|one_by_one)$";
  const absl::StatusOr<SuiteResult> result = RunSuite(**FindSuite("resnet50"), settings);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->rows.size(), 3);
  EXPECT_TRUE(result->ok());
  for (size_t i : {1, 2}) {
    const Row& row = result->rows[i];
    EXPECT_GT(row.bound_cycles, 19 * result->rows[0].bound_cycles / 10) << row.Name();
    EXPECT_GT(row.cycles, 17 * result->rows[0].cycles / 10) << row.Name();
  }
}

TEST(BenchTest, WrongSettings) {
  BenchSettings jobs;
  jobs.jobs = 0;
  EXPECT_THAT(Error(jobs), HasSubstr("--jobs: expected 1 or more, found 0"));
  BenchSettings filter;
  filter.filter = "add(";
  EXPECT_THAT(Error(filter), HasSubstr("--filter='add(': expected a text or a regular expression"));
  filter.filter = "nothing";
  EXPECT_THAT(Error(filter), HasSubstr("no row of small is named so; the first is "
                                       "'binary/add/127x27x27/compiled'"));
  BenchSettings without;
  without.without = {"tensorize,frob"};
  EXPECT_THAT(Error(without), HasSubstr("no pass of the card's pipeline is named 'frob'; there "
                                        "are: simplify, preprocess, "));
  BenchSettings config;
  config.config = "mlu1";
  EXPECT_THAT(Error(config), HasSubstr("no config is named 'mlu1'"));
}

}  // namespace
}  // namespace polynao::benchmarks
