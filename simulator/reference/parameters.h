// The machine's parameters that the clocked model looks up, under their names in the machine file.
#ifndef SIMULATOR_REFERENCE_PARAMETERS_H_
#define SIMULATOR_REFERENCE_PARAMETERS_H_

#include <cstdint>

#include "isa/machine.h"

namespace polynao::simulator::reference {

struct Parameters {
  explicit Parameters(const isa::Machine& m)
      : clusters(m.clusters()),
        cores(m.cores_per_cluster()),
        clock_mhz(m.Get("card.clock_mhz")),
        launch(m.Get("card.launch")),
        link_bytes(m.Get("cluster.link_bytes")),
        store_segments(m.Get("cluster.store_segments")),
        queue_depth(m.Get("core.queue_depth")),
        nmem_line(m.Get("core.nmem_line")),
        nmem_ports(m.Get("core.nmem_ports")),
        wmem_ports(m.Get("core.wmem_ports")),
        scalar_issue(m.Get("scalar.issue")),
        scalar_dependent(m.Get("scalar.dependent")),
        smem_bytes(m.Get("smem.bytes")),
        smem_granule(m.Get("smem.granule")),
        smem_burst(m.Get("smem.burst")),
        smem_latency(m.Get("smem.latency")) {
    gmem.channels = m.Get("gmem.channels");
    gmem.channel_bytes_per_kilocycle = m.Get("gmem.channel_bytes_per_kilocycle");
    gmem.interleave = m.Get("gmem.interleave");
    gmem.channel_hash = m.Get("gmem.channel_hash");
    gmem.granule = m.Get("gmem.granule");
    gmem.latency = m.Get("gmem.latency");
    gmem.cache_kib = m.caches_reads() ? m.Get("gmem.cache_kib") : 0;
    gmem.cache_bytes = m.Get("gmem.cache_bytes");
    gmem.cache_latency = m.Get("gmem.cache_latency");
    gmem.line = m.Get("io_dma.burst");
    io_dma.transfers = m.Get("io_dma.transfers");
    io_dma.port_bytes = m.Get("io_dma.port_bytes");
    io_dma.memory_core_port_bytes = m.Get("io_dma.memory_core_port_bytes");
    io_dma.burst = m.Get("io_dma.burst");
    io_dma.outstanding = m.Get("io_dma.outstanding");
    io_dma.strided_reads = m.Get("io_dma.strided_reads");
    io_dma.strided_writes = m.Get("io_dma.strided_writes");
    move_dma.transfers = m.Get("move_dma.transfers");
    move_dma.port_bytes = m.Get("move_dma.port_bytes");
    move_dma.outstanding = m.Get("move_dma.outstanding");
  }

  int64_t clusters;
  int64_t cores;  // of a cluster, without the memory core
  int64_t cores_and_memory_core() const { return cores + 1; }
  int64_t clock_mhz;
  int64_t launch;
  int64_t link_bytes;
  int64_t store_segments;
  int64_t queue_depth;
  int64_t nmem_line, nmem_ports, wmem_ports;
  int64_t scalar_issue, scalar_dependent;
  struct Gmem {
    int64_t channels, channel_bytes_per_kilocycle, interleave, channel_hash, granule, latency;
    int64_t cache_kib, cache_bytes, cache_latency;
    int64_t line;  // bytes of a line of the cache
  } gmem;
  struct IoDma {
    int64_t transfers, port_bytes, memory_core_port_bytes, burst, outstanding, strided_reads,
        strided_writes;
  } io_dma;
  struct MoveDma {
    int64_t transfers, port_bytes, outstanding;
  } move_dma;
  int64_t smem_bytes, smem_granule, smem_burst, smem_latency;
};

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_PARAMETERS_H_
