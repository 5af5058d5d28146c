// Compares what the cores of a card do: accesses to memories that they share, and barriers.
#ifndef ISA_CHECK_CONFLICTS_H_
#define ISA_CHECK_CONFLICTS_H_

#include <vector>

#include "isa/check/findings.h"
#include "isa/check/walk.h"

namespace polynao::isa {

// Hazards between two cores: in SMEM between two barriers of the cluster; in GMEM likewise, and between clusters
// between two barriers of the card. `traces`: of all cores. Time: n log n in the accesses as AccessList keeps them,
// plus the pairs whose bytes lie among each other.
void FindSharedHazards(const std::vector<CoreTrace>& traces, Findings& findings);

// Barriers that never open, since a core of the cluster, or of the card, does not come to them.
void FindMissedBarriers(const std::vector<CoreTrace>& traces, Findings& findings);

}  // namespace polynao::isa

#endif  // ISA_CHECK_CONFLICTS_H_
