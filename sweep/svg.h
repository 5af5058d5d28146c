// Charts of a sweep's page: points with a front, and lines with a band.
#ifndef SWEEP_SVG_H_
#define SWEEP_SVG_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace polynao::sweep {

// `text` as it stands between tags and in attributes.
std::string Escape(std::string_view text);
// Three significant digits: "1.23e+07", "940", "0.05".
std::string ShortNumber(double value);

// A dot for each point, a line through those of the front. Axes are logarithmic where the greatest value is ten times
// the least or more. Hovering shows the label.
struct Scatter {
  struct Dot {
    double x = 0, y = 0;
    std::string label;
    bool is_front = false;  // fronts are drawn in the order of the dots
  };
  std::string x_title, y_title;
  std::vector<Dot> dots;
};
std::string ScatterSvg(const Scatter& scatter);

// Values over the places of an axis, at equal distances: lines by name, and a band from `low` to `high`. Each has a
// value, or none, for each place.
struct Curves {
  struct Line {
    std::string name;
    bool is_thick = false;
    std::vector<std::optional<double>> values;
  };
  std::string title;
  std::vector<std::string> places;
  std::vector<Line> lines;
  std::vector<std::optional<double>> low, high;
};
std::string CurvesSvg(const Curves& curves);

}  // namespace polynao::sweep

#endif  // SWEEP_SVG_H_
