// The local Laplacian filter: local contrast by Laplacian pyramids of the image remapped around several brightnesses.
#include <string_view>
#include <vector>

#include "base/text.h"
#include "kernels/pipelines/pipeline_text.h"
#include "kernels/pipelines/texts.h"

namespace polynao::kernels {
namespace {

using Range = PipelineText::Range;

constexpr int kLevels = 8;
constexpr int64_t kBrightnesses = 8;

// Stages of pyramids. Arrays of level l have size >> l rows and columns, and a border of two zeros; some have one such
// plane for each brightness k.
class Pyramids {
 public:
  Pyramids(int64_t rows, int64_t cols, PipelineText& text)
      : rows_(rows), cols_(cols), text_(text) {}

  // Stores `value`, border and all.
  void Stage(const std::string& name, bool has_k, int row_level, int col_level,
             const std::string& value) const {
    PipelineText::Extents extents = {(rows_ >> row_level) + 4, (cols_ >> col_level) + 4};
    std::vector<Range> ranges = {Range{"x", 0, extents[0]}, Range{"y", 0, extents[1]}};
    if (has_k) {
      extents.insert(extents.begin(), kBrightnesses);
      ranges.insert(ranges.begin(), Range{"k", 0, kBrightnesses});
    }
    text_.Stage(name, "f32", extents, ranges, value);
  }

  // NAMEn of `level` from the one below: taps 1 3 3 1 along rows into NAMEn_x, then along columns.
  void Down(const std::string& name, bool has_k, int level) const {
    const std::string from = StrCat(name, level - 1), to = StrCat(name, level);
    const std::string half = StrCat(to, "_x");
    const auto taps = [](const auto& tap) {
      return StrCat("(", tap(3), " + ", tap(2), " * 3.0 + ", tap(1), " * 3.0 + ", tap(0),
                    ") * 0.125");
    };
    const auto twice = [](std::string_view variable, int back) {
      return StrCat("2 * ", variable, back == 0 ? "" : StrCat(" - ", back));
    };
    Inside(half, has_k, level, level - 1,
           taps([&](int back) { return At(from, has_k, twice("x", back), "y"); }));
    Inside(to, has_k, level, level,
           taps([&](int back) { return At(half, has_k, "x", twice("y", back)); }));
  }

  // `from` of level + 1 at the size of `level`, in PREFIXn by way of PREFIXn_x. Returns that name.
  std::string Up(const std::string& prefix, const std::string& from, bool has_k, int level) const {
    const std::string to = StrCat(prefix, level), half = StrCat(to, "_x");
    Inside(half, has_k, level, level + 1,
           StrCat("0.25 * ", At(from, has_k, "x / 2 + x % 2 * 2", "y"), " + 0.75 * ",
                  At(from, has_k, "x / 2 + 1", "y")));
    Inside(to, has_k, level, level,
           StrCat("0.25 * ", At(half, has_k, "x", "y / 2 + y % 2 * 2"), " + 0.75 * ",
                  At(half, has_k, "x", "y / 2 + 1")));
    return to;
  }

 private:
  static std::string At(const std::string& name, bool has_k, const std::string& x,
                        const std::string& y) {
    return StrCat(name, "[", has_k ? "k, " : "", x, ", ", y, "]");
  }

  // Stores `value`, and the border's zeros.
  void Inside(const std::string& name, bool has_k, int row_level, int col_level,
              const std::string& value) const {
    Stage(name, has_k, row_level, col_level,
          StrCat("2 <= x && x <= ", (rows_ >> row_level) + 1,
                 " && 2 <= y && y <= ", (cols_ >> col_level) + 1, " ? ", value, " : 0.0"));
  }

  const int64_t rows_;
  const int64_t cols_;
  PipelineText& text_;
};

}  // namespace

std::string LocalLaplacianText(int64_t rows, int64_t cols) {
  PipelineText text("local_laplacian");
  const Pyramids pyramids(rows, cols, text);
  text.Input("image", "u16", {3, rows + 4, cols + 4});
  text.Input("remap", "f32", {2 * 256 * (kBrightnesses - 1)});
  text.Output("result", "u16", {3, rows, cols});
  // 1.5259022e-05 is 1 / 65535, and 0.14285715 is 1 / 7.
  pyramids.Stage("gray0", /*has_k=*/false, 0, 0,
                 "(0.299 * cast(f32, image[0, x, y]) + 0.587 * cast(f32, image[1, x, y]) + "
                 "0.114 * cast(f32, image[2, x, y])) * 1.5259022e-05");
  for (int l = 1; l < kLevels; ++l) pyramids.Down("gray", /*has_k=*/false, l);
  pyramids.Stage("gauss0", /*has_k=*/true, 0, 0,
                 "gray0[x, y] - cast(f32, k) * 0.14285715 + cast(f32, k) * 0.14285715 + "
                 "remap[min(max(cast(i32, gray0[x, y] * 1792.0), 0), 1791) - 256 * k + 1792]");
  for (int l = 1; l < kLevels; ++l) pyramids.Down("gauss", /*has_k=*/true, l);

  std::string coarser;  // the output's pyramid at level l + 1
  for (int l = kLevels - 1; l >= 0; --l) {
    std::string laplacian = StrCat("gauss", l);
    if (l < kLevels - 1) {
      const std::string up = pyramids.Up("up", StrCat("gauss", l + 1), /*has_k=*/true, l);
      laplacian = StrCat("laplace", l);
      pyramids.Stage(laplacian, /*has_k=*/true, l, l,
                     StrCat("gauss", l, "[k, x, y] - ", up, "[k, x, y]"));
    }
    // Between the two brightnesses around the pixel's own.
    const std::string scaled = StrCat("gray", l, "[x, y] * 7.0");
    const std::string at = StrCat("min(max(cast(i32, ", scaled, "), 0), 6)");
    const std::string weight = StrCat("(", scaled, " - cast(f32, ", at, "))");
    const std::string own = StrCat("out_laplace", l);
    pyramids.Stage(own, /*has_k=*/false, l, l,
                   StrCat(laplacian, "[", at, ", x, y] * (1.0 - ", weight, ") + ", laplacian, "[",
                          at, " + 1, x, y] * ", weight));
    if (l == kLevels - 1) {
      coarser = own;
      continue;
    }
    const std::string up = pyramids.Up("out_up", coarser, /*has_k=*/false, l);
    coarser = StrCat("out_gauss", l);
    pyramids.Stage(coarser, /*has_k=*/false, l, l, StrCat(up, "[x, y] + ", own, "[x, y]"));
  }
  text.Nest({Range{"c", 0, 3}, Range{"x", 0, rows}, Range{"y", 0, cols}}, "result[c, x, y]",
            StrCat("cast(u16, min(max(", coarser,
                   "[x + 2, y + 2] * (cast(f32, image[c, x + 2, y + 2]) * 1.5259022e-05 + 0.01) / "
                   "(gray0[x + 2, y + 2] + 0.01), 0.0), 1.0) * 65535.0)"));
  return text.Text();
}

}  // namespace polynao::kernels
