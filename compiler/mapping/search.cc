#include "compiler/mapping/search.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/math.h"
#include "isa/granularity.h"

namespace polynao::mapping {
namespace {

// The order of Mapping::Values.
auto ValuesOf(const Mapping& m) {
  return std::tuple(m.across, m.block, m.channel_clusters, m.columns_apart, m.image_by_smem,
                    m.image_in_parts, m.parts, m.pieces, m.results_by_smem, m.turns,
                    m.weights_by_smem);
}

bool IsBefore(const Ranked& a, const Ranked& b) {
  return a.cycles != b.cycles ? a.cycles < b.cycles : ValuesOf(a.mapping) < ValuesOf(b.mapping);
}

std::vector<int64_t> DivisorsUpTo(int64_t n, int64_t most) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= std::min(n, most); ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  return divisors;
}

// More have more latencies than they overlap work.
constexpr int64_t kMostPieces = 8, kMostTurns = 32;

// All mappings but for their blocks and pieces.
std::vector<Mapping> Branches(const Layer& layer, const CardFacts& card) {
  std::vector<Mapping> branches;
  for (int64_t sharing : DivisorsUpTo(card.clusters, CeilDiv(layer.channels, isa::kTensorLanes))) {
    for (int64_t across : DivisorsUpTo(card.cores, card.cores)) {
      for (int64_t apart : DivisorsUpTo(card.cores / across, layer.columns)) {
        for (int flags = 0; flags < 8; ++flags) {
          Mapping m = {.channel_clusters = sharing,
                       .columns_apart = apart,
                       .across = across,
                       .weights_by_smem = (flags & 1) != 0,
                       .image_by_smem = (flags & 2) != 0,
                       .results_by_smem = (flags & 4) != 0};
          branches.push_back(m);
          for (const Layer::Part& part : layer.parts) {
            m.parts = part.count;
            m.image_in_parts = part.channels > 0;
            branches.push_back(m);
          }
          if (m.weights_by_smem || !m.image_by_smem || !m.results_by_smem) continue;
          m.parts = 1, m.image_in_parts = false;
          const int64_t rows = SharesOf(layer, card, m).cluster_rows;
          for (m.turns = 2; m.turns <= std::min(rows, kMostTurns); ++m.turns) {
            if (CeilDiv(rows, CeilDiv(rows, m.turns)) == m.turns) branches.push_back(m);
          }
        }
      }
    }
  }
  return branches;
}

// Channels of a block: equal parts, then multiples of the unit's lanes up to `most`.
std::vector<int64_t> Blocks(const Layer& layer, const Mapping& m, int64_t most) {
  std::vector<int64_t> blocks = EvenBlocks(layer, m);
  for (int64_t block = isa::kTensorLanes; block <= most; block += isa::kTensorLanes) {
    blocks.push_back(block);
  }
  return blocks;
}

// Calls visit(mapping) for all blocks and pieces with which the mapping fits; for several pieces only if
// may_gain(mapping).
template <typename MayGain, typename Visit>
void ForEachBlock(const Layer& layer, const CardFacts& card, Mapping m, const MayGain& may_gain,
                  const Visit& visit) {
  const int64_t own = CeilDiv(layer.channels, m.channel_clusters * m.across);
  for (const int64_t block : Blocks(layer, m, RoundUp(own, isa::kTensorLanes))) {
    // Filters in parts are of all channels, if the image is there.
    if (m.parts > 1 && !m.image_in_parts && block < own) continue;
    m.block = block;
    const int64_t rows = m.parts == 1 ? 1 : SharesOf(layer, card, m).core_rows;
    for (m.pieces = 1; m.pieces <= std::min(rows, kMostPieces); ++m.pieces) {
      if (rows % m.pieces != 0 || (m.pieces > 1 && !may_gain(m))) continue;
      if (WhyNot(layer, card, m).empty()) visit(m);
    }
    m.pieces = 1;
  }
}

}  // namespace

std::vector<Ranked> AllMappings(const Layer& layer, const CardFacts& card) {
  std::vector<Ranked> all;
  for (const Mapping& branch : Branches(layer, card)) {
    ForEachBlock(
        layer, card, branch, [](const Mapping&) { return true; },
        [&](const Mapping& m) { all.push_back({m, CostOf(layer, card, m).cycles()}); });
  }
  std::sort(all.begin(), all.end(), IsBefore);
  return all;
}

std::optional<Misfit> NearestMisfit(const Layer& layer, const CardFacts& card,
                                    const std::map<std::string, int64_t, std::less<>>& values) {
  std::optional<Misfit> nearest;
  const auto part = [](int64_t bytes, int64_t has) {
    return static_cast<double>(bytes) / static_cast<double>(has);
  };
  for (Mapping m : Branches(layer, card)) {
    for (const int64_t block : Blocks(layer, m, RoundUp(layer.channels, isa::kTensorLanes))) {
      m.block = block;
      const std::map<std::string, int64_t> own = m.Values();
      if (!std::all_of(values.begin(), values.end(), [&](const auto& value) {
            return own.find(value.first)->second == value.second;
          })) {
        continue;
      }
      const std::string why = WhyNot(layer, card, m);
      if (why.empty()) continue;
      const Needs needs = NeedsOf(layer, card, m);
      double times = std::max({part(needs.nmem, card.nmem_bytes), part(needs.wmem, card.wmem_bytes),
                               part(needs.smem, card.smem_bytes)});
      if (times <= 1) times = std::numeric_limits<double>::infinity();
      if (!nearest || times < nearest->times) nearest = {m, why, times};
    }
  }
  return nearest;
}

Found Search(const Layer& layer, const CardFacts& card, double limit) {
  std::vector<std::pair<double, Mapping>> branches;
  for (const Mapping& m : Branches(layer, card)) {
    branches.emplace_back(AtLeast(layer, card, m), m);
  }
  std::sort(branches.begin(), branches.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : ValuesOf(a.second) < ValuesOf(b.second);
  });
  Found found;
  for (const auto& [bound, branch] : branches) {
    // Of equals the order decides, so that equal bounds are looked at.
    if (bound > limit) break;
    Ranked in_one_piece = {.mapping = {.block = 0}};
    // Pieces hide no more than the elementwise work.
    const auto may_gain = [&](const Mapping& m) {
      const Shares s = SharesOf(layer, card, m);
      const double work =
          layer.vector_cycles(s.pixels, s.lanes) * static_cast<double>(s.steps / m.parts);
      return in_one_piece.mapping.block != m.block || in_one_piece.cycles - work <= limit;
    };
    ForEachBlock(layer, card, branch, may_gain, [&](const Mapping& m) {
      ++found.costed;
      const Ranked one = {m, CostOf(layer, card, m).cycles()};
      if (m.pieces == 1) in_one_piece = one;
      if (one.cycles > limit || (!found.best.empty() && !IsBefore(one, found.best[0]))) return;
      found.best = {one};
      limit = one.cycles;
    });
  }
  return found;
}

}  // namespace polynao::mapping
