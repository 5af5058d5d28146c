// Expressions in the form that the meanings of lane instructions have.
#ifndef COMPILER_TE_CARD_LANE_FORM_H_
#define COMPILER_TE_CARD_LANE_FORM_H_

#include "compiler/ir/ir.h"

namespace polynao::te {

// `e` with its outermost operation in the form of the table's meanings: constants on the right side, a condition as a
// number that is 0 or not. Its operands stay as they are.
//
//   select(a < b && c, x, y)   -->   select(select(a < b, 1, 0) * c' != 0, x, y)
ir::Expr LaneForm(ir::Expr e);

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_LANE_FORM_H_
