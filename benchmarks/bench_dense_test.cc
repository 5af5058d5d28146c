#include "benchmarks/bench_dense.h"

#include <set>
#include <string>
#include <vector>

#include "benchmarks/comparison_page.h"
#include "benchmarks/dense_cases.h"
#include "benchmarks/dense_result.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace polynao::benchmarks {
namespace {

using ::testing::HasSubstr;

std::string Error(const DenseSettings& settings) {
  return std::string(RunDense(settings).status().message());
}

DenseSettings Small() {
  DenseSettings settings;
  settings.size = "small";
  settings.seconds = 0;
  return settings;
}

// Real runs, of the libraries that this machine has.
TEST(BenchDenseTest, ImplementationsAgree) {
  const DenseSettings settings = Small();
  const absl::StatusOr<Comparison> result = RunDense(settings);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->ok()) << DenseText(*result);
  ASSERT_EQ(result->rows.size(), 7);
  for (const ComparisonRow& row : result->rows) {
    ASSERT_EQ(row.entries.size(), result->implementations.size());
    for (size_t i = 0; i < row.entries.size(); ++i) {
      const ComparisonEntry& entry = row.entries[i];
      EXPECT_EQ(entry.implementation, result->implementations[i].name);
      if (!result->implementations[i].missing.empty()) EXPECT_FALSE(entry.skipped.empty());
      if (!entry.ran()) continue;
      EXPECT_GT(entry.time_ns, 0);
      EXPECT_GE(entry.runs, kDenseRounds);
    }
    for (const char* name : {"nao-auto/1", "nao-auto/2", "nao-packed/1", "nao-packed/2"}) {
      const ComparisonEntry* entry = row.Find(name);
      ASSERT_NE(entry, nullptr);
      EXPECT_TRUE(entry->ran());
      EXPECT_GT(entry->compile_ms, 0);
      // Layers of many columns; the second operand of a batch is no constant.
      const bool is_packed = std::string(name).starts_with("nao-packed") &&
                             row.kernel == "product/matmul/17x35,33x35/f32";
      const bool is_never =
          std::string(name).starts_with("nao-auto") || row.kernel.starts_with("batch");
      const double pack_ms = FigureOf(*entry, "pack_ms");
      if (is_packed) EXPECT_GT(pack_ms, 0) << row.kernel;
      if (is_never) EXPECT_EQ(pack_ms, 0) << row.kernel;
    }
  }
}

TEST(BenchDenseTest, JsonIsReadBack) {
  DenseSettings settings = Small();
  settings.filter = "product";
  settings.peers = {};
  settings.threads = {1};
  const absl::StatusOr<Comparison> result = RunDense(settings);
  ASSERT_TRUE(result.ok()) << result.status();
  const nlohmann::ordered_json json = DenseToJson(*result);
  EXPECT_EQ(json["suite"], "dense");
  ASSERT_EQ(json["rows"].size(), 3);
  EXPECT_EQ(json["rows"][0]["kernel"], "product/matmul/17x35,33x35/f32");
  EXPECT_EQ(json["rows"][0]["sizes"]["macs"], 17 * 35 * 33);
  EXPECT_EQ(json["rows"][0]["sizes"]["bytes"], 4 * (17 * 35 + 33 * 35 + 17 * 33));
  const absl::StatusOr<Comparison> read = DenseFromJson(json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(DenseToJson(*read).dump(2), json.dump(2));
  EXPECT_THAT(PageHtml(*read), HasSubstr(kDenseTitle));
}

// Quotients of times that are whole.
TEST(BenchDenseTest, ClassesHaveMeansAndLeasts) {
  Comparison result;
  result.suite = kDenseSuite;
  result.implementations = {{"onednn/1", "", 1, ""}, {"nao-auto/1", "", 1, ""}};
  const auto row = [](const char* name, double other, double ours) {
    ComparisonRow row{.kernel = name, .sizes = {}, .entries = {}};
    row.entries.resize(2);
    row.entries[0].implementation = "onednn/1";
    row.entries[0].time_ns = other;
    row.entries[1].implementation = "nao-auto/1";
    row.entries[1].time_ns = ours;
    return row;
  };
  result.rows = {row("a/x/1/f32", 4, 1), row("a/x/2/f32", 1, 4), row("a/x/2/i8", 2, 1)};
  result.rows.push_back(row("a/x/3/f32", 1, 1));
  result.rows.back().entries[0].skipped = "no such layer";
  const std::vector<ClassSpeedup> classes = ClassSpeedups(result);
  ASSERT_EQ(classes.size(), 2);
  EXPECT_EQ(classes[0].name, "a f32");
  EXPECT_EQ(classes[0].layers, 2);
  EXPECT_DOUBLE_EQ(classes[0].mean, 1);
  EXPECT_EQ(classes[0].least, 0.25);
  EXPECT_EQ(classes[0].least_kernel, "a/x/2/f32");
  EXPECT_EQ(classes[1].name, "a i8");
  EXPECT_EQ(classes[1].mean, 2);
}

TEST(BenchDenseTest, LayersHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const SuiteCase& c : DenseCases()) {
    EXPECT_TRUE(names.insert(DenseName(c)).second) << DenseName(c);
  }
  EXPECT_GT(names.size(), 80);
  EXPECT_EQ(DenseName(DenseCases()[0]), "resnet50/conv2d/224x224x3,64x7x7x3/stride=2/f32");
  EXPECT_EQ(DenseClass(DenseName(DenseCases()[1])), "resnet50 i8");
  EXPECT_EQ(DenseClass(DenseName(DenseCases()[2])), "resnet50 bf16");
}

TEST(BenchDenseTest, Errors) {
  DenseSettings settings = Small();
  settings.filter = "frob";
  EXPECT_THAT(Error(settings), HasSubstr("no layer of dense is named so; the first is 'conv/"));
  settings = Small();
  settings.size = "large";
  EXPECT_THAT(Error(settings), HasSubstr("expected networks or small, found 'large'"));
  settings = Small();
  settings.peers = {"mkl"};
  EXPECT_THAT(Error(settings), HasSubstr("is named 'mkl': expected onednn, openblas"));
  settings = Small();
  settings.threads = {0};
  EXPECT_THAT(Error(settings), HasSubstr("expected 1 or more, found 0"));
}

}  // namespace
}  // namespace polynao::benchmarks
