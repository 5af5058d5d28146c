// Charts of results.
#ifndef BENCHMARKS_BAR_CHART_H_
#define BENCHMARKS_BAR_CHART_H_

#include <optional>
#include <string>
#include <vector>

namespace polynao::benchmarks {

// Bars in groups: a group for each label, in it a bar for each series.
struct BarChart {
  struct Series {
    std::string name;
    std::string color;
    std::vector<std::optional<double>> values;  // by group; none draws nothing
    bool show_values = false;                   // as text above the bars
  };
  std::vector<std::string> groups;
  std::vector<Series> series;
  std::optional<double> line;  // a dashed line across, as of 1.0
  // A logarithmic axis, for positive values: bars begin at `line` and go up from there or down.
  bool is_logarithmic = false;
};

// The chart as an <svg> element. A group in which no series has a value reads "no value".
std::string BarChartSvg(const BarChart& chart);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_BAR_CHART_H_
