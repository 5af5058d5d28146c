// Charts as <svg> elements, for pages and for SvgFile.
#ifndef PAGES_CHARTS_H_
#define PAGES_CHARTS_H_

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace polynao::pages {

// Bars in groups: a group for each label, in it a bar for each series.
struct BarChart {
  struct Series {
    std::string name;
    std::vector<std::optional<double>> values = {};  // by group; none draws nothing
    bool show_values = false;                        // as text above the bars
    std::string color = "";                          // "": SeriesColor
  };
  std::vector<std::string> groups = {};
  std::vector<Series> series = {};
  // Dots by group, side by side, in place of series.
  std::vector<std::vector<double>> dots = {};
  std::optional<double> line = {};  // across, as of 1.0
  // A logarithmic axis, for positive values: bars begin at `line` and go up from there or down.
  bool is_logarithmic = false;
  // Lines this far above and below `line` show what counts as unchanged; else `line` is dashed.
  double band = 0;
  // What is larger is drawn at the upper edge, with its number.
  double largest = std::numeric_limits<double>::infinity();
};

// A group in which no series has a value reads "no value".
std::string BarChartSvg(const BarChart& chart);

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

// Values over places at equal distances: a line for each series, and a band from `low` to `high`. Each has a value, or
// none, for each place.
struct LineChart {
  struct Series {
    std::string name;
    std::vector<std::optional<double>> values = {};
    bool is_thick = false;
  };
  std::string x_title, y_title;
  std::vector<std::string> places = {};
  std::vector<Series> series = {};
  std::string band = "";  // the name of the band; "": there is none
  std::vector<std::optional<double>> low = {}, high = {};
  std::vector<double> reach = {};  // what the axis shows, too
};
std::string LineChartSvg(const LineChart& chart);

}  // namespace polynao::pages

#endif  // PAGES_CHARTS_H_
