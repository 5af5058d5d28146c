// Small questions about nodes of schedule trees.
#ifndef COMPILER_POLY_TREE_H_
#define COMPILER_POLY_TREE_H_

#include "compiler/poly/isl_tools.h"

namespace polynao::poly {

bool IsBand(const isl::schedule_node& node);
bool HasBandBelow(const isl::schedule_node& node);

// How many schedule dimensions are around the node.
int DepthOf(const isl::schedule_node& node);

// { S[i] -> [f(i)] }
isl::multi_union_pw_aff ToMulti(const isl::union_pw_aff& f);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_TREE_H_
