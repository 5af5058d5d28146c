// Nests that share their outermost loop.
//
//   for (i, 0, n) { a[i] = f(x[i]) }             for (i, 0, n) {
//   for (i, 0, n) { y[i] = a[i] * x[i] }   -->     a[i] = f(x[i])
//                                                  y[i] = a[i] * x[i]     finds both in the cache
//                                                }
//
// The nests need not have the same bounds, or carry the same dependences, and statements may be opaque: all that counts
// is that no dependence goes from a later iteration of the first nest to an earlier one of the second. So fusion works
// without tiles, as Zhao and Di (MICRO 2020) do it for equake.
#ifndef COMPILER_POLY_ARRANGE_JOIN_H_
#define COMPILER_POLY_ARRANGE_JOIN_H_

#include <string_view>

#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// Of a report.
inline constexpr std::string_view kJoinLine = "nests share their outermost loop";

// `schedule`, which is legal, with one loop around nests, the outermost ones, that may share it. From the last nest to
// the first: one that is in no group begins one, and takes in the nests before that use an array of the group, as long
// as they may share its loop and no other nest must run between. `joined` counts the nests in groups of two and more;
// if it is 0, the schedule is the same. Throws isl::exception.
isl::schedule JoinNests(const Scop& scop, const Dependences& dependences,
                        const isl::schedule& schedule, int* joined);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ARRANGE_JOIN_H_
