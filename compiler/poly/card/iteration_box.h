// The iterations of a statement as a box of its loops, and the condition that picks them out of it.
#ifndef COMPILER_POLY_CARD_ITERATION_BOX_H_
#define COMPILER_POLY_CARD_ITERATION_BOX_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/arith/linear_form.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// Of a loop: values from `min` on, `extent` of them.
struct Bound {
  int64_t min, extent;
};

struct IterationBox {
  std::vector<Bound> bounds;  // of the statement's iterators
  // Holds for the iterations there are, over the iterators; empty if that are all of the box.
  ir::Expr condition = {};
};

// The smallest box around the iterations of a statement.
//
//   for (y, 0, 9) { for (i, 0, 3) { if (y + i - 1 >= 0) { S } } }   -->   [0, 9) x [0, 3), 1 <= y + i
//
// If that is not all of the box, a larger one is taken where `larger` is not empty: for each iterator what it is to
// reach.
//
// Errors: bounds that are no numbers, iterations that no conjunction of inequalities picks. Throws isl::exception.
absl::StatusOr<IterationBox> IterationsOf(const Statement& s, ir::Context& c,
                                          const std::vector<Bound>& larger = {});

// 0 <= form, a number being alone on its side if all coefficients have one sign: 1 <= y + i of y + i - 1.
ir::Expr IsNotNegative(const arith::LinearForm& form, ir::Type type, ir::Context& c);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_ITERATION_BOX_H_
