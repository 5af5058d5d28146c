// A core of the card that the queue interpreter runs: its program, its queues and its memories.
#ifndef COMPILER_PASSES_QUEUE_CORE_H_
#define COMPILER_PASSES_QUEUE_CORE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/device.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/core_program.h"
#include "compiler/passes/queue_interpreter.h"
#include "isa/instruction_set.h"
#include "isa/levels.h"

namespace polynao::queue_interpreter {

using Bytes = std::vector<uint8_t>;

// Garbage for memory, from a fast generator (splitmix64).
class Garbage {
 public:
  explicit Garbage(uint64_t seed) : state_(seed) {}
  void Fill(uint8_t* begin, int64_t size);
  void Fill(Bytes& bytes) { Fill(bytes.data(), static_cast<int64_t>(bytes.size())); }

 private:
  uint64_t state_;
};

// The memories that one core sees.
struct Memories {
  Bytes* of[isa::kSpaceCount] = {};
  Bytes& operator[](isa::Space space) const { return *of[static_cast<int>(space)]; }
};

// Where allocations lie, by memory, and how large the memories are: they end behind the last one.
struct Layout {
  absl::flat_hash_map<const ir::BufferNode*, std::pair<isa::Space, int64_t>> places;
  std::array<int64_t, isa::kSpaceCount> bytes = {};

  void Put(ir::Buffer buffer, isa::Space space, int64_t begin, int64_t size);
  void PutBehind(ir::Buffer buffer, isa::Space space, int64_t size);
};

// An instruction in a queue, with the values that its operands had when it was issued.
struct Queued {
  const isa::Instruction* instruction;
  std::vector<int64_t> values;
  std::vector<isa::ByteRanges> accesses;
  size_t step;  // its number in the core's record
  bool has_started = false;
  bool has_read = false;
  // Keeps the bytes that were there before it started (if it has not read yet), or its results.
  Bytes kept = {};
};

// Executes instructions in the memories of a core, at once or in two steps.
class Executor {
 public:
  // Before an instruction reads its operands, it puts a hash of their bytes into its step of `record`.
  Executor(const isa::InstructionSet& set, const Memories& memories, Garbage& garbage,
           std::vector<QueueRecord::Step>& record);

  absl::Status Execute(const Queued& queued);
  // `reads`: its operands are read now, else at the end.
  absl::Status Start(Queued& queued, bool reads);
  absl::Status End(Queued& queued);

 private:
  const isa::InstructionSet& set_;
  const Memories memories_;
  Garbage& garbage_;
  std::vector<QueueRecord::Step>& record_;
  isa::InstructionSet::CoreView machine_;
};

// A core or memory core.
class Core : public ir::Device {
 public:
  enum class State : uint8_t {
    kReady,
    kWaiting,    // for its own queues
    kAtBarrier,  // for other cores
    kDone,
  };

  Core(CoreId id, const isa::InstructionSet& set, const Layout& layout, const Memories& memories)
      : id_(id), set_(set), layout_(layout), memories_(memories) {}

  absl::Status Prepare(ir::Function program);

  CoreId id() const { return id_; }
  const Memories& memories() const { return memories_; }
  State state() const { return state_; }
  isa::Instruction::Barrier barrier() const { return barrier_; }

  // The references must outlive the run.
  void Start(const QueueSchedule& schedule, Garbage& garbage, std::mt19937_64& random,
             const std::vector<ir::Interpreter::RawArgument>& arguments,
             std::vector<QueueRecord::Step>& record);

  // Runs until the core has to wait; a random schedule may stop it earlier.
  absl::Status TakeTurn();
  // At random, makes a step in one of the queues.
  absl::Status AdvanceAtRandom();
  void OpenBarrier();

  // The program hands its calls over here.
  absl::StatusOr<bool> Call(std::string_view name,
                            absl::Span<const ir::Interpreter::RawArgument> arguments) override;
  absl::StatusOr<uint8_t*> Allocate(const ir::BufferNode& buffer) override;

 private:
  using Queues = std::array<bool, isa::kQueueCount>;

  bool OneIn(uint64_t n) { return (*random_)() % n == 0; }
  bool IsPending(const Queues& which) const;
  absl::Status AdvanceAtRandom(const Queues& which);
  // Returns true if the program goes on behind this call. Where it has to wait, others get a turn
  // first.
  bool GoesOn();
  // Addresses become bytes from the start of their memory, floats their bits.
  absl::StatusOr<Queued> Resolve(const isa::Instruction& instruction,
                                 absl::Span<const ir::Interpreter::RawArgument> arguments);
  absl::Status Issue(Queued queued, int q);
  absl::Status EndFirst(int q);
  absl::Status Drain(const Queues& which);

  const CoreId id_;
  const isa::InstructionSet& set_;
  const Layout& layout_;
  const Memories memories_;
  ir::Function program_;
  std::unique_ptr<ir::Interpreter> interpreter_;

  const QueueSchedule* schedule_ = nullptr;
  std::mt19937_64* random_ = nullptr;
  const std::vector<ir::Interpreter::RawArgument>* arguments_ = nullptr;
  std::vector<QueueRecord::Step>* record_ = nullptr;
  std::optional<Executor> executor_;
  std::array<std::deque<Queued>, isa::kQueueCount> queues_;
  State state_ = State::kDone;
  bool has_begun_ = false;
  bool is_at_end_ = false;
  Queues waits_ = {};  // what it waits for
  isa::Instruction::Barrier barrier_ = isa::Instruction::Barrier::kNone;
};

}  // namespace polynao::queue_interpreter

#endif  // COMPILER_PASSES_QUEUE_CORE_H_
