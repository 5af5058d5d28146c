// The elements of outputs that a bundle holds and its runner compares.
#ifndef COMPILER_CODEGEN_CUDA_BUNDLE_PLACES_H_
#define COMPILER_CODEGEN_CUDA_BUNDLE_PLACES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compiler/ir/random_value.h"

namespace polynao::codegen {

// The elements of an output that are compared one by one: `count` of `elements`, among them the first
// and the last; always the same ones. If there are at most `count`, all are compared.
inline std::vector<int64_t> BundleSamples(int64_t elements, int64_t count = 256) {
  std::vector<int64_t> places;
  if (elements <= count) {
    for (int64_t i = 0; i < elements; ++i) places.push_back(i);
    return places;
  }
  for (int64_t i = 0; i + 2 < count; ++i) {
    places.push_back(static_cast<int64_t>(ir::Splitmix(0, static_cast<uint64_t>(i)) %
                                          static_cast<uint64_t>(elements)));
  }
  places.push_back(0);
  places.push_back(elements - 1);
  std::sort(places.begin(), places.end());
  return places;
}

// Besides, sums over runs of this many neighbours are compared, at most 64 sums.
inline int64_t BundleRun(int64_t elements) { return std::max<int64_t>(1, (elements + 63) / 64); }

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CUDA_BUNDLE_PLACES_H_
