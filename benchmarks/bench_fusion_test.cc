#include "benchmarks/bench_fusion.h"

#include <string>
#include <vector>

#include "base/text.h"
#include "benchmarks/comparison_page.h"
#include "benchmarks/fusion_result.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace polynao::benchmarks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Error(const FusionSettings& settings) {
  return std::string(RunFusion(settings).status().message());
}

// Small images, without time for Halide's search.
FusionSettings Small(const std::string& pipeline) {
  FusionSettings settings;
  settings.filter = StrCat("^", pipeline, "$");
  settings.size = "small";
  settings.seconds = 0;
  settings.strategies = {"none"};
  settings.peers = {"gcc", "clang"};
  return settings;
}

// Real runs of what this machine has, on one and two threads.
class PipelineTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PipelineTest, ImplementationsAgree) {
  FusionSettings settings = Small(GetParam());
  settings.peers = {"halide-hand", "gcc", "clang"};
  int rows = 0;
  settings.on_row = [&](int done, int total, const ComparisonRow& row) {
    EXPECT_EQ(done, ++rows);
    EXPECT_EQ(total, 1);
    EXPECT_EQ(row.kernel, GetParam());
  };
  const absl::StatusOr<Comparison> result = RunFusion(settings);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->ok()) << FusionText(*result);
  EXPECT_EQ(rows, 1);
  ASSERT_EQ(result->rows.size(), 1);
  const ComparisonRow& row = result->rows[0];
  ASSERT_EQ(row.entries.size(), 8);  // four implementations, twice
  for (size_t i = 0; i < row.entries.size(); ++i) {
    EXPECT_EQ(row.entries[i].implementation, result->implementations[i].name);
    EXPECT_EQ(row.entries[i].skipped, result->implementations[i].missing);
    if (row.entries[i].ran()) EXPECT_GT(row.entries[i].time_ns, 0);
  }
  for (const char* name : {"nao-none/1", "nao-none/2"}) {
    ASSERT_NE(row.Find(name), nullptr);
    EXPECT_TRUE(row.Find(name)->ran());
  }
}

INSTANTIATE_TEST_SUITE_P(Pipelines, PipelineTest,
                         ::testing::Values("bilateral_grid", "camera_pipe", "harris",
                                           "local_laplacian", "multiscale_interp", "unsharp"),
                         [](const auto& info) { return info.param; });

TEST(BenchFusionTest, JsonIsFlatAndReadBack) {
  FusionSettings settings = Small("unsharp");
  settings.strategies = {"none", "smart"};
  settings.peers = {};
  settings.rows = 17;
  settings.cols = 23;
  const absl::StatusOr<Comparison> result = RunFusion(settings);
  ASSERT_TRUE(result.ok()) << result.status();
  const nlohmann::ordered_json json = FusionToJson(*result);
  EXPECT_EQ(json["suite"], "fusion");
  EXPECT_EQ(json["size"], "17x23");
  ASSERT_EQ(json["rows"].size(), 4);
  const nlohmann::ordered_json& row = json["rows"][3];
  EXPECT_EQ(row["pipeline"], "unsharp");
  EXPECT_EQ(row["implementation"], "nao-smart");
  EXPECT_EQ(row["threads"], 2);
  EXPECT_EQ(row["ok"], true);
  EXPECT_EQ(row["sizes"]["rows"], 17);
  EXPECT_GT(row["time_ms"].get<double>(), 0);
  EXPECT_GT(row["compile_ms"].get<double>(), 0);

  const absl::StatusOr<Comparison> read = FusionFromJson(json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(FusionToJson(*read).dump(2), json.dump(2));
  const std::string page = PageHtml(*read);
  EXPECT_THAT(page, HasSubstr("Speed-up over nao-none/1"));
  EXPECT_THAT(page, HasSubstr("Speed-up over nao-none/2"));
}

double Figure(const ComparisonEntry& entry, const std::string& name) {
  for (const auto& [figure, value] : entry.figures) {
    if (figure == name) return value;
  }
  ADD_FAILURE() << "no figure " << name << " of " << entry.implementation;
  return 0;
}

TEST(BenchFusionTest, FiguresSayWhatFusionSaves) {
  FusionSettings settings = Small("harris");
  settings.rows = 90;
  settings.cols = 110;
  settings.strategies = {"none", "original", "fuse"};
  settings.peers = {};
  settings.threads = {1};
  const absl::StatusOr<Comparison> result = RunFusion(settings);
  ASSERT_TRUE(result.ok()) << result.status();
  const ComparisonRow& row = result->rows[0];
  const ComparisonEntry &none = *row.Find("nao-none/1"), &fused = *row.Find("nao-fuse/1");
  EXPECT_EQ(Figure(none, "stages"), 11);
  EXPECT_EQ(Figure(none, "groups"), 11);
  EXPECT_EQ(Figure(none, "redundancy"), 1);
  EXPECT_EQ(Figure(none, "bytes_after"), Figure(none, "bytes_before"));
  EXPECT_EQ(Figure(fused, "groups"), 1);
  EXPECT_GE(Figure(fused, "redundancy"), 1);
  EXPECT_LT(Figure(fused, "redundancy"), 1.5);
  EXPECT_GT(Figure(fused, "tile_bytes"), 0);
  // Each of eleven stages stores an array and reads one to three, against the image and the result.
  EXPECT_EQ(Figure(fused, "bytes_before"), Figure(none, "bytes_before"));
  EXPECT_LT(Figure(fused, "bytes_after") * 5, Figure(fused, "bytes_before"));
  EXPECT_EQ(Figure(*row.Find("nao-original/1"), "redundancy"), 1);
  const nlohmann::ordered_json json = FusionToJson(*result);
  EXPECT_EQ(json["rows"][2]["figures"]["redundancy"], Figure(fused, "redundancy"));
  const absl::StatusOr<Comparison> read = FusionFromJson(json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(FusionToJson(*read).dump(2), json.dump(2));
  EXPECT_THAT(PageHtml(*read), HasSubstr("What the schedules run"));
}

// An entry that was skipped is neither right nor wrong.
TEST(BenchFusionTest, WithoutHalideTheReasonStands) {
  FusionSettings settings = Small("harris");
  settings.peers = {"halide", "gcc"};
  settings.python = "/nowhere/python3";
  settings.threads = {1};
  const absl::StatusOr<Comparison> result = RunFusion(settings);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->ok()) << FusionText(*result);
  EXPECT_EQ(result->baseline, "gcc/1");
  const ComparisonEntry* entry = result->rows[0].Find("halide-hand/1");
  ASSERT_NE(entry, nullptr);
  EXPECT_THAT(entry->skipped, HasSubstr("/nowhere/python3"));
  EXPECT_TRUE(FusionToJson(*result)["rows"][0]["ok"].is_null());
  for (const auto& mean : FusionToJson(*result)["summary"]) EXPECT_EQ(mean["over"], "gcc");
}

TEST(BenchFusionTest, GoesOnWhereItStopped) {
  FusionSettings settings = Small("unsharp");
  settings.peers = {};
  absl::StatusOr<Comparison> first = RunFusion(settings);
  ASSERT_TRUE(first.ok()) << first.status();
  first->rows[0].entries[0].time_ns = 12345;

  settings.filter = "^harris$";
  settings.known = *FusionFromJson(FusionToJson(*first));
  std::vector<std::string> ran;
  settings.on_row = [&](int, int total, const ComparisonRow& row) {
    EXPECT_EQ(total, 1);
    ran.push_back(row.kernel);
  };
  // What is known stands in each file, also what comes later: a run that stops again loses nothing.
  std::vector<size_t> saved;
  settings.save = [&](const Comparison& so_far) {
    saved.push_back(so_far.rows.size());
    return absl::OkStatus();
  };
  const absl::StatusOr<Comparison> both = RunFusion(settings);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_THAT(ran, ElementsAre("harris"));
  EXPECT_THAT(saved, ElementsAre(2));
  ASSERT_EQ(both->rows.size(), 2);
  EXPECT_EQ(both->rows[1].kernel, "unsharp");
  EXPECT_EQ(both->rows[1].entries[0].time_ns, 12345);

  settings.seed = 2;
  EXPECT_EQ(Error(settings), "--resume: expected rows of seed '2', found '1'");
}

TEST(BenchFusionTest, WrongSettings) {
  EXPECT_EQ(Error({.size = "large"}), "--size: expected paper or small, found 'large'");
  EXPECT_THAT(Error({.rows = 5}), HasSubstr("both above 0, found 5 and 0"));
  EXPECT_EQ(Error({.filter = "blur", .peers = {}}),
            "--filter='blur': no pipeline is named so; the first is 'bilateral_grid'");
  EXPECT_EQ(Error({.threads = {0}, .peers = {}}), "--threads: expected 1 or more, found 0");
  EXPECT_THAT(Error({.strategies = {"best"}, .peers = {}}), HasSubstr("found 'best'"));
  EXPECT_THAT(Error({.pipelines = {"harris", "sharpen"}, .peers = {}}),
              HasSubstr("no pipeline is named 'sharpen': expected bilateral_grid, camera_pipe"));
  EXPECT_THAT(Error({.peers = {"icc"}}), HasSubstr("named 'icc': expected halide, gcc, clang"));
  EXPECT_THAT(Error({.filter = "harris", .rows = 3, .cols = 3, .peers = {}}),
              HasSubstr("harris: expected at least 5x5 pixels, found 3x3"));
}

}  // namespace
}  // namespace polynao::benchmarks
