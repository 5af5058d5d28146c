// Unsharp mask and Harris corners: stencils on one image.
#include <string_view>

#include "base/text.h"
#include "kernels/pipelines/pipeline_text.h"
#include "kernels/pipelines/texts.h"

namespace polynao::kernels {
namespace {

// The taps 1 4 6 4 1 around the variable of one dimension, over 16.
std::string Blur(std::string_view before, std::string_view variable, std::string_view after) {
  const auto tap = [&](std::string_view offset) { return StrCat(before, variable, offset, after); };
  return StrCat("(", tap(" - 2"), " + ", tap(" - 1"), " * 4.0 + ", tap(""), " * 6.0 + ",
                tap(" + 1"), " * 4.0 + ", tap(" + 2"), ") * 0.0625");
}

}  // namespace

std::string UnsharpText(int64_t rows, int64_t cols) {
  const PipelineText::Extents padded = {3, rows + 4, cols + 4};
  const PipelineText::Range c{"c", 0, 3}, x{"x", 2, rows + 2}, y{"y", 2, cols + 2};
  PipelineText text("unsharp");
  text.Input("image", "f32", padded);
  text.Output("result", "f32", {3, rows, cols});
  text.Stage("blurx", "f32", padded, {c, x, {"y", 0, cols + 4}}, Blur("image[c, ", "x", ", y]"));
  text.Stage("blury", "f32", padded, {c, x, y}, Blur("blurx[c, x, ", "y", "]"));
  text.Stage("sharpen", "f32", padded, {c, x, y}, "image[c, x, y] * 4.0 - blury[c, x, y] * 3.0");
  text.Nest({c, x, y}, "result[c, x - 2, y - 2]",
            "abs(image[c, x, y] - blury[c, x, y]) < 0.001 ? image[c, x, y] : sharpen[c, x, y]");
  return text.Text();
}

std::string HarrisText(int64_t rows, int64_t cols) {
  const PipelineText::Extents extents = {rows, cols};
  const PipelineText::Range x{"x", 1, rows - 1}, y{"y", 1, cols - 1};
  const PipelineText::Range x2{"x", 2, rows - 2}, y2{"y", 2, cols - 2};
  PipelineText text("harris");
  text.Input("image", "f32", extents);
  text.Output("result", "f32", {rows - 4, cols - 4});
  const auto gradient = [&](std::string_view name, std::string_view value) {
    text.Stage(name, "f32", extents, {x, y}, StrCat("(", value, ") * 0.083333336"));  // 1 / 12
  };
  gradient("Iy",
           "image[x - 1, y + 1] - image[x - 1, y - 1] + (image[x, y + 1] - image[x, y - 1]) * 2.0"
           " + (image[x + 1, y + 1] - image[x + 1, y - 1])");
  gradient("Ix",
           "image[x + 1, y - 1] - image[x - 1, y - 1] + (image[x + 1, y] - image[x - 1, y]) * 2.0"
           " + (image[x + 1, y + 1] - image[x - 1, y + 1])");
  text.Stage("Ixx", "f32", extents, {x, y}, "Ix[x, y] * Ix[x, y]");
  text.Stage("Iyy", "f32", extents, {x, y}, "Iy[x, y] * Iy[x, y]");
  text.Stage("Ixy", "f32", extents, {x, y}, "Ix[x, y] * Iy[x, y]");
  const auto sum = [&](std::string_view name, std::string_view of) {
    std::string value;
    for (const char* row : {"x - 1", "x", "x + 1"}) {
      for (const char* column : {"y - 1", "y", "y + 1"}) {
        StrAppend(&value, value.empty() ? "" : " + ", of, "[", row, ", ", column, "]");
      }
    }
    text.Stage(name, "f32", extents, {x2, y2}, value);
  };
  sum("Sxx", "Ixx");
  sum("Syy", "Iyy");
  sum("Sxy", "Ixy");
  text.Stage("det", "f32", extents, {x2, y2}, "Sxx[x, y] * Syy[x, y] - Sxy[x, y] * Sxy[x, y]");
  text.Stage("trace", "f32", extents, {x2, y2}, "Sxx[x, y] + Syy[x, y]");
  text.Nest({x2, y2}, "result[x - 2, y - 2]", "det[x, y] - 0.04 * trace[x, y] * trace[x, y]");
  return text.Text();
}

}  // namespace polynao::kernels
