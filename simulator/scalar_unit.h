// The scalar unit of a core: executes scalar code and issues everything else.
#ifndef SIMULATOR_SCALAR_UNIT_H_
#define SIMULATOR_SCALAR_UNIT_H_

#include <array>
#include <cstdint>
#include <string>
#include <systemc>
#include <vector>

#include "isa/instruction_set.h"
#include "simulator/barrier.h"
#include "simulator/burst.h"
#include "simulator/clock.h"
#include "simulator/context.h"
#include "simulator/gmem.h"
#include "simulator/link.h"
#include "simulator/queue.h"
#include "simulator/smem.h"

namespace polynao::simulator {

// Executes one instruction at a time, in program order. Code that only touches registers runs ahead of
// simulated time, since nothing outside the unit can see it. The unit waits for the time to catch up
// before anything that others can see: a push, a sync, an access to memory, an error.
//
// A scalar access takes the instruction's cost; one to SMEM or GMEM then competes for the ports on
// the way as a burst of its own. The unit goes on when it is done.
class ScalarUnit : public sc_core::sc_module, public BarrierMember, public BurstOwner {
 public:
  struct Wiring {
    std::array<InstructionQueue*, isa::kQueueCount> queues{};
    Barrier* cluster_barrier = nullptr;
    Barrier* global_barrier = nullptr;
    Gmem* gmem = nullptr;
    ClusterLink* link = nullptr;
    Smem* smem = nullptr;
    // The core's memories; null where it has none.
    isa::InstructionSet::CoreView machine;
  };
  ScalarUnit(sc_core::sc_module_name name, Context& context, AccessChecker::CoreId id,
             const Wiring& wiring, CoreReport& report, int32_t report_index);

  // From the core: something happened in a queue.
  void OnProgress(isa::Queue queue);
  // Sets the registers that the instruction at `pc`, which ends in cycle `time`, writes.
  void WriteRegisters(int64_t pc, absl::Span<const int64_t> written, int64_t time);
  void OnRelease(int64_t time) override;
  void Advance(Burst& burst, int64_t time) override;

  bool halted() const { return state_ == State::kHalted; }
  // Says what this core waits for, for reports of a deadlock: "waits at a cluster barrier at pc 7".
  std::string Describe() const;
  const isa::InstructionSet::CoreView& machine() const { return wiring_.machine; }

 private:
  enum class State {
    kRunning,
    kFailing,     // reports status_ when the time has caught up
    kQueueFull,   // for room in wait_queue_
    kCompletion,  // for wait_queue_ to complete the instruction just pushed
    kDrain,       // for the queues that the instruction at pc_ drains
    kBarrier,
    kAccess,  // for a scalar access to memory
    kHalted,
  };

  void Run();
  // Executes from pc_ on, until something makes it wait or `time` runs too far ahead.
  void RunFrom(int64_t time);
  // These return whether to go on at once, and advance `time`.
  bool RunScalar(const isa::Instruction& instruction, int64_t& time);
  void StartAccess(const isa::Instruction& instruction);
  void FinishAccess();
  void PushToChannel(int64_t time);
  // Executes a scalar instruction; false if that failed or halted the core.
  bool ExecuteScalar(const isa::Instruction& instruction, int64_t begin, int64_t end);
  bool Push(const isa::Instruction& instruction, int64_t& time);
  void Synchronize(const isa::Instruction& instruction);
  void Fail(const absl::Status& status, int64_t time);
  void Halt(int64_t time);
  void Wait(State state);
  // The wait ends in cycle `time`; the unit runs on from then.
  void EndWait(int64_t& counter, Slice::Kind kind, int64_t time);
  // Tells the profile, if there is one, what the core does from cycle `time` on; none: scalar code.
  void Profile(std::optional<CycleClasses::Activity> activity, int64_t time);
  absl::Status Resolve(const isa::InstructionSet::Decoded& decoded);
  // The cycle from which on all registers that the instruction reads can be read.
  int64_t ReadableFrom(const isa::InstructionSet::Decoded& decoded) const;
  void CloseScalarSlice(int64_t time);
  UnitReport& report(isa::Unit unit) { return report_.units[static_cast<size_t>(unit)]; }

  Context& context_;
  const AccessChecker::CoreId id_;
  Wiring wiring_;
  CoreReport& report_;
  const int32_t report_index_;
  std::vector<int64_t> args_;
  std::array<int64_t, isa::kRegisterCount> registers_{};
  const int64_t issue_, smem_latency_;
  const int64_t dependent_;  // cycles from the end of an instruction until its result can be read
  std::array<int64_t, isa::kRegisterCount> readable_{};  // cycles
  int64_t pc_ = 0;
  int64_t next_pc_ = 0;
  State state_ = State::kRunning;
  int64_t wait_from_ = 0;
  isa::Queue wait_queue_ = isa::Queue::kNone;
  int64_t scalar_from_ = 0;  // start of the scalar code since the last wait, for traces
  absl::Status status_;
  Values values_;
  std::vector<int64_t> written_;
  Burst access_;  // the scalar access under way
  bool access_is_store_ = false;
  isa::Space access_space_ = isa::Space::kNmem;
  std::optional<CycleClasses::Activity> profiled_;  // what the profile was told last
  Timer wake_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_SCALAR_UNIT_H_
