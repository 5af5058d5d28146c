// The loops of a stage, inside of a tile or alone.
#ifndef COMPILER_POLY_FUSE_STAGE_LOOPS_H_
#define COMPILER_POLY_FUSE_STAGE_LOOPS_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/poly/fuse/stages.h"
#include "compiler/poly/generate/generate.h"

namespace polynao::poly {

// Puts the stage's loops at `leaf`, a leaf of a tree. Statements have loops of their own, one after the other, where
// their dependences allow it; otherwise the loops they have in the program. Of a statement's loops the one that walks
// through memory with stride one goes innermost, as a vector, if nothing depends on an instance in another iteration of
// it. `around`: schedule dimensions around the leaf's tree, which will be a part of another. Returns the node at the
// leaf's place. Throws isl::exception.
isl::schedule_node WithStageLoops(isl::schedule_node leaf, int around, const Scop& part,
                                  const Stage& stage, std::map<std::string, LoopMark>& marks);

// Statements of a stage that share loops, in the order of the program.
using Component = std::vector<const Statement*>;

// The sequence of what `loops` puts at a leaf for each component of the stage, those whose loops can be taken apart.
// Returns the node at the place of `leaf`.
isl::schedule_node WithComponents(
    const isl::schedule_node& leaf, const Stage& stage,
    const std::function<isl::schedule_node(isl::schedule_node, const Component&)>& loops);

// { S[i] -> [t0, t1, ..] }: the loops of a component, outermost first: the iterators of its statement, or the loops
// that several statements have in the program. Nothing if it has none.
std::optional<isl::multi_union_pw_aff> LoopsOf(const Scop& part, const Component& component);

// Returns true if the iterations of `loop`, { S[i] -> [t] }, may run at once, whatever the loops
// around do.
bool IsParallel(const Stage& stage, const Component& component, const isl::union_pw_aff& loop);

// The number of the iterator whose loop goes innermost as a vector; -1: none. Throws isl::exception.
int VectorIterator(const Stage& stage, const Statement& statement);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_STAGE_LOOPS_H_
