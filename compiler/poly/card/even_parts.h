// Transpositions of odd sizes in parts, of which one is large and has a size that cores share evenly.
#ifndef COMPILER_POLY_CARD_EVEN_PARTS_H_
#define COMPILER_POLY_CARD_EVEN_PARTS_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"

namespace polynao::poly {

// The parts of a stage that turns rows into columns, Y[c, h] = X[h, c], cut along both of these axes behind the last
// multiple of `unit`; none if it is no such stage, or if there is nothing to cut. The instruction that transposes takes
// boxes of one size, and of 5003 columns no two cores would have such: all of them are copied element by element then.
//
//   Y[c, h] = X[h, c]   c < 64, h < 5003   -->   h < 4992   and   Y[c, h + 4992] = X[h + 4992, c]   h < 11
std::vector<NestStage> EvenParts(ir::Context& c, const NestStage& stage, int64_t unit);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_EVEN_PARTS_H_
