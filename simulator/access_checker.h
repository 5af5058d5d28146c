// The rules of memory accesses that do not depend on time: bounds, paths that do not exist, hazards
// that no sync or barrier orders, memory never written. Checked when an instruction issues.
#ifndef SIMULATOR_ACCESS_CHECKER_H_
#define SIMULATOR_ACCESS_CHECKER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/interval_set.h"
#include "compiler/ir/ir.h"
#include "isa/instruction_set.h"
#include "isa/machine.h"

namespace polynao::simulator {

// A tensor in GMEM.
struct GmemRegion {
  std::string name;
  int64_t begin = 0;
  int64_t size = 0;
  ir::Access access = ir::Access::kInOut;
  bool is_temporary = false;  // of the program: nobody reads it afterwards
};

// Hazards.  Queues run in parallel and keep their order inside. Two accesses that share a byte, one
// of them a write, must be ordered:
//  - in one core: by a sync that drains the earlier one's queue, unless both are in one queue;
//  - between cores, in SMEM: by a barrier of the cluster or the card after the earlier access's queue was
//    drained; in GMEM likewise, where only a barrier of the card orders different clusters.
// This depends on the order in which each core issues, not on when things happen, so a hazard is
// found even where the timing hides it.
//
// Definedness.  Reading a byte that was never written is an error. Only instructions that compute,
// in the vector and tensor units, may do it, since kernels round counts up and drop guards: each
// result whose value reads such a byte (isa::Flow) is as undefined as the byte, and no other. A
// convolution of 64 channels may lack filters, or rows of its image. Copying an undefined byte to any
// memory is an error.
class AccessChecker {
 public:
  struct Options {
    bool hazards = true;  // hazards and definedness; bounds and paths are always checked
  };
  // `describe` turns a pc into text for messages. `machine` and `set` outlive the checker.
  AccessChecker(const isa::Machine& machine, const isa::InstructionSet& set,
                std::vector<GmemRegion> gmem, const Options& options,
                std::function<std::string(int64_t pc)> describe);

  // A core in its cluster; the memory core is the one after the last.
  struct CoreId {
    int cluster = 0;
    int core = 0;
    bool operator==(const CoreId&) const = default;
  };

  // Checks an instruction that `core` issues with these operands and records what it accesses:
  // `ranges`, its footprint. Errors state the rule, the memory and the address.
  absl::Status Issue(CoreId core, const isa::Instruction& instruction, int64_t pc,
                     isa::OperandValues values, absl::Span<const isa::ByteRanges> ranges);
  // All that `core` issued to `queue` has completed, and the core waited for it.
  void Drain(CoreId core, isa::Queue queue);
  // All cores arrived.
  void ClusterBarrier(int cluster);
  void GlobalBarrier();

  // Bytes of output tensors that nothing has written, for tensors that have some.
  std::vector<std::pair<std::string, int64_t>> Unwritten() const;

 private:
  struct Pending {
    isa::ByteRanges ranges;  // canonical
    int64_t pc;
  };
  struct Accesses {
    IntervalSet reads;
    IntervalSet writes;
    void Add(const isa::ByteRanges& ranges, int64_t pc);
    void Clear();
  };
  struct Core {
    CoreId id;
    std::array<std::vector<Pending>, isa::kQueueCount> pending;  // not drained, by queue
    Accesses smem;                                               // since the last barrier
    Accesses gmem_recent;  // since the last barrier of the cluster or the card
    Accesses gmem_older;   // before that, since the last barrier of the card
    IntervalSet nmem_defined;
    IntervalSet wmem_defined;
  };

  Core& At(CoreId id) {
    return cores_[static_cast<size_t>(id.cluster * cores_in_cluster_ + id.core)];
  }
  bool IsMemoryCore(CoreId id) const { return id.core == cores_in_cluster_ - 1; }
  int64_t SizeOf(isa::Space space) const;
  absl::Status CheckPath(CoreId id, const isa::Instruction& instruction,
                         absl::Span<const isa::ByteRanges> ranges) const;
  absl::Status CheckBounds(const isa::ByteRanges& ranges) const;
  absl::Status CheckPending(const Core& core, const isa::Instruction& instruction,
                            const isa::ByteRanges& ranges) const;
  absl::Status CheckShared(const Core& core, const isa::ByteRanges& ranges) const;
  absl::Status CheckDefined(Core& core, const isa::Instruction& instruction,
                            isa::OperandValues values, absl::Span<const isa::ByteRanges> ranges);
  absl::Status HazardError(const isa::ByteRanges& ranges, int64_t byte, bool other_writes,
                           CoreId other, int64_t other_pc, std::string_view missing) const;
  IntervalSet& Defined(Core& core, isa::Space space);
  static void AddPending(std::vector<Pending>& list, const isa::ByteRanges& ranges, int64_t pc);

  const isa::InstructionSet& set_;
  const int cores_in_cluster_;  // with the memory core
  const Options options_;
  const int64_t nmem_bytes_, wmem_bytes_, smem_bytes_;
  const std::vector<GmemRegion> gmem_;
  const std::function<std::string(int64_t)> describe_;
  std::vector<Core> cores_;
  std::vector<IntervalSet> smem_defined_;  // by cluster
  IntervalSet gmem_defined_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_ACCESS_CHECKER_H_
