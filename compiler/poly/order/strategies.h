// The strategies of schedules by name: what `nao run --schedule`, `nao poly --strategy`, the pass `schedule` and the
// benchmarks may ask for.
#ifndef COMPILER_POLY_ORDER_STRATEGIES_H_
#define COMPILER_POLY_ORDER_STRATEGIES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace polynao::poly {

// How isl's scheduler (Pluto's algorithm, by Feautrier's where that fails) groups statements into loops.
enum class Strategy : uint8_t {
  kNone,      // The function stays as it is.
  kOriginal,  // The original order, taken apart and put together again.
  kMin,       // Each strongly connected component has loops of its own: no fusion.
  kSmart,     // isl's default: statements share loops as long as that keeps what is parallel.
  kMax,       // As many statements as possible share loops, whatever that does to parallel ones.
};

struct NamedStrategy {
  std::string_view name;
  std::string_view doc;  // half a line
  // Of the orders that ComputeSchedule (schedule.h) makes. The others: auto, fusions, and the order in a text.
  std::optional<Strategy> isl = {};
  // Joins stages in the tiles of the last one (fuse/fuse.h), and takes sizes of these tiles.
  bool is_fusion = false;
  // Also chooses tiles by the cost model, on a function with arrays in place of scalars.
  bool expands_scalars = false;
  // Has loops for blocks and threads of a GPU, too (gpu/gpu.h).
  bool is_for_gpu = true;
  // Makes an order by itself: not the function as it is, nor an order that the user writes.
  bool is_search = true;
};

// All strategies, in the order of listings.
absl::Span<const NamedStrategy> Strategies();

// Null if no strategy has that name.
const NamedStrategy* FindStrategy(std::string_view name);

// Returns true for the name of a strategy that is a fusion.
bool IsFusion(std::string_view name);

// "none, original, min": the names of those for which the flag is true, or of all.
std::string StrategyNames(bool NamedStrategy::* flag = nullptr);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ORDER_STRATEGIES_H_
