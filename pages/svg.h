// Drawings in SVG, and scales along their sides.
#ifndef PAGES_SVG_H_
#define PAGES_SVG_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace polynao::pages {

// Elements in the order in which they are drawn. Lengths are in pixels, x goes to the right and y down; `css` has
// classes of ChartStyle(), `look` attributes as they stand in the tag, and `title` is shown under the mouse.
class Svg {
 public:
  void Line(double x1, double y1, double x2, double y2, std::string_view css);
  void Text(double x, double y, std::string_view text, std::string_view css = "",
            std::string_view look = "");
  void Rect(double x, double y, double width, double height, std::string_view look,
            std::string_view title = "");
  void Circle(double x, double y, double radius, std::string_view look,
              std::string_view title = "");
  // Elements as they stand.
  void Add(std::string_view elements) { body_ += elements; }
  const std::string& body() const { return body_; }

  // Names with their colours, from (`left`, `top`) on, in as many lines as they need up to `right`. Returns the lower
  // side.
  double Legend(double left, double top, double right,
                const std::vector<std::pair<std::string, std::string>>& entries);

  // The <svg> element, for a page.
  std::string Element(double width, double height) const;

 private:
  std::string body_;
};

// A file of its own from an element: with the style that pages have, on white paper.
std::string SvgFile(std::string_view element);

// The color of a series by its number, the same in all charts.
std::string SeriesColor(size_t series);

// Values to places between `begin` and `end`, which may be the larger.
class Axis {
 public:
  // Places of `low` and `high` are the ends. A linear axis has about `most_ticks` ticks or fewer.
  Axis(double low, double high, bool is_logarithmic, double begin, double end, int most_ticks = 7);
  // With a margin around the values; logarithmic if the greatest is ten times the least or more.
  static Axis Around(const std::vector<double>& values, double begin, double end);

  double At(double value) const;
  // 1, 2 and 5 times powers of ten; on a logarithmic axis of many of them the powers alone, on one of less than three
  // steps as on a linear one.
  const std::vector<double>& ticks() const { return ticks_; }
  // A tick's number, with enough digits to tell it from the next: 1.0005 and 1.001.
  std::string Label(double tick) const;
  // Lines at the ticks from x = `left` to `right` with numbers on their left, and a title along them.
  void DrawLeft(Svg& svg, double left, double right, std::string_view title) const;

 private:
  double low_, high_, begin_, end_;
  bool is_logarithmic_;
  double step_ = 0;  // from tick to tick; 0: powers
  std::vector<double> ticks_;
};

}  // namespace polynao::pages

#endif  // PAGES_SVG_H_
