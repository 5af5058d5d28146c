#include "compiler/mapping/card_facts.h"

#include <string_view>

namespace polynao::mapping {

CardFacts::CardFacts(const isa::Machine& m) {
  const auto get = [&m](std::string_view name) { return static_cast<double>(m.Get(name)); };
  clusters = m.clusters();
  cores = m.cores_per_cluster();
  nmem_bytes = m.nmem_bytes();
  wmem_bytes = m.wmem_bytes();
  smem_bytes = m.smem_bytes();
  has_cache = m.caches_reads();
  gmem = m.gmem_bytes_per_cycle();
  link = get("cluster.link_bytes");
  links = link * get("card.clusters");
  io_port = get("io_dma.port_bytes");
  memory_core_port = get("io_dma.memory_core_port_bytes");
  io_burst = get("io_dma.burst");
  gmem_latency = get("gmem.latency");
  latency = gmem_latency + io_burst / io_port;
  const auto clocks = [&m](std::string_view name) {
    const int64_t* value = m.Find(name);
    return value == nullptr ? 0.0 : static_cast<double>(*value);
  };
  const double clock = clocks("dram.clock_mhz");
  dram_latency = clock == 0 ? 0
                            : (clocks("dram.trcd") + clocks("dram.cl") +
                               clocks("dram.burst_length") / clocks("dram.beats_per_clock")) *
                                  get("card.clock_mhz") / clock;
  io_start = get("io_dma.start");
  strided_reads = get("io_dma.strided_reads");
  store_segments = m.store_segments_per_core();
  memory_core_stores =
      std::min(get("io_dma.strided_writes"), store_segments * get("cluster.cores"));
  move_start = get("move_dma.start");
  move_port = get("move_dma.port_bytes");
  move_burst = get("smem.burst");
  move_outstanding = get("move_dma.outstanding");
  smem = get("smem.bytes");
  smem_latency = get("smem.latency");
  vector_start = get("vector.start");
  vector_bytes = get("vector.bytes");
  tensor_start = get("tensor.start");
  tensor_read = get("tensor.read_bytes");
  tensor_write = get("tensor.write_bytes");
  drain = get("sync.drain");
  barrier = get("sync.cluster");
  cached = has_cache ? get("gmem.channels") * get("gmem.cache_bytes") : 0;
}

}  // namespace polynao::mapping
