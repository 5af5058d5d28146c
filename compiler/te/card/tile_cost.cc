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

double PipelinedCycles(const isa::Machine& m, int64_t tiles, const TileNeeds& needs) {
  const auto cores = static_cast<double>(needs.cores > 0 ? needs.cores : m.cores());
  const double share =
      std::min(m.gmem_bytes_per_cycle() / cores, static_cast<double>(m.Get("io_dma.port_bytes")));
  // Of strided copies only a few segments are under way at a time.
  const auto waits = [&m](int64_t segments, double at_once) {
    return segments <= 1 ? 0 : static_cast<double>(segments * m.Get("gmem.latency")) / at_once;
  };
  const double segments =
      waits(needs.load_segments, static_cast<double>(m.Get("io_dma.strided_reads"))) +
      waits(needs.store_segments, m.store_segments_per_core());
  // All cores start their first tile at the same time.
  const double together = tiles == 1 ? 1 : std::min(1.0, kCoresInStep / cores);
  const double move =
      std::max(static_cast<double>(needs.moved_bytes) / share + together * segments, segments);
  const double wait =
      static_cast<double>(m.Get("sync.drain") + 2 * m.Get("io_dma.start") + m.Get("gmem.latency"));
  const double step = std::max(needs.compute_cycles, move) + wait;
  return static_cast<double>(tiles) * step + std::min(needs.compute_cycles, move) + 2 * wait;
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
