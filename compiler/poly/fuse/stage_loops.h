// The loops of a stage, inside of a tile or alone.
#ifndef COMPILER_POLY_FUSE_STAGE_LOOPS_H_
#define COMPILER_POLY_FUSE_STAGE_LOOPS_H_

#include <map>
#include <string>

#include "compiler/poly/fuse/stages.h"
#include "compiler/poly/generate.h"

namespace polynao::poly {

// Puts the stage's loops at `leaf`, a leaf of a tree. Statements have loops of their own, one after the other, where their
// dependences allow it; otherwise the loops they have in the program. Of a statement's loops the one that walks through
// memory with stride one goes innermost, as a vector, if nothing depends on an instance in another iteration of it.
// `around`: schedule dimensions around the leaf's tree, which will be a part of another. Returns the node at the leaf's place.
// Throws isl::exception.
isl::schedule_node WithStageLoops(isl::schedule_node leaf, int around, const Scop& part,
                                  const Stage& stage, std::map<std::string, LoopMark>& marks);

// The number of the iterator whose loop goes innermost as a vector; -1: none. Throws isl::exception.
int VectorIterator(const Stage& stage, const Statement& statement);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_STAGE_LOOPS_H_
