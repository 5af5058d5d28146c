// A suite's result as a page to look at.
#ifndef BENCHMARKS_PAGE_H_
#define BENCHMARKS_PAGE_H_

#include <string>

#include "benchmarks/result.h"

namespace polynao::benchmarks {

// One self-contained HTML page: for each class the speed-up of every case over the library (the
// paper's Figures 5 to 7), the geometric means of the classes beside the paper's (Figure 8), the
// efficiencies of all implementations, the summary, all rows, the machine's parameters.
std::string PageHtml(const SuiteResult& result);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_PAGE_H_
