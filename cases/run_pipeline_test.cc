#include "cases/run_pipeline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files.h"
#include "cases/png.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/pipelines/pipelines.h"
#include "nlohmann/json.hpp"

namespace polynao::cases {
namespace {

using ::testing::HasSubstr;

PipelineSettings Settings(const std::string& shape, const std::string& target = "cpu") {
  PipelineSettings settings;
  settings.shape = shape;
  settings.nest.executable.target = target;
  settings.nest.timing.seconds = 0;
  return settings;
}

absl::StatusOr<NestReport> RunNamed(const std::string& pipeline, const PipelineSettings& settings) {
  return RunPipeline(*kernels::FindPipeline(pipeline), settings);
}

std::string Error(const std::string& shape) {
  return std::string(RunNamed("camera_pipe", Settings(shape)).status().message());
}

TEST(RunPipelineTest, AgreesOnEveryTarget) {
  for (const char* target : {"cpu", "c", "cuda", "interp"}) {
    const absl::StatusOr<NestReport> report = RunNamed("unsharp", Settings("21x35", target));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->difference, "") << target;
    EXPECT_EQ(report->tolerance, 0);
    EXPECT_EQ(report->times.has_value(), std::string(target) != "cuda");
    EXPECT_FALSE(report->notes.empty());
    EXPECT_THAT(report->ToText(), HasSubstr("shape=21x35: values agree with plain loops\n"));
    EXPECT_EQ(report->ToJson()["arguments"]["shape"], "21x35");
    EXPECT_EQ(report->ToJson()["compared_with"], "plain loops");
  }
}

// A relaxed rule for floats brings a tolerance.
TEST(RunPipelineTest, AgreesWithContraction) {
  PipelineSettings settings = Settings("21x35");
  settings.nest.executable.float_rules.contract = true;
  const absl::StatusOr<NestReport> report = RunNamed("harris", settings);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->difference, "");
  EXPECT_GT(report->tolerance, 0);
}

std::string Path(const std::string& name) { return testing::TempDir() + "/" + name; }

// A gray step: a dark and a bright half, with an edge between them.
Picture Step(int64_t rows, int64_t cols, int channels, int bits) {
  Picture picture{.rows = rows, .cols = cols, .channels = channels, .bits = bits, .samples = {}};
  for (int64_t i = 0; i < rows * cols; ++i) {
    for (int c = 0; c < channels; ++c) {
      picture.samples.push_back(i % cols < cols / 2 ? (bits == 8 ? 51 : 13107)
                                                    : (bits == 8 ? 153 : 39321));
    }
  }
  return picture;
}

absl::StatusOr<Picture> RunOnPicture(const std::string& pipeline, const Picture& picture,
                                     const std::string& shape = "") {
  PipelineSettings settings = Settings(shape);
  settings.nest.schedule = "none";
  settings.image = Path("in.png");
  settings.out = Path("out.png");
  if (absl::Status s = WriteFile(settings.image, EncodePng(picture)); !s.ok()) return s;
  const absl::StatusOr<NestReport> report = RunNamed(pipeline, settings);
  if (!report.ok()) return report.status();
  EXPECT_EQ(report->difference, "");
  return DecodePng(*ReadFile(settings.out), settings.out);
}

// Filters that keep what is flat keep a picture's halves, whatever it is made of; only near the edge, and near the
// border where the filter's own is not the picture's, pixels change.
TEST(RunPipelineTest, PicturesInAndOut) {
  for (const char* pipeline :
       {"bilateral_grid", "local_laplacian", "multiscale_interp", "unsharp"}) {
    const bool is_gray = std::string(pipeline) == "bilateral_grid";
    for (const auto& [channels, bits] : {std::pair(1, 16), std::pair(3, 8)}) {
      SCOPED_TRACE(testing::Message() << pipeline << " " << channels << " " << bits);
      const absl::StatusOr<Picture> out = RunOnPicture(pipeline, Step(33, 64, channels, bits));
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_EQ(out->rows, 33);
      EXPECT_EQ(out->cols, 64);
      EXPECT_EQ(out->channels, is_gray ? 1 : 3);
      const bool is_u16 = std::string(pipeline) == "local_laplacian";
      EXPECT_EQ(out->bits, is_u16 ? 16 : bits);
      const double white = out->bits == 8 ? 255 : 65535;
      EXPECT_NEAR(out->Sample(16, 12, 0) / white, 0.2, 0.06);
      EXPECT_NEAR(out->Sample(16, 52, out->channels - 1) / white, 0.6, 0.06);
    }
  }
}

TEST(RunPipelineTest, HarrisFindsTheCorner) {
  Picture picture = Step(40, 40, 1, 8);
  for (int64_t i = 0; i < 20 * 40; ++i) picture.samples[static_cast<size_t>(i)] = 51;
  const absl::StatusOr<Picture> out = RunOnPicture("harris", picture);
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->rows, 36);
  // The brightest pixel is at the corner (20, 20) of the bright part; the output begins at (2, 2). Edges are black.
  EXPECT_EQ(*std::max_element(out->samples.begin(), out->samples.end()), 255);
  const int64_t at =
      std::max_element(out->samples.begin(), out->samples.end()) - out->samples.begin();
  EXPECT_NEAR(static_cast<double>(at / 36 + 2), 19.5, 1.5);
  EXPECT_NEAR(static_cast<double>(at % 36 + 2), 19.5, 1.5);
  EXPECT_EQ(out->Sample(30, 18, 0), 0);
}

// Colours are taken apart into the mosaic and come back in the order in which they were: what is red stays mostly red.
TEST(RunPipelineTest, CameraKeepsColours) {
  for (const int strong : {0, 1, 2}) {
    Picture picture = Step(81, 99, 3, 8);
    for (size_t i = 0; i < picture.samples.size(); ++i) {
      picture.samples[i] = static_cast<int>(i % 3) == strong ? 80 : 20;
    }
    const absl::StatusOr<Picture> out = RunOnPicture("camera_pipe", picture);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(out->rows, 33);
    EXPECT_EQ(out->cols, 35);
    ASSERT_EQ(out->channels, 3);
    for (int c = 0; c < 3; ++c) {
      if (c != strong) EXPECT_GT(out->Sample(16, 17, strong), out->Sample(16, 17, c)) << strong;
    }
  }
}

// --shape crops a picture, or repeats its edges.
TEST(RunPipelineTest, ShapeOfItsOwn) {
  const absl::StatusOr<Picture> cropped = RunOnPicture("unsharp", Step(40, 60, 3, 8), "10x20");
  ASSERT_TRUE(cropped.ok()) << cropped.status();
  EXPECT_EQ(cropped->rows, 10);
  EXPECT_EQ(cropped->Sample(5, 19, 0), 51);
  const absl::StatusOr<Picture> wider = RunOnPicture("unsharp", Step(40, 60, 3, 8), "50x90");
  ASSERT_TRUE(wider.ok()) << wider.status();
  EXPECT_EQ(wider->Sample(49, 89, 2), 153);
}

TEST(RunPipelineTest, BadFilesWriteNothing) {
  PipelineSettings settings = Settings("");
  settings.image = Path("none.png");
  settings.out = Path("nothing.png");
  EXPECT_THAT(RunNamed("unsharp", settings).status().message(), HasSubstr("none.png"));
  settings.image = Path("bad.png");
  const std::string bytes = EncodePng(Step(9, 9, 3, 8));
  ASSERT_TRUE(WriteFile(settings.image, bytes.substr(0, bytes.size() / 2)).ok());
  EXPECT_THAT(RunNamed("unsharp", settings).status().message(),
              HasSubstr("bad.png: expected a whole PNG file: the file ends too early"));
  ASSERT_TRUE(WriteFile(settings.image, bytes).ok());
  EXPECT_EQ(RunNamed("camera_pipe", settings).status().message(),
            "camera_pipe: expected at least 49x65 pixels, found 9x9");
  EXPECT_FALSE(ReadFile(settings.out).ok());
}

TEST(RunPipelineTest, TellsWhatIsWrong) {
  EXPECT_EQ(Error("100"), "camera_pipe: --shape: expected ROWSxCOLS, found '100'");
  EXPECT_EQ(Error("100x70x3"), "camera_pipe: --shape: expected ROWSxCOLS, found '100x70x3'");
  EXPECT_EQ(Error("48x65"), "camera_pipe: expected at least 49x65 pixels, found 48x65");
  PipelineSettings settings = Settings("50x70");
  settings.nest.schedule = "fast";
  EXPECT_THAT(RunNamed("unsharp", settings).status().message(), HasSubstr("--schedule: expected"));
  EXPECT_THAT(RunNamed("local_laplacian", Settings("50x70", "diannao")).status().message(),
              HasSubstr("a value of u16, which the scalar unit of a DianNao core does not have"));
}

}  // namespace
}  // namespace polynao::cases
