// The camera pipeline: from a sensor's Bayer mosaic to an 8-bit picture.
#include <string_view>
#include <vector>

#include "base/text.h"
#include "kernels/pipelines/pipeline_text.h"
#include "kernels/pipelines/texts.h"

namespace polynao::kernels {
namespace {

using Range = PipelineText::Range;

std::string At(std::string_view name, std::string_view x, std::string_view y) {
  return StrCat(name, "[", x, ", ", y, "]");
}

std::string Average(std::string_view a, std::string_view b) {
  return StrCat("(", a, " + ", b, ") / 2");
}

std::string Difference(std::string_view a, std::string_view b) {
  return StrCat("select(", b, " < ", a, ", ", a, " - ", b, ", ", b, " - ", a, ")");
}

// The value of the green neighbours `a` and `b` in between, corrected by the error that green itself would have had.
std::string Corrected(std::string_view green, std::string_view a, std::string_view b,
                      std::string_view green_a, std::string_view green_b) {
  return StrCat(green, " - ", Average(green_a, green_b), " + ", Average(a, b));
}

// The ranges of rows and columns that are the reach of `halo` more at each side than `inner`.
std::vector<Range> Widened(const std::vector<Range>& inner, int64_t halo) {
  std::vector<Range> result = inner;
  for (Range& r : result) {
    r.first -= halo;
    r.end += halo;
  }
  return result;
}

}  // namespace

std::string CameraPipeText(int64_t rows, int64_t cols) {
  // The output's pixels, and the 2 x 2 blocks that contain them.
  const Range x{"x", 12, rows - 36}, y{"y", 16, cols - 48};
  const Range half_x{"x", 6, (rows - 35) / 2}, half_y{"y", 8, (cols - 47) / 2};
  const std::vector<Range> half = {half_x, half_y};
  const PipelineText::Extents extents = {rows, cols}, half_extents = {rows / 2, cols / 2};
  PipelineText text("camera_pipe");
  text.Input("image", "i16", extents);
  text.Input("matrix", "i32", {3, 4});
  text.Input("curve", "u8", {65536});
  text.Output("result", "u8", {3, rows - 48, cols - 64});

  const auto four = [](std::string_view op) {
    return StrCat(op, "(", op, "(image[x - 2, y], image[x + 2, y]), ", op,
                  "(image[x, y - 2], image[x, y + 2]))");
  };
  text.Stage("denoised", "i16", extents,
             {Range{"x", 2 * (half_x.first - 2), 2 * (half_x.end + 2)},
              Range{"y", 2 * (half_y.first - 2), 2 * (half_y.end + 2)}},
             StrCat("max(", four("min"), ", min(", four("max"), ", image[x, y]))"));
  // x_y is the value of channel x where the mosaic has channel y; gr and gb are the green pixels in rows of red and
  // blue.
  const auto deinterleave = [&](std::string_view name, std::string_view index) {
    text.Stage(name, "i16", half_extents, Widened(half, 2), StrCat("denoised[", index, "]"));
  };
  deinterleave("g_gr", "2 * x, 2 * y");
  deinterleave("r_r", "2 * x, 2 * y + 1");
  deinterleave("b_b", "2 * x + 1, 2 * y");
  deinterleave("g_gb", "2 * x + 1, 2 * y + 1");

  // Green where it is missing: horizontally or vertically, whichever pair differs less.
  const auto green = [&](std::string_view name, const std::string& h0, const std::string& h1,
                         const std::string& v0, const std::string& v1) {
    text.Stage(name, "i16", half_extents, Widened(half, 1),
               StrCat("select(", Difference(h0, h1), " < ", Difference(v0, v1), ", ",
                      Average(h0, h1), ", ", Average(v0, v1), ")"));
  };
  green("g_r", At("g_gr", "x", "y + 1"), At("g_gr", "x", "y"), At("g_gb", "x - 1", "y"),
        At("g_gb", "x", "y"));
  green("g_b", At("g_gb", "x", "y - 1"), At("g_gb", "x", "y"), At("g_gr", "x + 1", "y"),
        At("g_gr", "x", "y"));

  // Red and blue at green pixels, between two neighbours: here and at (dx, dy).
  const auto at_green = [&](std::string_view name, std::string_view green, std::string_view of,
                            std::string_view x1, std::string_view y1) {
    const std::string value = StrCat(of, "_", of), green_of = StrCat("g_", of);
    text.Stage(name, "i16", half_extents, half,
               Corrected(At(green, "x", "y"), At(value, "x", "y"), At(value, x1, y1),
                         At(green_of, "x", "y"), At(green_of, x1, y1)));
  };
  at_green("r_gr", "g_gr", "r", "x", "y - 1");
  at_green("b_gr", "g_gr", "b", "x - 1", "y");
  at_green("r_gb", "g_gb", "r", "x + 1", "y");
  at_green("b_gb", "g_gb", "b", "x", "y + 1");

  // Red at blue and blue at red, along the diagonal whose ends differ less: from (x, y) to (x1, y1), or from (x, y1) to
  // (x1, y).
  const auto diagonal = [&](std::string_view name, std::string_view of, std::string_view at,
                            std::string_view x1, std::string_view y1) {
    const std::string value = StrCat(of, "_", of), green_of = StrCat("g_", of);
    const std::string here = At(StrCat("g_", at), "x", "y");
    const std::string p0 = At(value, "x", "y"), p1 = At(value, x1, y1);
    const std::string n0 = At(value, "x", y1), n1 = At(value, x1, "y");
    text.Stage(name, "i16", half_extents, half,
               StrCat("select(", Difference(p0, p1), " < ", Difference(n0, n1), ", ",
                      Corrected(here, p0, p1, At(green_of, "x", "y"), At(green_of, x1, y1)), ", ",
                      Corrected(here, n0, n1, At(green_of, "x", y1), At(green_of, x1, "y")), ")"));
  };
  diagonal("r_b", "r", "b", "x + 1", "y - 1");
  diagonal("b_r", "b", "r", "x - 1", "y + 1");

  // Channels at all pixels, from their values in the blocks: first all columns, then all rows.
  const auto interleave = [&](std::string_view name, std::string_view gr, std::string_view r,
                              std::string_view b, std::string_view gb) {
    const auto columns = [&](std::string_view even, std::string_view odd, int row) {
      const std::string stage = StrCat(name, row);
      text.Stage(stage, "i16", {rows / 2, cols}, {half_x, y},
                 StrCat("select(y % 2 == 0, ", even, "[x, y / 2], ", odd, "[x, y / 2])"));
      return stage;
    };
    const std::string even = columns(gr, r, 0), odd = columns(b, gb, 1);
    text.Stage(name, "i16", extents, {x, y},
               StrCat("select(x % 2 == 0, ", even, "[x / 2, y], ", odd, "[x / 2, y])"));
  };
  interleave("red", "r_gr", "r_r", "r_b", "r_gb");
  interleave("green", "g_gr", "g_r", "g_b", "g_gb");
  interleave("blue", "b_gr", "b_r", "b_b", "b_gb");

  const Range c{"c", 0, 3};
  text.Stage("corrected", "i16", {3, rows, cols}, {c, x, y},
             "cast(i16, matrix[c, 3] + matrix[c, 0] * cast(i32, red[x, y]) + matrix[c, 1] * "
             "cast(i32, green[x, y]) + matrix[c, 2] * cast(i32, blue[x, y]) >> 8)");
  text.Nest({c, x, y}, "result[c, x - 12, y - 16]", "curve[cast(i32, corrected[c, x, y]) + 32768]");
  return text.Text();
}

}  // namespace polynao::kernels
