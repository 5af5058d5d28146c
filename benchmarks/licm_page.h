// The result of the suite licm511 as a page to look at.
#ifndef BENCHMARKS_LICM_PAGE_H_
#define BENCHMARKS_LICM_PAGE_H_

#include <string>

#include "benchmarks/licm_result.h"

namespace polynao::benchmarks {

// One self-contained HTML page: the speed-ups of all effective cases by operator (the paper's
// Figure 5), the operators' averages and their total times' speed-ups (Figure 6), integer operations
// and branches, the summary, all rows.
std::string PageHtml(const LicmResult& result);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_LICM_PAGE_H_
