// Scalars of their own for loop iterations, so that statements between their definition and their use can go into
// different loops.
#ifndef COMPILER_POLY_MODEL_EXPAND_H_
#define COMPILER_POLY_MODEL_EXPAND_H_

#include "compiler/ir/ir.h"

namespace polynao::poly {

//   allocate w: f64[]                              for (i, 0, n) {
//   for (i, 0, n) {                                  allocate w: f64[max(m, 0)]
//     for (j, 0, m) {                                for (j, 0, m) {
//       w[] = 0.0                           -->        w[j] = 0.0
//       for (k, 0, l) { w[] = w[] + A[i, k] }          for (k, 0, l) { w[j] = w[j] + A[i, k] }
//       C[i, j] = w[]                                  C[i, j] = w[j]
//     }                                              }
//   }                                              }
//
// An allocated scalar that is stored before it is read wherever control comes from outside gets the smallest scope that
// holds its uses; and where that is the body of a loop with a loop inside that uses it, it becomes an element of an
// array over the outer of these loops ("scalar expansion"). Returns whether anything changed.
bool ExpandScalars(ir::Function& function);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_MODEL_EXPAND_H_
