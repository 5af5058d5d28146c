// Orders for the instances of a static control part.
#ifndef COMPILER_POLY_ORDER_SCHEDULE_H_
#define COMPILER_POLY_ORDER_SCHEDULE_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/scop.h"
#include "compiler/poly/order/strategies.h"

namespace polynao::poly {

// A legal schedule tree of `scop`. Members of a permutable band may be swapped and tiled; coincident
// ones carry no dependence but those of private buffers. With `outer_coincidence` each band begins with a
// coincident member where that is possible: a time loop alone around the loops over space, not all skewed in one
// band. A search may take a tenth of the operations that the part has; if it ends without an order, the order is the
// original one, and `is_original`, where given, is set. Throws isl::exception.
isl::schedule ComputeSchedule(const Scop& scop, const Dependences& dependences, Strategy strategy,
                              bool outer_coincidence = false, bool* is_original = nullptr);

// A schedule as text: a map in the calculator's notation (calculator.h), which is isl's and that of texts on the
// subject,
//
//   { S0[i, j] -> [0, i, j]; S1[i] -> [1, i, 0] }      [S1(i, j) → (i, j)]      [{ (i) -> (i/32) }, { (i) -> (i) }]
//
// or a tree ("domain: ... child: ..."), as isl and `nao poly --show=tree` print it. The statements of a map are named
// as the part's, or S1, S2, .. for S0, S1, .., or not at all where there is one; i/32 rounds down. An error, with the
// place in a map ("schedule:1:9: expected .."), for text that is not read, statements that are left out or do not
// exist, and for an order that is illegal, with an instance of a violated dependence. Marks and options of bands do not
// count: the order is all that is taken.
absl::StatusOr<isl::schedule> ParseSchedule(const Scop& scop, const Dependences& dependences,
                                            const std::string& text);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ORDER_SCHEDULE_H_
