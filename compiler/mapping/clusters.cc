#include "compiler/mapping/clusters.h"

#include <algorithm>
#include <functional>

namespace polynao::mapping {

std::vector<int64_t> ClusterCounts(const isa::Machine& machine) {
  const int64_t all = machine.clusters();
  std::vector<int64_t> counts = {all};
  for (int64_t n = 1; n < all; ++n) {
    int64_t rest = n;
    while (rest > 4 && rest % 2 == 0) rest /= 2;
    if (n < 8 || rest == 3 || rest == 4) counts.push_back(n);
  }
  std::sort(counts.begin(), counts.end(), std::greater<>());
  return counts;
}

isa::Machine WithClusters(const isa::Machine& machine, int64_t clusters) {
  isa::Machine fewer = machine;
  fewer.Set("card.clusters", clusters);
  return fewer;
}

}  // namespace polynao::mapping
