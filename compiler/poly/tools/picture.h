// Static control parts to look at: a statement's instances with their dependences as a picture, and
// the schedule tree as a page. Each before and after a new schedule.
#ifndef COMPILER_POLY_TOOLS_PICTURE_H_
#define COMPILER_POLY_TOOLS_PICTURE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/poly.h"

namespace polynao::poly {

struct PictureOptions {
  // A value for each parameter of the part.
  std::map<std::string, int64_t> arguments;
  std::string statement;                    // "S1"; empty: the first with two loops
  std::pair<int, int> dimensions = {0, 1};  // the loops, by depth: down and to the right
  ScheduleOptions order = {.strategy = "smart", .tile = {}};  // the new one
};

// An SVG of two panels. On the left, a point for each instance of the statement, by two of its loops; the other loops
// stand at their first values. On the right, the same instances by the two innermost dimensions of the new schedule
// that tell them apart. The colour goes with the order of execution; solid arrows are flow dependences, dashed ones
// anti and output. In both panels, lines are the borders of the new order's tiles, numbered as they run on one thread;
// tiles inside of tiles, as those for registers, have thinner ones. Below stands what the schedule did. Errors: a
// parameter without value or an argument that is no parameter, no such statement or loop, no instance, more than 2000
// instances, what Schedule refuses, a part that it leaves as it is.
absl::StatusOr<std::string> InstancesSvg(const ir::Function& function,
                                         const PictureOptions& options);

// A self-contained HTML page with the schedule trees of all parts, before and after; of fused stages one tree for each
// group, with the extensions that add to a tile what it needs of other stages. Errors: as above.
absl::StatusOr<std::string> TreesHtml(const ir::Function& function,
                                      const ScheduleOptions& options = {.strategy = "smart",
                                                                        .tile = {}});

}  // namespace polynao::poly

#endif  // COMPILER_POLY_TOOLS_PICTURE_H_
