// A suite's result as a page to look at.
#ifndef BENCHMARKS_PAGE_H_
#define BENCHMARKS_PAGE_H_

#include <optional>
#include <string>
#include <vector>

#include "benchmarks/result.h"

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
};

// The chart as an <svg> element. A group in which no series has a value reads "no value".
std::string BarChartSvg(const BarChart& chart);

// One self-contained HTML page: for each class the speed-up of every case over the library (the
// paper's Figures 5 to 7), the geometric means of the classes beside the paper's (Figure 8), the
// efficiencies of all implementations, the summary, all rows, the machine's parameters.
std::string PageHtml(const SuiteResult& result);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_PAGE_H_
