// The page of a sweep.
#ifndef SWEEP_PAGE_H_
#define SWEEP_PAGE_H_

#include <string>

#include "sweep/table.h"

namespace polynao::sweep {

// One HTML page that needs nothing else: what was swept, the best points, sensitivities, Pareto fronts of cycles,
// energy and area (the last two if the table has them), a curve for each axis, why points are infeasible. All of the
// table stands in it as JSON too, in <script type="application/json" id="data">. `table` must have all its rows.
std::string SweepPage(const Table& table);

}  // namespace polynao::sweep

#endif  // SWEEP_PAGE_H_
