// The examples of docs/pipelines.md. docs/pipelines.png shows a scene and what pipelines make of it: here it is
// painted, put through them, and compared with the file. POLYNAO_WRITE_PICTURES=FILE writes the picture there.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files.h"
#include "base/text.h"
#include "cases/png.h"
#include "cases/run_nest.h"
#include "cases/run_pipeline.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_value.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "docs/examples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/pipelines/pipelines.h"

namespace polynao::docs {
namespace {

using cases::Picture;

constexpr int64_t kRows = 132, kCols = 196;

Picture Blank(int64_t rows, int64_t cols) {
  Picture picture{.rows = rows, .cols = cols, .channels = 3, .bits = 8, .samples = {}};
  picture.samples.resize(static_cast<size_t>(rows * cols * 3));
  return picture;
}

// A town in the evening: sky, sun, houses with windows, and a little noise as a sensor has it.
Picture Scene() {
  Picture scene = Blank(kRows, kCols);
  for (int64_t x = 0; x < kRows; ++x) {
    for (int64_t y = 0; y < kCols; ++y) {
      const double height = static_cast<double>(x) / kRows;
      double colour[3] = {90 + 130 * height, 110 + 40 * height, 170 - 60 * height};
      const double to_sun = std::hypot(static_cast<double>(x - 44), static_cast<double>(y - 140));
      if (to_sun < 17) {
        colour[0] = 252, colour[1] = 232, colour[2] = 168;
      } else {
        for (double& c : colour) c += 700 / (to_sun + 8);
      }
      const int64_t house = y / 28;
      const int64_t roof =
          60 + static_cast<int64_t>(ir::Splitmix(5, static_cast<uint64_t>(house)) % 40);
      if (x >= roof && y % 28 < 24) {
        const double wall = 26 + 9 * static_cast<double>(house % 3);
        colour[0] = wall + 8, colour[1] = wall, colour[2] = wall + 12;
        const int64_t row = (x - roof) / 9, column = y % 28 / 6;
        const bool is_window = (x - roof) % 9 >= 3 && y % 28 % 6 >= 2;
        const uint64_t window = static_cast<uint64_t>((house * 8 + row) * 8 + column);
        if (is_window && ir::Splitmix(6, window) % 3 == 0) {
          colour[0] = 236, colour[1] = 196, colour[2] = 96;
        }
      }
      const double noise =
          static_cast<double>(ir::Splitmix(7, static_cast<uint64_t>(x * kCols + y)) % 9) - 4;
      for (int c = 0; c < 3; ++c) {
        scene.samples[static_cast<size_t>((x * kCols + y) * 3 + c)] =
            static_cast<uint16_t>(std::clamp(colour[c] + noise, 0.0, 255.0));
      }
    }
  }
  return scene;
}

// What `nao run PIPELINE --image=IN --out=OUT` writes for the scene.
Picture Output(const std::string& pipeline) {
  const std::string in = testing::TempDir() + "/scene.png", out = testing::TempDir() + "/out.png";
  EXPECT_TRUE(WriteFile(in, EncodePng(Scene())).ok());
  cases::PipelineSettings settings;
  settings.image = in;
  settings.out = out;
  settings.nest.schedule = "none";
  settings.nest.timing.seconds = 0;
  const auto report = cases::RunPipeline(*kernels::FindPipeline(pipeline), settings);
  EXPECT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->difference, "");
  return *cases::DecodePng(*ReadFile(out), out);
}

// `part`, in 8 bits and colours, from (row, col) of `picture` on.
void Paste(const Picture& part, int64_t row, int64_t col, Picture& picture) {
  for (int64_t x = 0; x < part.rows; ++x) {
    for (int64_t y = 0; y < part.cols; ++y) {
      for (int c = 0; c < 3; ++c) {
        const uint16_t sample = part.Sample(x, y, part.channels == 1 ? 0 : c);
        picture.samples[static_cast<size_t>(((row + x) * picture.cols + col + y) * 3 + c)] =
            static_cast<uint16_t>(part.bits == 16 ? sample >> 8 : sample);
      }
    }
  }
}

TEST(PipelinesExamplesTest, PictureShowsWhatPipelinesMake) {
  constexpr int64_t kGap = 4;
  Picture all = Blank(2 * kRows + kGap, 2 * kCols + kGap);
  std::fill(all.samples.begin(), all.samples.end(), uint16_t{255});
  const int64_t row = kRows + kGap, col = kCols + kGap;
  Paste(Scene(), 0, 0, all);
  Paste(Output("harris"), 2, col + 2, all);  // the output begins at (2, 2)
  Paste(Output("bilateral_grid"), row, 0, all);
  Paste(Output("local_laplacian"), row, col, all);
  if (const char* file = std::getenv("POLYNAO_WRITE_PICTURES")) {
    ASSERT_TRUE(WriteFile(file, EncodePng(all)).ok());
  }
  const absl::StatusOr<std::string> bytes = ReadFile("docs/pipelines.png");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const absl::StatusOr<Picture> expected = cases::DecodePng(*bytes, "docs/pipelines.png");
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_EQ(expected->rows, all.rows);
  ASSERT_EQ(expected->cols, all.cols);
  // The last bit of exp() in a table may be another one elsewhere.
  int most = 0;
  for (size_t i = 0; i < all.samples.size(); ++i) {
    most = std::max(most, std::abs(all.samples[i] - expected->samples[i]));
  }
  EXPECT_LE(most, 1);
}

TEST(PipelinesExamplesTest, LoopIrRuns) {
  const std::vector<Example> examples = ReadExamples("docs/pipelines.md", "nir");
  ASSERT_EQ(examples.size(), 1);
  const auto function = ir::ParseFunction(examples[0].text);
  ASSERT_TRUE(function.ok()) << function.status();
  cases::NestSettings settings;
  settings.arguments = {"n=29", "m=31"};
  settings.timing.seconds = 0;
  const auto report = cases::RunNest(*function, settings);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->difference, "");
  EXPECT_EQ(report->compared_with, "the interpreter");
}

// The table's sizes and shapes are those of the pipelines.
TEST(PipelinesExamplesTest, TableIsTrue) {
  const std::string page = ReadDocument("docs/pipelines.md");
  for (const kernels::Pipeline& p : kernels::Pipelines()) {
    EXPECT_THAT(page, testing::ContainsRegex(StrCat("\\| `", p.name, "` \\| .* \\| ",
                                                    p.default_rows, "x", p.default_cols, " \\| ",
                                                    p.least_rows, "x", p.least_cols, " \\|")));
    const auto function = kernels::PipelineFunction(p, 101, 103);
    ASSERT_TRUE(function.ok()) << function.status();
    int stages = 0;
    ir::ForEachStmt(function->body, [&](ir::Stmt s) {
      stages += s.Is(ir::StmtKind::kStore);
      return true;
    });
    EXPECT_THAT(page,
                testing::ContainsRegex(StrCat("\\| `", p.name, "` \\| .* \\| ", stages, " \\|")));
  }
}

}  // namespace
}  // namespace polynao::docs
