// The mappings of a layer, the cheapest first.
#ifndef COMPILER_MAPPING_SEARCH_H_
#define COMPILER_MAPPING_SEARCH_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/mapping/card_facts.h"
#include "compiler/mapping/layer.h"
#include "compiler/mapping/mapping.h"

namespace polynao::mapping {

struct Ranked {
  Mapping mapping;
  double cycles = 0;
};

// All mappings that fit, the cheapest first; of equals the one whose text is the smaller. The order is the same in
// every run.
std::vector<Ranked> AllMappings(const Layer& layer, const CardFacts& card);

// Of the mappings that have these values and do not fit, the one that needs least of what it lacks: how many times what
// there is. One that is none (WhyNot) only where there are no others. Nothing where there is no such mapping.
struct Misfit {
  Mapping mapping;
  std::string why;
  double times = 0;
};
std::optional<Misfit> NearestMisfit(const Layer& layer, const CardFacts& card,
                                    const std::map<std::string, int64_t, std::less<>>& values);

struct Found {
  std::vector<Ranked> best;  // at most one; empty if none fits within the limit
  int64_t costed = 0;        // mappings whose cost was computed
};
// The first of AllMappings by branch and bound: all but the block first, the most promising first; where the lower
// bound (AtLeast) is more than the best cost so far, or than `limit`, no block is costed.
Found Search(const Layer& layer, const CardFacts& card,
             double limit = std::numeric_limits<double>::infinity());

}  // namespace polynao::mapping

#endif  // COMPILER_MAPPING_SEARCH_H_
