// An order in which each statement of a nest runs as a whole, and reads that may come from a copy to allow one.
#ifndef COMPILER_POLY_CARD_STATEMENT_ORDER_H_
#define COMPILER_POLY_CARD_STATEMENT_ORDER_H_

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// Numbers of statements: those of the text where that is possible. Errors: some need each other, or an iteration of one
// needs what another iteration of it stores. Throws isl::exception.
absl::StatusOr<std::vector<size_t>> OrderOfStatements(const Scop& scop,
                                                      const Dependences& dependences);

// What `scop` reads of its buffers before anything is stored there, but for what a statement updates, read from copies
// that were made in front of it: then later iterations may store there first. Returns each buffer with its copy; none
// if there is nothing of the kind. Throws isl::exception.
//
//   B[i] = B[i] + B[i + 1]   -->   B[i] = B[i] + B.old[i + 1]
std::vector<std::pair<ir::Buffer, ir::Buffer>> ReadOldValues(Scop& scop, ir::Context& c);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_STATEMENT_ORDER_H_
