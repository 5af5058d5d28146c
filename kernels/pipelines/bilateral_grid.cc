// The bilateral grid: a smoothing that keeps edges, as a blur of a histogram over position and brightness.
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "kernels/pipelines/pipeline_text.h"
#include "kernels/pipelines/texts.h"

namespace polynao::kernels {
namespace {

constexpr int64_t kCell = 8;
constexpr int64_t kBins = 10;
// Pixels around the nominal image: before it, and in all.
constexpr int64_t kBefore = 24;
constexpr int64_t kMargin = 56;
// The grid's cell with the first nominal pixel.
constexpr int64_t kFirst = 2 + kBefore / kCell;

// The taps 1 4 6 4 1 of `of` along one index.
std::string Blur(std::string_view of, std::string_view along) {
  std::string value;
  for (int tap = -2; tap <= 2; ++tap) {
    std::string indices = "c";
    for (std::string_view variable : {"x", "y", "z"}) {
      StrAppend(&indices, ", ", variable);
      if (variable == along && tap != 0) {
        StrAppend(&indices, tap < 0 ? " - " : " + ", std::abs(tap));
      }
    }
    constexpr std::string_view kWeights[] = {"", " * 4.0", " * 6.0", " * 4.0", ""};
    StrAppend(&value, value.empty() ? "" : " + ", of, "[", indices, "]", kWeights[tap + 2]);
  }
  return value;
}

std::string Lerp(std::string_view a, std::string_view b, std::string_view weight) {
  return StrCat("(", a, " + ", weight, " * (", b, " - ", a, "))");
}

// The blurred grid between the eight cells around pixel (dx, dy) of cell (x, y) of the nominal image.
std::string Trilinear(const std::string& pixel) {
  const std::string scaled = StrCat(pixel, " * 10.0"), bin = StrCat("cast(i32, ", scaled, ")");
  const auto cell = [&](int64_t x, int64_t y, int64_t z) {
    return StrCat("blury[c, x + ", x + kFirst, ", y + ", y + kFirst, ", ", bin, " + ", 2 + z, "]");
  };
  const auto plane = [&](int64_t z) {
    const std::string xf = "cast(f32, dx) * 0.125", yf = "cast(f32, dy) * 0.125";
    return Lerp(Lerp(cell(0, 0, z), cell(1, 0, z), xf), Lerp(cell(0, 1, z), cell(1, 1, z), xf), yf);
  };
  return Lerp(plane(0), plane(1), StrCat("(", scaled, " - cast(f32, ", bin, "))"));
}

// Loops over the pixels of `cells`, 8 x 8 at a time, and a guard that keeps them within so many rows and columns of
// pixels; empty where all cells are whole. Cells count from x and y.
struct Pixels {
  std::vector<PipelineText::Range> ranges;
  std::string guard;
};
Pixels PixelsOf(int64_t rows, int64_t cols, int64_t first) {
  Pixels result;
  const auto add = [&](std::string_view cell, std::string_view inside, int64_t size) {
    result.ranges.push_back({std::string(cell), first, first + (size + kCell - 1) / kCell});
    if (size % kCell != 0) {
      StrAppend(&result.guard, result.guard.empty() ? "" : " && ", cell, " * 8 + ", inside, " < ",
                size + first * kCell);
    }
  };
  add("x", "dx", rows);
  add("y", "dy", cols);
  result.ranges.push_back({"dx", 0, kCell});
  result.ranges.push_back({"dy", 0, kCell});
  return result;
}

std::vector<PipelineText::Range> WithChannel(std::vector<PipelineText::Range> ranges) {
  ranges.insert(ranges.begin(), {"c", 0, 2});
  return ranges;
}

}  // namespace

std::string BilateralGridText(int64_t rows, int64_t cols) {
  using Range = PipelineText::Range;
  const int64_t padded_rows = rows + kMargin, padded_cols = cols + kMargin;
  const int64_t grid_rows = padded_rows / kCell, grid_cols = padded_cols / kCell;
  const PipelineText::Extents grid = {2, grid_rows + 4, grid_cols + 4, kBins + 4};
  const std::vector<Range> cells = {Range{"c", 0, 2}, Range{"x", 0, grid[1]},
                                    Range{"y", 0, grid[2]}, Range{"z", 0, grid[3]}};
  PipelineText text("bilateral_grid");
  text.Input("image", "f32", {padded_rows, padded_cols});
  text.Output("result", "f32", {rows, cols});
  text.Stage("grid", "f32", grid, cells, "0.0");
  // Cell 2 of the grid has the first pixels.
  const Pixels all = PixelsOf(padded_rows, padded_cols, 2);
  const std::string counted = "image[x * 8 + dx - 16, y * 8 + dy - 16]";
  const std::string element = StrCat("grid[c, x, y, cast(i32, ", counted, " * 10.0) + 2]");
  text.Nest(WithChannel(all.ranges), element, StrCat(element, " + (c == 0 ? ", counted, " : 1.0)"),
            all.guard);
  const auto blur = [&](std::string_view name, std::string_view of, std::string_view along) {
    text.Stage(name, "f32", grid, cells,
               StrCat("2 <= x && x <= ", grid_rows + 1, " && 2 <= y && y <= ", grid_cols + 1,
                      " && 2 <= z && z <= ", kBins + 1, " ? ", Blur(of, along), " : 0.0"));
  };
  blur("blurz", "grid", "z");
  blur("blurx", "blurz", "x");
  blur("blury", "blurx", "y");
  // Per cell, so that all indices but the brightness are affine.
  const Pixels nominal = PixelsOf(rows, cols, 0);
  const std::string pixel = "image[x * 8 + dx + 24, y * 8 + dy + 24]";
  text.Allocate("interpolated", "f32",
                {2, (rows + kCell - 1) / kCell, (cols + kCell - 1) / kCell, kCell, kCell});
  text.Nest(WithChannel(nominal.ranges), "interpolated[c, x, y, dx, dy]", Trilinear(pixel),
            nominal.guard);
  text.Nest(nominal.ranges, "result[x * 8 + dx, y * 8 + dy]",
            StrCat("0.0 < interpolated[1, x, y, dx, dy] ? interpolated[0, x, y, dx, dy] / "
                   "interpolated[1, x, y, dx, dy] : ",
                   pixel),
            nominal.guard);
  return text.Text();
}

}  // namespace polynao::kernels
