// Stages that store only some elements of a box: those of a triangle or a band, a diagonal.
#ifndef COMPILER_POLY_CARD_PART_STORES_H_
#define COMPILER_POLY_CARD_PART_STORES_H_

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// Makes stages with conditions stages of whole boxes. All elements of the box are computed, which exist, and a mask
// picks what is stored; the others are stored as they were. Sums are stages of their own, so that the tensor unit
// computes them.
//
//   C[i, j] = C[i, j] * 2.0 + sum of e, where j <= i
//     -->   C.all[i, j] = sum of e      C.ones[i, j] = 1.0      C.mask[i, j] = select(j <= i, C.ones[i, j], 0.0)
//           C.kept[i, j] = C[i, j]
//           C[i, j] = select(C.mask[i, j] != 0.0, C.kept[i, j] * 2.0 + C.all[i, j], C.kept[i, j])
//
// Where the next stage that touches the target stores the same elements again, it computes both.
void StoreParts(ir::Context& c, NestStages& stages);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_PART_STORES_H_
