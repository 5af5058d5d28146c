// How many of a card's clusters schedules may use.
#ifndef COMPILER_MAPPING_CLUSTERS_H_
#define COMPILER_MAPPING_CLUSTERS_H_

#include <cstdint>
#include <vector>

#include "isa/machine.h"

namespace polynao::mapping {

// All, and those below of 1 to 8, 12, 16, 24, 32, ... Each cluster loads the weights of its own rows, and the smaller
// its share is, the more of its loads other clusters make too: where GMEM is the limit, fewer clusters are faster. A
// larger card has the counts of a smaller one, so that it is no slower.
std::vector<int64_t> ClusterCounts(const isa::Machine& machine);

// `machine` as schedules see it that use `clusters` of its clusters and leave the others idle.
isa::Machine WithClusters(const isa::Machine& machine, int64_t clusters);

}  // namespace polynao::mapping

#endif  // COMPILER_MAPPING_CLUSTERS_H_
