// Multiscale interpolation: a pyramid of an image weighted by its alpha channel, whose levels fill the transparent
// pixels of those below them.
#include <string_view>

#include "base/text.h"
#include "kernels/pipelines/pipeline_text.h"
#include "kernels/pipelines/texts.h"

namespace polynao::kernels {
namespace {

constexpr int kLevels = 10;

}  // namespace

std::string MultiscaleInterpText(int64_t rows, int64_t cols) {
  using Range = PipelineText::Range;
  PipelineText text("multiscale_interp");
  text.Input("image", "f32", {4, rows + 2, cols + 2});
  text.Output("result", "f32", {3, rows, cols});
  // Stores `value` inside of an array of r x k elements with a border of one zero around it.
  const auto stage = [&](std::string_view name, int64_t r, int64_t k, std::string_view value) {
    text.Stage(name, "f32", {4, r + 2, k + 2},
               {Range{"c", 0, 4}, Range{"x", 0, r + 2}, Range{"y", 0, k + 2}},
               StrCat("1 <= x && x <= ", r, " && 1 <= y && y <= ", k, " ? ", value, " : 0.0"));
  };
  text.Stage("d0", "f32", {4, rows + 2, cols + 2},
             {Range{"c", 0, 4}, Range{"x", 0, rows + 2}, Range{"y", 0, cols + 2}},
             "image[c, x, y] * image[3, x, y]");
  for (int level = 1; level < kLevels; ++level) {
    const std::string above = StrCat("d", level - 1), half = StrCat("Dx", level);
    stage(half, rows >> level, cols >> (level - 1),
          StrCat("(", above, "[c, 2 * x - 2, y] + ", above, "[c, 2 * x - 1, y] * 2.0 + ", above,
                 "[c, 2 * x, y]) * 0.25"));
    stage(StrCat("d", level), rows >> level, cols >> level,
          StrCat("(", half, "[c, x, 2 * y - 2] + ", half, "[c, x, 2 * y - 1] * 2.0 + ", half,
                 "[c, x, 2 * y]) * 0.25"));
  }
  std::string below = StrCat("d", kLevels - 1);
  for (int level = kLevels - 2; level >= 0; --level) {
    const std::string half = StrCat("Ux", level), down = StrCat("d", level);
    stage(half, rows >> level, cols >> (level + 1),
          StrCat("(", below, "[c, (x + 1) / 2, y] + ", below, "[c, (x + 2) / 2, y]) * 0.5"));
    below = StrCat("u", level);
    stage(below, rows >> level, cols >> level,
          StrCat(down, "[c, x, y] + (1.0 - ", down, "[3, x, y]) * ((", half,
                 "[c, x, (y + 1) / 2] + ", half, "[c, x, (y + 2) / 2]) * 0.5)"));
  }
  text.Nest({Range{"c", 0, 3}, Range{"x", 0, rows}, Range{"y", 0, cols}}, "result[c, x, y]",
            "u0[c, x + 1, y + 1] / u0[3, x + 1, y + 1]");
  return text.Text();
}

}  // namespace polynao::kernels
