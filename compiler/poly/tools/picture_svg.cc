#include "compiler/poly/tools/picture_svg.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>

#include "absl/strings/str_split.h"
#include "base/text.h"
#include "pages/page.h"

namespace polynao::poly {
namespace {

constexpr double kTop = 76, kMargin = 44;

class Svg {
 public:
  // Draws a panel with its left side at `left`; returns its right side.
  double Draw(const Panel& panel, const std::vector<Arrow>& arrows, double left);
  // Draws the lines below the panels, broken at `width`.
  void Note(const std::string& line, double width);
  std::string Finish(double width, const std::string& title) const;

 private:
  template <typename... Args>
  void Add(const char* format, Args... args) {
    char text[512];
    std::snprintf(text, sizeof text, format, args...);
    body_ += text;
  }

  std::string body_;
  double height_ = 0;
};

// One axis of a panel: values, which are `step` apart, become columns 0, 1, 2, ...
class Scale {
 public:
  explicit Scale(const std::vector<int64_t>& values) {
    low_ = *std::min_element(values.begin(), values.end());
    high_ = *std::max_element(values.begin(), values.end());
    for (const int64_t value : values) step_ = std::gcd(step_, value - low_);
    step_ = std::max<int64_t>(step_, 1);
  }
  int64_t Column(int64_t value) const { return (value - low_) / step_; }
  int64_t Value(int64_t column) const { return low_ + column * step_; }
  int64_t columns() const { return Column(high_) + 1; }

 private:
  int64_t low_ = 0, high_ = 0, step_ = 0;
};

// The tiles of one level: outlines as the data of an SVG path, with a number in the middle of each.
struct Outlines {
  struct Tile {
    double x = 0, y = 0;  // sums over the cells
    int64_t cells = 0;
    int64_t left = INT64_MAX, right = INT64_MIN, top = INT64_MAX, bottom = INT64_MIN;
  };
  std::string path;
  std::map<int, Tile> tiles;
};

// A cell has a border where its neighbour is in another tile, or is no instance.
Outlines OutlinesOf(const std::vector<std::pair<int64_t, int64_t>>& cells,
                    const std::vector<int>& tiles, double left, double top, double cell) {
  std::map<std::pair<int64_t, int64_t>, int> tile_at;
  for (size_t i = 0; i < cells.size(); ++i) tile_at[cells[i]] = tiles[i];
  Outlines result;
  const auto line = [&](int64_t down, int64_t right, const char* to) {
    char text[64];
    std::snprintf(text, sizeof text, "M%.1f,%.1f%s%.1f", left + cell * right, top + cell * down, to,
                  cell);
    result.path += text;
  };
  for (const auto& [place, tile] : tile_at) {
    const auto [down, right] = place;
    const auto differs = [&, tile = tile](int64_t d, int64_t r) {
      const auto it = tile_at.find({d, r});
      return it == tile_at.end() || it->second != tile;
    };
    const auto is_empty = [&](int64_t d, int64_t r) { return !tile_at.contains({d, r}); };
    if (differs(down, right + 1)) line(down, right + 1, "v");
    if (differs(down + 1, right)) line(down + 1, right, "h");
    if (is_empty(down, right - 1)) line(down, right, "v");
    if (is_empty(down - 1, right)) line(down, right, "h");
    Outlines::Tile& t = result.tiles[tile];
    t.x += left + cell * (right + 0.5);
    t.y += top + cell * (down + 0.5);
    ++t.cells;
    t.left = std::min(t.left, right), t.right = std::max(t.right, right);
    t.top = std::min(t.top, down), t.bottom = std::max(t.bottom, down);
  }
  return result;
}

double Svg::Draw(const Panel& panel, const std::vector<Arrow>& arrows, double left) {
  std::vector<int64_t> downs, rights;
  for (const auto& [down, right] : panel.places) {
    downs.push_back(down);
    rights.push_back(right);
  }
  const Scale down_scale(downs), right_scale(rights);
  std::vector<std::pair<int64_t, int64_t>> cells;
  for (const auto& [down, right] : panel.places) {
    cells.emplace_back(down_scale.Column(down), right_scale.Column(right));
  }
  const double span = static_cast<double>(std::max(down_scale.columns(), right_scale.columns()));
  const double cell = std::clamp(420 / span, 2.0, 34.0), radius = std::max(0.8, cell * 0.16);
  const auto x = [&](int64_t right) { return left + kMargin + cell * (right + 0.5); };
  const auto y = [&](int64_t down) { return kTop + cell * (down + 0.5); };
  StrAppend(&body_, "<text class=\"title\" x=\"", left + kMargin, "\" y=\"40\">",
            pages::Escape(panel.title), "</text>\n");
  StrAppend(&body_, "<text x=\"", left + kMargin, "\" y=\"58\">", pages::Escape(panel.right),
            " to the right, ", pages::Escape(panel.down), " down</text>\n");
  // Numbers along the axes, as many as have room.
  const int64_t step = std::max<int64_t>(1, static_cast<int64_t>(24 / cell) + (cell < 24));
  for (int64_t column = 0; column < right_scale.columns(); column += step) {
    Add("<text class=\"axis\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%lld</text>\n",
        x(column), kTop - 3, static_cast<long long>(right_scale.Value(column)));
  }
  for (int64_t column = 0; column < down_scale.columns(); column += step) {
    Add("<text class=\"axis\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%lld</text>\n",
        left + kMargin - 4, y(column) + 4, static_cast<long long>(down_scale.Value(column)));
  }
  for (size_t level = 0; level < panel.tiles.size(); ++level) {
    const Outlines outlines = OutlinesOf(cells, panel.tiles[level], left + kMargin, kTop, cell);
    StrAppend(&body_, "<path class=\"tile", std::min<size_t>(level, 1), "\" d=\"", outlines.path,
              "\"/>\n");
    if (level > 0) continue;
    // Behind the points, as large as the tile allows.
    for (const auto& [number, tile] : outlines.tiles) {
      const auto side = std::min(tile.right - tile.left, tile.bottom - tile.top) + 1;
      const double size = std::min(cell * static_cast<double>(side) * 0.6, 40.0);
      if (size < 7) continue;
      const double cells_in = static_cast<double>(tile.cells);
      Add("<text class=\"number\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" "
          "style=\"font-size:%.1fpx\">%d</text>\n",
          tile.x / cells_in, tile.y / cells_in + size * 0.36, size, number);
    }
  }
  for (const Arrow& arrow : arrows) {
    const auto& [d0, r0] = cells[arrow.from];
    const auto& [d1, r1] = cells[arrow.to];
    const double dx = x(r1) - x(r0), dy = y(d1) - y(d0);
    const double length = std::sqrt(dx * dx + dy * dy);
    if (length == 0) continue;
    // From the rim of a point to the rim of the other.
    const double ux = dx / length * (radius + 1), uy = dy / length * (radius + 1);
    Add("<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
        "marker-end=\"url(#%s)\"/>\n",
        arrow.is_flow ? "flow" : "other", x(r0) + ux, y(d0) + uy, x(r1) - ux, y(d1) - uy,
        arrow.is_flow ? "flow" : "other");
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    const auto& [down, right] = cells[i];
    // From blue to orange.
    const double t = panel.order[i];
    Add("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"rgb(%d,%d,%d)\"/>\n", x(right), y(down),
        radius, static_cast<int>(47 + t * 185), static_cast<int>(109 + t * 40),
        static_cast<int>(179 - t * 141));
  }
  height_ = std::max(height_, y(down_scale.columns() - 1) + cell / 2 + 20);
  // Room for the lines above the panel.
  const double text =
      6.4 * static_cast<double>(
                std::max(panel.title.size() + 2, panel.right.size() + panel.down.size() + 20));
  return std::max(x(right_scale.columns() - 1) + cell / 2, left + kMargin + text) + 16;
}

void Svg::Note(const std::string& line, double width) {
  const auto most = static_cast<size_t>((width - kMargin) / 6.2);
  std::string rest;
  const auto flush = [&] {
    Add("<text x=\"%.0f\" y=\"%.1f\">", kMargin, height_ + 4);
    StrAppend(&body_, pages::Escape(rest), "</text>\n");
    height_ += 16;
    rest.clear();
  };
  for (absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    if (!rest.empty() && rest.size() + 1 + word.size() > most) flush();
    StrAppend(&rest, rest.empty() ? "" : " ", std::string(word));
  }
  if (!rest.empty()) flush();
}

std::string Svg::Finish(double width, const std::string& title) const {
  const auto marker = [](const char* name, const char* color) {
    return StrCat(
        "<marker id=\"", name,
        "\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" markerHeight=\"6\" "
        "orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\" fill=\"",
        color, "\"/></marker>");
  };
  return StrCat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", static_cast<int>(width), "\" height=\"",
      static_cast<int>(height_), "\" viewBox=\"0 0 ", static_cast<int>(width), " ",
      static_cast<int>(height_),
      "\">\n<style>text{font:12px sans-serif;fill:#333}"
      ".title{font-weight:bold}.axis{font-size:10px;fill:#777}.number{fill:#a5c1e4;font-weight:"
      "bold}"
      ".tile0{stroke:#2f6db3;stroke-width:1.6;fill:none;stroke-linecap:round}"
      ".tile1{stroke:#8fb0d6;stroke-width:0.8;fill:none;stroke-linecap:round}"
      ".flow{stroke:#555;stroke-width:1}.other{stroke:#b05050;stroke-width:1;stroke-dasharray:3 2}"
      "</style>\n<defs>",
      marker("flow", "#555"), marker("other", "#b05050"),
      "</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"44\" y=\"18\">",
      pages::Escape(title), "</text>\n", body_, "</svg>\n");
}

}  // namespace

std::string PanelsSvg(const std::vector<Panel>& panels, const std::vector<Arrow>& arrows,
                      const std::string& title, const std::vector<std::string>& notes) {
  Svg svg;
  double width = 0;
  for (const Panel& panel : panels) width = svg.Draw(panel, arrows, width);
  for (const std::string& note : notes) svg.Note(note, width);
  return svg.Finish(width, title);
}

}  // namespace polynao::poly
