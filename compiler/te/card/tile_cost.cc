#include "compiler/te/card/tile_cost.h"

#include <algorithm>

#include "base/math.h"
#include "compiler/target/target.h"
#include "isa/granularity.h"

namespace polynao::te {

int64_t OnChipBytes(int64_t elements, ir::Type type) {
  return RoundUp(RoundUp(elements, isa::kVectorGroup) * ir::ByteSize(type), kOnChipAlignment);
}

double VectorCycles(const isa::Machine& m, int64_t bytes) {
  return static_cast<double>(m.Get("vector.start") + CeilDiv(bytes, m.Get("vector.bytes")));
}

double VectorCycles(const mapping::CardFacts& card, int64_t bytes) {
  return card.vector_start +
         static_cast<double>(CeilDiv(bytes, static_cast<int64_t>(card.vector_bytes)));
}

mapping::CostParts PipelinedParts(const mapping::CardFacts& card, int64_t tiles,
                                  const TileNeeds& needs) {
  using mapping::kWaits;
  const auto cores =
      static_cast<double>(needs.cores > 0 ? needs.cores : card.clusters * card.cores);
  const double gmem = card.gmem / cores;
  const double port = card.io_port;
  const double share = std::min(gmem, port);
  // Of strided copies only a few segments are under way at a time. A store is under way until the DRAM has it.
  const auto waits = [](int64_t segments, double latency, double at_once) {
    return segments <= 1 ? 0 : static_cast<double>(segments) * latency / at_once;
  };
  const double segments =
      waits(needs.load_segments, card.gmem_latency, card.strided_reads) +
      waits(needs.store_segments, card.latency + card.dram_latency, card.store_segments);
  // All cores start their first tile at the same time.
  const double together =
      tiles == 1 ? 1 : std::min(1.0, std::max(kPartInStep, kCoresInStep / cores));
  const double bytes = static_cast<double>(needs.moved_bytes) / share;
  const double move = std::max(bytes + together * segments, segments);
  const double wait = card.drain + 2 * card.io_start + card.gmem_latency;
  mapping::CostParts cost;
  const auto add_compute = [&] {
    cost.Lane();
    cost.Add("computation", mapping::kTensorUnit, needs.tensor_cycles);
    cost.Add("copies", mapping::kMoveDma, needs.copy_cycles);
    cost.Add("computation", mapping::kVectorUnit,
             needs.compute_cycles - needs.tensor_cycles - needs.copy_cycles);
  };
  const auto add_move = [&] {
    cost.Lane();
    if (move == segments) return cost.Add("segments", kWaits, segments);
    cost.Add("loads and stores", gmem < port ? mapping::kGmem : mapping::kIoDma, bytes);
    cost.Add("segments", kWaits, together * segments);
  };
  cost.Phase("tiles", static_cast<double>(tiles));
  add_compute(), add_move();
  cost.Phase("waits between tiles", static_cast<double>(tiles) + 2);
  cost.Lane(), cost.Add("queues", kWaits, wait);
  // Of the first and the last tile nothing overlaps.
  cost.Phase("first and last tile", 1);
  needs.compute_cycles < move ? add_compute() : add_move();
  return cost;
}

std::vector<int64_t> Divisors(int64_t n) {
  std::vector<int64_t> small, large;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    small.push_back(d);
    if (d * d < n) large.push_back(n / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

std::vector<int64_t> Fractions(int64_t n) {
  std::vector<int64_t> sizes;
  for (int64_t parts = 1; parts <= n; parts += std::max<int64_t>(1, parts / 8)) {
    const int64_t size = CeilDiv(n, parts);
    if (sizes.empty() || sizes.back() != size) sizes.push_back(size);
  }
  if (!sizes.empty() && sizes.back() != 1) sizes.push_back(1);
  return sizes;
}

}  // namespace polynao::te
