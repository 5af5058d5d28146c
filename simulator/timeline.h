// A picture of a run.
#ifndef SIMULATOR_TIMELINE_H_
#define SIMULATOR_TIMELINE_H_

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "simulator/report.h"

namespace polynao::simulator {

struct TimelineOptions {
  // The cycles to show; the default is all that were traced.
  int64_t begin = 0;
  int64_t end = std::numeric_limits<int64_t>::max();
  int width = 1280;  // pixels
};

// A run with a trace (TraceOptions) as an <svg> element for pages: a row for each unit of each core that did something,
// slices coloured by what the unit did, a curve of GMEM bytes per cycle against the peak, an axis in cycles, a legend,
// and beside each row the share of time in which it was busy. Slices narrower than a pixel are drawn together, paler
// the less they fill it. Hovering shows the instruction.
std::string TimelineSvg(const RunResult& result, const TimelineOptions& options = {});

// The same as a file: a page with the run's counters below if its name ends with ".html", else a picture in SVG.
std::string TimelineFile(const RunResult& result, std::string_view path);

}  // namespace polynao::simulator

#endif  // SIMULATOR_TIMELINE_H_
