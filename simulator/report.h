// A run reports cycles, counters, and slices of a trace.
#ifndef SIMULATOR_REPORT_H_
#define SIMULATOR_REPORT_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/actions.h"
#include "isa/instruction_set.h"
#include "simulator/dram/request.h"

namespace polynao::simulator {

// One execution unit of a core.
struct UnitReport {
  int64_t instructions = 0;
  int64_t busy = 0;  // cycles in which at least one instruction is in it
  bool operator==(const UnitReport&) const = default;
};

using isa::kUnitCount;

// The class says what a cycle of a core went into: the first of these that is true of it. docs/timing.md states when
// each one is.
enum class CycleClass : uint8_t {
  kCompute,
  kDramRows,
  kLoad,
  kStore,
  kMove,
  kBarrier,
  kScalar,
  kIdle,
};
inline constexpr int kCycleClassCount = 8;
// "compute", "dram_rows", ...
std::string_view CycleClassName(CycleClass cycle_class);

// One core. All times are cycles.
struct CoreReport {
  int cluster = 0;
  int core = 0;  // in the cluster; the memory core comes last
  bool is_memory_core = false;
  std::array<UnitReport, kUnitCount> units{};  // by isa::Unit; kControl counts syncs and barriers
  // Why nothing was issued:
  std::array<int64_t, isa::kQueueCount> queue_full{};  // by queue
  int64_t sync_wait = 0;                               // for queues to drain
  int64_t barrier_wait = 0;                            // from arrival to release
  int64_t completion_wait = 0;  // for an instruction that waits for its own completion
  int64_t dependent_wait = 0;   // for registers that the instructions before write
  int64_t halted_at = 0;
  // Of the cycles of the run, by CycleClass; they sum to RunResult::cycles. Only with a profile.
  std::array<int64_t, kCycleClassCount> classes{};
  bool operator==(const CoreReport&) const = default;
};

// One place that bytes pass: a GMEM channel, its slice of the cache, a direction of a cluster link, the port of an
// SMEM, a core's DMA port.
struct PortReport {
  std::string name;  // "gmem.channel0", "gmem.cache0", "cluster1.link.down", "cluster1.core2.io.in"
  int64_t rate = 0;  // bytes per 1000 cycles
  int64_t bursts = 0;
  int64_t payload = 0;  // bytes that instructions asked for
  int64_t moved = 0;    // with the rest of granules, and read-modify-write
  int64_t busy = 0;     // cycles
  bool operator==(const PortReport&) const = default;
};

// Something that took time, for traces and pictures.
struct Slice {
  int32_t core = 0;  // index in RunResult::cores
  isa::Unit unit = isa::Unit::kScalar;
  enum class Kind : uint8_t {
    kExecute,    // the unit executes the instruction at pc
    kScalar,     // scalar code up to the instruction at pc
    kQueueFull,  // the rest: the core issues nothing
    kSync,
    kBarrier,
    kWait,
  } kind = Kind::kExecute;
  bool is_store = false;  // of the IO-DMA: writes GMEM
  int32_t pc = 0;
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const Slice&) const = default;
};

// Records what each GMEM channel did over time, up to end_cycle. Only with a profile.
struct Activity {
  int64_t bucket = 0;  // cycles of each of the buckets; there are at most 400
  // By row, then by bucket. Of DRAM a row is a bank, channel by channel; else it is a channel. Bytes are those of RD
  // and WR, or what flat channels move.
  std::vector<std::vector<int64_t>> bytes;
  std::vector<std::vector<int64_t>> activates;  // ACT; no rows if channels are flat
  bool operator==(const Activity&) const = default;
};

// Bytes that instructions moved from one memory to another, by [from][to].
using PathBytes = std::array<std::array<int64_t, isa::kSpaceCount>, isa::kSpaceCount>;

struct RunResult {
  std::string machine;
  std::string program;
  // From the first instruction issued on any core (cycle 0) to the last byte written to GMEM; to
  // end_cycle if none was.
  int64_t cycles = 0;
  // When the last core had halted and the last queue was empty.
  int64_t end_cycle = 0;
  // The host adds this to start the card; not in `cycles`.
  int64_t launch_cycles = 0;
  std::vector<CoreReport> cores;
  std::vector<PortReport> ports;
  PathBytes path_bytes{};
  // GMEM bytes: asked for, and moved for that by the channels (granules; the reads of
  // read-modify-write) and by the cache.
  int64_t gmem_read = 0;
  int64_t gmem_read_moved = 0;
  int64_t gmem_read_cached = 0;
  int64_t gmem_written = 0;
  int64_t gmem_written_moved = 0;
  // Commands of each GMEM channel until end_cycle; empty if they are flat.
  std::vector<DramCounters> dram;
  // The same by bank: those of channel 0, then those of channel 1, ...
  std::vector<DramBankCounters> dram_banks;
  // Energy is computed from these counts (docs/energy.md).
  isa::ActionCounts actions;
  // Bytes of output tensors that nothing wrote, by tensor; only if hazards are checked.
  std::vector<std::pair<std::string, int64_t>> unwritten;
  Activity activity;

  // The trace, if one was asked for.
  std::vector<Slice> slices;
  bool slices_complete = true;            // false: the limit was reached
  std::vector<std::string> instructions;  // text by pc
  int64_t gmem_bucket = 0;                // cycles
  std::vector<int64_t> gmem_buckets;      // bytes moved on GMEM in each bucket

  bool operator==(const RunResult&) const = default;

  int64_t instruction_count() const;
  // (name, value) of every count, summed over cores, in a fixed order: "cycles", "bytes.gmem.read",
  // "vector.busy", "scalar.queue_full.io", ... For JSON and comparisons.
  std::vector<std::pair<std::string, int64_t>> Rows() const;
};

// A byte string that ParseResult turns back into the result, for pipes between processes of one
// build.
std::string SerializeResult(const RunResult& result);
absl::StatusOr<RunResult> ParseResult(std::string_view bytes);

}  // namespace polynao::simulator

#endif  // SIMULATOR_REPORT_H_
