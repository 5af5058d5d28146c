// The mappings of a layer, the cheapest first.
#ifndef COMPILER_MAPPING_SEARCH_H_
#define COMPILER_MAPPING_SEARCH_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/mapping/card_facts.h"
#include "compiler/mapping/layer.h"
#include "compiler/mapping/mapping.h"

namespace polynao::mapping {

struct Ranked {
  Mapping mapping;
  Cost cost;
};

// All mappings that fit, the cheapest first; of equals the one whose text is the smaller. The order is the same in
// every run.
std::vector<Ranked> AllMappings(const Layer& layer, const CardFacts& card);

struct Found {
  std::vector<Ranked> best;  // at most one; empty if none fits
  int64_t costed = 0;        // mappings whose cost was computed
};
// The first of AllMappings by branch and bound: all but the block first, the most promising first; where the lower
// bound (AtLeast) is more than the best cost so far, no block is costed.
Found Search(const Layer& layer, const CardFacts& card);

}  // namespace polynao::mapping

#endif  // COMPILER_MAPPING_SEARCH_H_
