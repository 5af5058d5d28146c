// A core, or a memory core: registers, queues, DMA engines and what it waits for.
#ifndef SIMULATOR_REFERENCE_CORE_H_
#define SIMULATOR_REFERENCE_CORE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "isa/instruction_set.h"
#include "simulator/reference/report.h"

namespace polynao::simulator::reference {

// An instruction that was issued to a queue.
struct Issued {
  const isa::Instruction* instruction = nullptr;
  int64_t pc = 0;
  int64_t cost = 0;   // at least one
  int64_t ready = 0;  // the cycle in which its issue has ended
  std::vector<isa::ByteRanges> ranges;
};

// Describes what a DMA engine does for one instruction.
struct Transfer {
  // A run of consecutive bytes, and how many of its bursts are in flight.
  struct Segment {
    int64_t begin = 0;
    int64_t size = 0;
    int64_t in_flight = 0;
  };
  std::vector<Segment> segments;
  size_t segment = 0;     // that the next burst is of
  int64_t sent = 0;       // bytes of it
  int64_t send_from = 0;  // cycle
  int64_t in_flight = 0;  // bursts
  // Segments of which some burst has been sent and not all have completed.
  int64_t segments_in_flight = 0;
  int64_t segments_allowed = 0;
  // The runs in the core's own memory, if lines count there, and how far the bursts that were sent reach.
  std::vector<Segment> core_runs;
  size_t core_run = 0;
  int64_t core_sent = 0;  // bytes of it

  bool all_sent() const { return segment == segments.size(); }
};

// An instruction in its unit.
struct Running {
  Issued issued;
  int64_t started = 0;  // cycle
  int64_t number = 0;   // among those that the queue has started
  int64_t stolen = 0;   // cycles in which DMAs used a memory's one port
  Transfer transfer;    // of a DMA engine
};

struct Queue {
  std::deque<Issued> waiting;
  std::deque<Running> running;  // in the order of their starts
  int64_t starts = 0;
  int64_t last_start = -1, last_completion = -1;  // cycles

  bool empty() const { return waiting.empty() && running.empty(); }
};

struct Core {
  enum class State {
    kRunning,     // issues an instruction in cycle `free_at`
    kAccess,      // waits for a scalar access to memory, until `free_at` if that is known
    kQueueFull,   // for room in `wait_queue`
    kCompletion,  // for the instruction at `wait_pc`, the last one in `wait_queue`
    kDrain,       // for the queues that the instruction at `pc` drains
    kBarrier,
    kHalted,  // from `free_at` on
  };
  int64_t cluster = 0;
  int64_t core = 0;   // in the cluster
  int64_t index = 0;  // in the card
  bool is_memory_core = false;

  int64_t pc = 0;
  std::array<int64_t, isa::kRegisterCount> registers{};
  // Nobody computes what memory holds, so a register that was loaded, or computed from one, has no value.
  std::array<bool, isa::kRegisterCount> unknown{};
  std::array<int64_t, isa::kRegisterCount> readable_from{};  // cycles
  std::vector<int64_t> args;

  State state = State::kRunning;
  int64_t free_at = 0;
  bool access_done = false;
  int64_t wait_from = 0;
  isa::Queue wait_queue = isa::Queue::kNone;
  int64_t wait_pc = 0;
  int64_t scalar_code_from = 0;  // the end of the last wait

  std::array<Queue, isa::kQueueCount> queues;
  CoreCounts counts;

  Queue& queue(isa::Queue q) { return queues[static_cast<size_t>(q)]; }
  bool idle() const;
  std::string Name() const;
};

// The operands of the instruction at core.pc as isa::InstructionSet takes them: values of registers and immediates.
// Errors: a constraint of the instruction that does not hold; an address, a count or a branch that depends on what
// memory holds. Where the value alone is unknown, as of a number to add to a vector, it is 0.
absl::StatusOr<std::vector<int64_t>> ReadOperands(const isa::InstructionSet& set,
                                                  const isa::InstructionSet::Decoded& decoded,
                                                  const Core& core);

// The cycle from which all registers can be read that the instruction reads.
int64_t ReadableFrom(const isa::InstructionSet::Decoded& decoded, const Core& core);

// Executes a scalar instruction: registers, which can be read from cycle `readable_from` on, and pc. A load from memory
// makes its register unknown.
absl::Status ExecuteScalar(const isa::InstructionSet& set,
                           const isa::InstructionSet::Decoded& decoded,
                           const std::vector<int64_t>& operands, int64_t readable_from, Core& core);

// Returns true if the instruction accesses memory.
bool AccessesMemory(const isa::Instruction& instruction);

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_CORE_H_
