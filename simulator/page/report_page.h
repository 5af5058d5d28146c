// The page that shows a run.
#ifndef SIMULATOR_PAGE_REPORT_PAGE_H_
#define SIMULATOR_PAGE_REPORT_PAGE_H_

#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace polynao::simulator {

// One HTML page that needs no other file and no network. `data` is what `--json` prints, of runs with a profile; it
// stands in the page as <script type="application/json" id="data">, and the page's own script draws everything from it:
// summary, roofline, what each core's cycles went into, channels and banks over time, tables of ports, cores and banks.
// `timelines` (TimelineSvg) are of the run, or of each object of data["functions"].
//
// The script ends with document.documentElement.dataset.ready = "1"; dataset.errors has what went wrong, one error a
// line, and is not there if nothing did. Elements with data-path ("counters/cycles") show the number of the data at
// that place.
std::string ReportPage(std::string_view title, const nlohmann::ordered_json& data,
                       const std::vector<std::string>& timelines);

}  // namespace polynao::simulator

#endif  // SIMULATOR_PAGE_REPORT_PAGE_H_
