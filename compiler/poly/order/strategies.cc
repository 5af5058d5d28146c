#include "compiler/poly/order/strategies.h"

#include "base/text.h"

namespace polynao::poly {
namespace {

constexpr NamedStrategy kStrategies[] = {
    {.name = "none",
     .doc = "the function as it is written",
     .isl = Strategy::kNone,
     .is_search = false},
    {.name = "original",
     .doc = "the original order, with tiles, parallel and vector loops",
     .isl = Strategy::kOriginal},
    {.name = "min", .doc = "no statements share loops that need not", .isl = Strategy::kMin},
    {.name = "smart",
     .doc = "statements share loops as long as parallel loops stay so",
     .isl = Strategy::kSmart},
    {.name = "max", .doc = "as many statements as possible share loops", .isl = Strategy::kMax},
    {.name = "auto",
     .doc = "what a cost model finds fastest, with tiles, vectors and tiles of registers",
     .expands_scalars = true},
    {.name = "fuse",
     .doc = "stages in the tiles of the last one, groups and sizes by a cost model",
     .is_fusion = true,
     .expands_scalars = true},
    // Its tiles are for the caches of processors.
    {.name = "overlap",
     .doc = "the same as PolyMage chooses groups, in tiles of fixed sizes",
     .is_fusion = true,
     .expands_scalars = true,
     .is_for_gpu = false},
    {.name = "text", .doc = "the order in a text", .is_search = false},
};

}  // namespace

absl::Span<const NamedStrategy> Strategies() { return kStrategies; }

const NamedStrategy* FindStrategy(std::string_view name) {
  for (const NamedStrategy& strategy : kStrategies) {
    if (strategy.name == name) return &strategy;
  }
  return nullptr;
}

bool IsFusion(std::string_view name) {
  const NamedStrategy* strategy = FindStrategy(name);
  return strategy != nullptr && strategy->is_fusion;
}

std::string StrategyNames(bool NamedStrategy::* flag) {
  std::string names;
  for (const NamedStrategy& strategy : kStrategies) {
    if (flag != nullptr && !(strategy.*flag)) continue;
    StrAppend(&names, names.empty() ? "" : ", ", strategy.name);
  }
  return names;
}

}  // namespace polynao::poly
