// The card's rates, latencies and sizes, read once from the machine file.
#ifndef COMPILER_MAPPING_CARD_FACTS_H_
#define COMPILER_MAPPING_CARD_FACTS_H_

#include <cstdint>

#include "isa/machine.h"

namespace polynao::mapping {

// Cycles of a program that are in no unit's work: scalar code before the first copies and behind barriers. The smallest
// layers take so much more than their parts (matmul 128x64,128x64).
inline constexpr double kScalarCode = 150;

// Sizes in bytes, rates in bytes a cycle, times in cycles; docs/timing.md says what each parameter does. To find a
// parameter by name would take longer than to compute with it.
struct CardFacts {
  explicit CardFacts(const isa::Machine& m);

  int64_t clusters, cores;  // cores of a cluster, without its memory core
  int64_t nmem_bytes, wmem_bytes, smem_bytes;
  bool has_cache;
  double gmem;   // of all channels
  double link;   // of one cluster, in each direction
  double links;  // of all clusters
  // From a request to the last byte of its burst at a core's port. A DRAM's own time is not in it.
  double latency;
  double gmem_latency;  // of the request alone
  // Of the first burst of a closed row of the DRAM; 0 without one.
  double dram_latency;
  // Segments of a strided transfer that are under way at a time, for each core; of a memory core's store.
  double strided_reads, store_segments, memory_core_stores;
  double io_start, io_port, memory_core_port, io_burst;
  double move_start, move_port, move_burst, move_outstanding;
  double smem, smem_latency;
  double vector_start, vector_bytes;
  double tensor_start, tensor_read, tensor_write;  // of NMEM
  double drain, barrier;                           // a sync, a barrier of a cluster
  double cached;  // bytes a cycle out of the cache, if there is one
};

}  // namespace polynao::mapping

#endif  // COMPILER_MAPPING_CARD_FACTS_H_
