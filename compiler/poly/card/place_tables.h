// Places and weights that a stage computes of one axis each, as resizing an image does.
#ifndef COMPILER_POLY_CARD_PLACE_TABLES_H_
#define COMPILER_POLY_CARD_PLACE_TABLES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// An index of one axis is a table of integers: the interpreter evaluates it for each place, and so floats are rounded.
// A quotient that has the same values takes its place; the scalar unit computes it for each row that is copied. What
// is computed in floats of one axis is a table of its own, which a stage stores first.
//
//   Y[y, c] = X[i32(floor(f32(y) * 0.64)), c] * (f32(y) * 0.5)      y in [0, 50)
//     -->  Y.table[y] = f32(y) * 0.5     Y[y, c] = X[y * 16 / 25, c] * Y.table[y]
//
// Then an expression that depends on an axis by such an index alone becomes a stage over the rows that are read: each
// row is computed once, and what the stage itself computes are rows of one buffer.
//
//   Y[y, x] = (X[y / 2, x] + X[y / 2, x + 1]) * W[y]   -->   Y.rows[i, x] = X[i, x] + X[i, x + 1]
//                                                            Y[y, x] = Y.rows[y / 2, x] * W[y]
void TabulatePlaces(const ir::Function& function, NestStages& stages);

// (factor * i + shift) / divisor, rounded down.
struct Quotient {
  int64_t factor, shift, divisor;
  int64_t At(int64_t i) const { return ir::FloorDiv(factor * i + shift, divisor); }
};
// A quotient that is table[i] for each i. None: there is none of a small divisor.
std::optional<Quotient> QuotientOf(const std::vector<int64_t>& table);
// At which ends of a table a number that repeats may be any.
struct Ends {
  bool first = false, last = false;
};
// The shift of a quotient that is table[i] for each i, but for those ends.
std::optional<int64_t> ShiftOf(const std::vector<int64_t>& table, int64_t factor, int64_t divisor,
                               const Ends& ends);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_PLACE_TABLES_H_
