// A comparison as a page to look at.
#ifndef BENCHMARKS_COMPARISON_PAGE_H_
#define BENCHMARKS_COMPARISON_PAGE_H_

#include <string>

#include "benchmarks/comparison.h"

namespace polynao::benchmarks {

// One self-contained HTML page: the implementations with their geometric means, or why they are missing; for each
// baseline a chart with a bar for the speed-up of each kernel by each of them, on a logarithmic axis; what failed; all
// times; what this compiler did to each kernel.
std::string PageHtml(const Comparison& result);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_COMPARISON_PAGE_H_
