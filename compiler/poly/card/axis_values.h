// Values that depend on the place of an element alone, as tensors.
#ifndef COMPILER_POLY_CARD_AXIS_VALUES_H_
#define COMPILER_POLY_CARD_AXIS_VALUES_H_

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// What stages compute of one loop's variable becomes a stage for all its values, which are few: the scalar units store
// them, and instructions read them as a row. Indices, and conditions on loops alone, stay.
//
//   Y[i] = min(Y[i], select(X[i, j] == M[i], j, n))   -->   j.values[k] = k
//                                                            Y[i] = min(Y[i], select(X[i, j] == M[i], j.values[j], n))
void TakeAxisValuesOut(ir::Context& c, NestStages& stages);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_AXIS_VALUES_H_
