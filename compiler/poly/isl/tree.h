// Small questions about nodes of schedule trees.
#ifndef COMPILER_POLY_ISL_TREE_H_
#define COMPILER_POLY_ISL_TREE_H_

#include <cstdint>

#include "compiler/poly/isl/isl_tools.h"

namespace polynao::poly {

bool IsBand(const isl::schedule_node& node);
bool HasBandBelow(const isl::schedule_node& node);

// How many schedule dimensions are around the node.
int DepthOf(const isl::schedule_node& node);

// { S[i] -> [f(i)] }
isl::multi_union_pw_aff ToMulti(const isl::union_pw_aff& f);

// { S[i] -> [floor(f(i) / size)] }
isl::union_pw_aff TileOf(const isl::union_pw_aff& f, int64_t size);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ISL_TREE_H_
