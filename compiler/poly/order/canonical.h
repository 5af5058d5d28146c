// One form of a schedule tree, whatever the version of isl that made it.
#ifndef COMPILER_POLY_ORDER_CANONICAL_H_
#define COMPILER_POLY_ORDER_CANONICAL_H_

#include "compiler/poly/isl/isl_tools.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// `schedule`, which isl has computed, with parts of sequences and sets in an order of our own. isl leaves parts that do
// not wait for each other in the order in which it happens to visit them, and may put some into a set of their own;
// other steps look at neighbours in a sequence, so these choices would show in the code.
//
//   sequence [ set [ S1, S0 ], S3, S2 ]     ->     sequence [ S0, S1, S2, S3 ]     if nothing waits for a later one
//
// A sequence takes in the parts of sequences and sets among its parts. Of the parts that may come next, the one with
// the first statement of the program does.
isl::schedule Canonical(const Scop& scop, const Dependences& dependences,
                        const isl::schedule& schedule);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ORDER_CANONICAL_H_
