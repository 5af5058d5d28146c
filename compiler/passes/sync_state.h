// Keeps what sync knows at one place of the program.
#ifndef COMPILER_PASSES_SYNC_STATE_H_
#define COMPILER_PASSES_SYNC_STATE_H_

#include <array>
#include <cstdint>

#include "compiler/passes/footprints.h"
#include "isa/instruction_set.h"

namespace polynao {

using QueueSet = std::array<bool, isa::kQueueCount>;

// The instructions in each queue of a core may still read and write these bytes.
using PendingQueues = std::array<Accesses, isa::kQueueCount>;

// RunsOn::kCore and RunsOn::kMemoryCore run instructions, each in queues of their own.
inline constexpr int kActors = 2;

struct SyncState {
  std::array<PendingQueues, kActors> queues;
  // The cores and the memory core may have accessed these bytes in SMEM and GMEM since their last
  // barrier.
  std::array<Accesses, kActors> since_barrier;

  bool operator==(const SyncState&) const = default;
  bool IsEmpty() const { return *this == SyncState(); }
  // Before another iteration, and behind a loop.
  void ForgetVariables() {
    for (PendingQueues& of_actor : queues) {
      for (Accesses& accesses : of_actor) accesses.ForgetVariables();
    }
    for (Accesses& accesses : since_barrier) accesses.ForgetVariables();
  }
  // Either this or `other`.
  void Add(const SyncState& other) {
    for (int actor = 0; actor < kActors; ++actor) {
      for (int q = 0; q < isa::kQueueCount; ++q) queues[actor][q].Add(other.queues[actor][q]);
      since_barrier[actor].Add(other.since_barrier[actor]);
    }
  }
};

}  // namespace polynao

#endif  // COMPILER_PASSES_SYNC_STATE_H_
