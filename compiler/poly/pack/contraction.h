// Finds contractions among the statements of a static control part: sums of products over loops that carry nothing but
// the sum.
//
//   for (i) for (j) for (k)  C[i, j] = C[i, j] + A[i, k] * B[k, j]       a product: rows i, columns j, sums k
//   for (y) for (x) for (o) for (r) for (s) for (c)                      a convolution: rows y, x; columns o;
//     Y[y, x, o] = Y[y, x, o] + X[y + r, x + s, c] * F[o, r, s, c]         sums r, s, c
//   for (h) for (i) for (j) for (k)  S[h, i, j] = ..  Q[h, i, k] * K[h, j, k]       the same with a batch h
//   for (y) for (x) for (c) for (r) for (s)                              depthwise: lane by lane along c, rows x
//     Y[y, x, c] = Y[y, x, c] + X[y + r, x + s, c] * F[c, r, s]
//     Y[y, x, c] = max(Y[y, x, c], X[2 * y + r, 2 * x + s, c])           pooling: the same without a column operand
#ifndef COMPILER_POLY_PACK_CONTRACTION_H_
#define COMPILER_POLY_PACK_CONTRACTION_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// element = element + row_operand * column_operand, or a difference, or with an fma; lane by lane also with windows
// of the row operand alone, and as the larger or smaller one of the two. Loops are places among the statement's
// iterators, in the order of the program; each loop has the same range in all iterations of the others.
struct Contraction {
  const Statement* statement = nullptr;
  std::vector<size_t> batch = {};  // select the element and both operands
  std::vector<size_t> rows =
      {};  // select the element and the row operand; none: a product of one row
  std::vector<size_t> columns =
      {};  // select the element and the column operand; the last one walks along a row of memory
  std::vector<size_t> sums = {};  // select operands only
  // The last loop of columns selects both operands, and walks along memory with the row operand, too: vectors are
  // multiplied element by element. The batch then selects the row operand alone.
  bool is_lanewise = false;
  // Parts of the statement's value. Without a product there is no column operand.
  ir::Expr element = {}, row_operand = {}, column_operand = {};
  // The statement that stores what all sums begin with, if it has nothing else to do: it becomes a part of the
  // contraction. Null: they begin with what the elements hold.
  const Statement* initial = nullptr;
  // The statement that alone reads the sums: it becomes a part of the contraction, and the elements need not be stored.
  const Statement* final = nullptr;
};

// `statement` as a contraction. Nothing if it is none; if its loops are no box; or if no loop along a row of the
// element's memory selects an operand. Throws isl::exception.
std::optional<Contraction> FindContraction(const Scop& scop, const Statement& statement);

// Returns true if `initial` stores each element that the contraction updates, once, to a value that nothing in the part
// stores: such a value may as well be computed where the sum begins. The caller makes sure that nothing needs the
// elements in between.
bool CanBegin(const Scop& scop, const Statement& initial, const Contraction& contraction);

// Returns true if `last` reads each element that the contraction updates, once and where no other element is, and if
// nothing else in or behind the part needs these elements, so that a sum may go into the instance of `last` at once.
// The caller makes sure that nothing has to run in between.
bool CanEnd(const Scop& scop, const Statement& last, const Contraction& contraction);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_PACK_CONTRACTION_H_
