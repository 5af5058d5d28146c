// Expressions in the forms that the meanings of lane instructions have.
#ifndef COMPILER_TE_CARD_LANE_FORM_H_
#define COMPILER_TE_CARD_LANE_FORM_H_

#include "compiler/ir/ir.h"

namespace polynao::te {

// `e` with its outermost operation in the form of the table's meanings: constants on the right side, a condition as a
// number that is 0 or not. Its operands stay as they are.
//
//   select(a < b && c, x, y)   -->   select(select(a < b, 1, 0) * c' != 0, x, y)
ir::Expr LaneForm(ir::Expr e);

// An integer operation by a number, which a table may lack, in operations of i32 and f32: quotients and remainders,
// shifts, the lowest bits. Equal for all values, since q misses by less than f32 holds exactly. Empty for all else.
//
//   v / 10   -->   q + i32(floor(f32(v - q * 10) / 10.0)), q being i32(f32(v) * 0.1)
ir::Expr IntegerForm(ir::Expr e);

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_LANE_FORM_H_
