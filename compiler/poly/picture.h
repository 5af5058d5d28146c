// Static control parts to look at: a statement's instances with their dependences as a picture, and
// the schedule tree as a page. Each before and after a new schedule.
#ifndef COMPILER_POLY_PICTURE_H_
#define COMPILER_POLY_PICTURE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao::poly {

struct PictureOptions {
  // A value for each parameter of the part.
  std::map<std::string, int64_t> arguments;
  std::string statement;                    // "S1"; empty: the first with two loops
  std::pair<int, int> dimensions = {0, 1};  // the loops, by depth: down and to the right
  // The new order: none, original, min, smart, or max (schedule.h) ...
  std::string strategy = "smart";
  // ... or, if not empty, this one, "{ S0[i, j] -> [i + j, j] }" (ParseSchedule).
  std::string schedule = {};
};

// An SVG of two panels. On the left, a point for each instance of the statement, by two of its loops;
// the other loops stand at their first values. On the right, the same instances by two members of the
// new schedule. The colour goes with the order of execution; solid arrows are flow dependences, dashed
// ones anti and output. Errors: a parameter without value or an argument that is no parameter, no
// such statement or loop, no instance, more than 2000 instances, a schedule that isl does not read or
// that is illegal (with an instance of a violated dependence).
absl::StatusOr<std::string> InstancesSvg(const ir::Function& function,
                                         const PictureOptions& options);

// A self-contained HTML page with the schedule trees of all parts, before and after. Of `options`,
// only strategy and schedule count.
absl::StatusOr<std::string> TreesHtml(const ir::Function& function,
                                      const PictureOptions& options = {});

}  // namespace polynao::poly

#endif  // COMPILER_POLY_PICTURE_H_
