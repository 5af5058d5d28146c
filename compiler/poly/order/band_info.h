// Finds what a loop of a schedule tree carries: whether its iterations are independent, and how it
// walks through memory.
#ifndef COMPILER_POLY_ORDER_BAND_INFO_H_
#define COMPILER_POLY_ORDER_BAND_INFO_H_

#include <optional>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// The instances that reach a node of a schedule tree, and the loops around it.
struct Place {
  isl::union_set domain;           // { S0[i, j] }
  isl::multi_union_pw_aff prefix;  // { S0[i, j] -> [t0, t1] }: the loops around
  bool has_prefix = false;         // there is one
};

Place PlaceOf(const isl::schedule_node& node);
// The place inside of a loop with this member.
Place Inside(const Place& place, const isl::union_pw_aff& member);

// Pairs of instances that are in the same iteration of all loops around `place`.
isl::union_map Active(const isl::union_map& pairs, const Place& place);

// Buffers that each iteration of a loop needs a copy of, so that the iterations are independent (none is
// common). Nothing if they are not independent.
std::optional<std::vector<ir::Buffer>> CopiesForParallel(const Dependences& dependences,
                                                         const Place& place,
                                                         const isl::union_pw_aff& member);

// How far the element of an access moves from one iteration of the loop to the next.
enum class Stride { kNone, kOne, kMinusOne, kOther };
Stride StrideOf(const Statement& statement, const Access& access, const Place& place,
                const isl::multi_union_pw_aff& band, int member);

// The cost of running a loop over `member` innermost, in memory accesses of one element: an access of
// stride one shares its vector load with its neighbours.
double InnermostCost(const Scop& scop, const Place& place, const isl::multi_union_pw_aff& band,
                     int member);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ORDER_BAND_INFO_H_
