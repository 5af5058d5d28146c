// Stages in other forms, which tensor expressions can say and the card's instructions compute.
#ifndef COMPILER_POLY_CARD_STAGE_FORMS_H_
#define COMPILER_POLY_CARD_STAGE_FORMS_H_

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// A tensor that several stages store as a whole becomes one for each: then what lies between them may stay on chip. Not
// where iterations that are alike store it, nor a parameter whose first elements are read.
//
//   S = sum of X   S = S * 0.1   Y = X - S   -->   S.0 = sum of X   S = S.0 * 0.1   Y = X - S
void NameVersions(ir::Context& c, NestStages& stages);

// Tensors without their dimensions of one element: instructions have no use for them (a batch of one, one sum of each
// iteration). Parameters get another shape.
//
//   Y[0, y, x] = X[0, y, x]   -->   Y'[y, x] = X'[y, x]
void DropUnits(ir::Context& c, NestStages& stages);

// Locals of which one stage stores a part have that part alone: tiles may load more than they need, but nothing that is
// not stored.
void ShrinkLocals(ir::Context& c, NestStages& stages);

// Axes of which a stage's expressions use quotients and remainders, made two: y = 3 * q + a - before. So indices become
// sums of axes again. The stage stores another shape of its target where that holds the same elements, else another
// buffer, which readers of a local read in its place, and from which a stage copies to other targets.
//
//   T[x] = select((x + 1) % 3 == 0 && 1 <= x, A[(x + 1) / 3], 0)      x in [0, 7)
//     -->  T.split[q, a] = select(a < 1 && 1 <= q && q < 3, A[q], 0)  q, a in [0, 3); T[x] is T.split[x + 1]
void SplitAxes(ir::Context& c, NestStages& stages);

// A stage with margins, select(inside, e, number), as a stage of the inner elements alone, for a tensor of their own,
// and one that copies them. Of a condition that leaves no box, j <= i, all elements are computed, if they exist.
//
//   T[x] = select(1 <= x && x < 9, A[x - 1] + A[x], 0)   -->   T.inside[x] = A[x] + A[x + 1]   x in [0, 8)
//                                                              T[x] = select(1 <= x && x < 9, T.inside[x - 1], 0)
void TakeMarginsOff(ir::Context& c, NestStages& stages);

// A stage that computes one or the other expression by a condition on one axis becomes a stage for each run of places.
//
//   T[e, i] = select(e == 0, A[i] + B[i], A[i])   e in [0, 9)   -->   T[0, i] = A[i] + B[i]   T[e, i] = A[i]  e in [1, 9)
void UnrollPlaces(ir::Context& c, NestStages& stages);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_STAGE_FORMS_H_
