// Stores under conditions on data as stores of selected values.
#ifndef COMPILER_POLY_CARD_SELECT_STORES_H_
#define COMPILER_POLY_CARD_SELECT_STORES_H_

#include "compiler/ir/ir.h"

namespace polynao::poly {

// `s` without conditions that load something, where each branch is stores; conditions on loops alone stay. An update
// takes in an element that changes nothing.
//
//   if (X[i] > 0.0) { s[0] = s[0] + X[i] }           -->   s[0] = s[0] + select(X[i] > 0.0, X[i], 0.0)
//   if (X[i] > 0.0) { Y[i] = a } else { Y[i] = b }   -->   Y[i] = select(X[i] > 0.0, a, b)
//   if (X[i] > 0.0) { Y[i] = a }                     -->   Y[i] = select(X[i] > 0.0, a, Y[i])
ir::Stmt WithSelectedStores(ir::Stmt s);

// The number that an operation of a reduction leaves all others alone with: 0, or the end of the type's range.
ir::Expr NeutralOf(ir::ExprKind operation, ir::Type type, ir::Context& c);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_SELECT_STORES_H_
