// A run of the clocked model reports this. Times are cycles, sizes bytes, rates bytes in 1000 cycles.
#ifndef SIMULATOR_REFERENCE_REPORT_H_
#define SIMULATOR_REFERENCE_REPORT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "isa/actions.h"
#include "isa/instruction_set.h"
#include "simulator/dram/request.h"

namespace polynao::simulator::reference {

struct UnitCounts {
  int64_t instructions = 0;
  int64_t busy = 0;
};

struct CoreCounts {
  int64_t cluster = 0;
  int64_t core = 0;  // in the cluster; the memory core comes last
  bool is_memory_core = false;
  std::array<UnitCounts, 6> units;                     // by isa::Unit
  std::array<int64_t, isa::kQueueCount> queue_full{};  // by isa::Queue
  int64_t sync_wait = 0;
  int64_t barrier_wait = 0;
  int64_t completion_wait = 0;
  int64_t dependent_wait = 0;
  int64_t halted_at = 0;
};

// Counts what passed a server.
struct PortCounts {
  std::string name;  // "cluster1.core2.io.in"
  int64_t rate = 0;
  int64_t bursts = 0;
  int64_t payload = 0;  // bytes that instructions asked for
  int64_t moved = 0;    // whole granules, and the reads of partial writes
  int64_t busy = 0;
};

// A unit executes an instruction, or the scalar unit does something, in cycles begin to end.
struct Span {
  enum class Kind { kExecute, kScalarCode, kQueueFull, kSync, kBarrier, kCompletion };
  int64_t core = 0;  // in the card
  isa::Unit unit = isa::Unit::kScalar;
  Kind kind = Kind::kExecute;
  bool is_store = false;  // to GMEM, by the IO-DMA
  int64_t pc = 0;         // of the instruction; of scalar code, of the one that ended it
  int64_t begin = 0;
  int64_t end = 0;
};

struct Report {
  int64_t cycles = 0;
  int64_t end_cycle = 0;
  int64_t launch_cycles = 0;
  std::vector<CoreCounts> cores;
  std::vector<PortCounts> ports;
  int64_t path_bytes[isa::kSpaceCount][isa::kSpaceCount] = {};  // by [from][to]
  int64_t gmem_read = 0;
  int64_t gmem_read_moved = 0;
  int64_t gmem_read_cached = 0;
  int64_t gmem_written = 0;
  int64_t gmem_written_moved = 0;
  std::vector<DramCounters> dram;            // by channel; empty where channels are flat
  std::vector<DramBankCounters> dram_banks;  // of the channels' banks, channel by channel
  isa::ActionCounts actions;                 // of what was issued
  std::vector<int64_t> issued;               // by pc: how often an instruction was
  std::vector<Span> spans;
  // Bytes that channels began to move in cycles i * kGmemBucket to (i + 1) * kGmemBucket - 1.
  static constexpr int64_t kGmemBucket = 256;
  std::vector<int64_t> gmem_buckets;
};

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_REPORT_H_
