// The result of the suite licm511 as a page to look at.
#ifndef BENCHMARKS_LICM_PAGE_H_
#define BENCHMARKS_LICM_PAGE_H_

#include <string>
#include <vector>

#include "benchmarks/licm_result.h"

namespace polynao::benchmarks {

// Speed-ups in columns, around the line at 1: a dot for each value of a column, or a bar from the
// line to each value. Dashed lines show the band that counts as unchanged. A value above `largest` is
// drawn at the upper edge, with its number.
struct SpeedupChart {
  struct Column {
    std::string name;
    std::vector<double> values;
  };
  std::vector<Column> columns;
  // Names for the first, second, .. value of each column, each with a color of its own.
  std::vector<std::string> series = {};
  bool bars = false;
  double largest = 3;
};

// The chart as an <svg> element.
std::string SpeedupSvg(const SpeedupChart& chart);

// One self-contained HTML page: the speed-ups of all effective cases by operator (the paper's
// Figure 5), the operators' averages and their total times' speed-ups (Figure 6), integer operations
// and branches, the summary, all rows.
std::string PageHtml(const LicmResult& result);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_LICM_PAGE_H_
