#include "compiler/passes/queue_interpreter.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "base/status.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/device.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/core_program.h"
#include "compiler/passes/storage.h"
#include "isa/levels.h"

namespace polynao {
namespace {

using ir::Buffer;
using ir::Stmt;
using ir::StmtKind;
using isa::Instruction;
using Timing = QueueSchedule::Timing;
using RawArgument = ir::Interpreter::RawArgument;

constexpr int64_t kAlignment = 128;

int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Garbage for memory, from a fast generator (splitmix64).
class Garbage {
 public:
  explicit Garbage(uint64_t seed) : state_(seed) {}
  void Fill(uint8_t* begin, int64_t size) {
    for (int64_t i = 0; i < size; i += 8) {
      uint64_t z = state_ += 0x9e3779b97f4a7c15;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      z ^= z >> 31;
      std::memcpy(begin + i, &z, static_cast<size_t>(std::min<int64_t>(8, size - i)));
    }
  }

 private:
  uint64_t state_;
};

using Bytes = std::vector<uint8_t>;

// The memories that one core sees.
struct Memories {
  Bytes* of[isa::kSpaceCount] = {};
  Bytes& operator[](isa::Space space) const { return *of[static_cast<int>(space)]; }
};

// An instruction in a queue, with the values that its operands had when it was issued.
struct Queued {
  const Instruction* instruction;
  std::vector<int64_t> values;
  std::vector<isa::ByteRanges> writes;
  // What was there before it started (if it has not read yet), or its results.
  bool has_started = false;
  bool has_read = false;
  Bytes kept = {};
};

// Executes instructions in the memories of a core, at once or in two steps.
class Executor {
 public:
  Executor(const isa::InstructionSet& set, const Memories& memories, Garbage& garbage)
      : set_(set), memories_(memories), garbage_(garbage) {
    for (int space = 0; space < isa::kSpaceCount; ++space) {
      machine_.memory[space] = memories.of[space]->data();
      machine_.size[space] = static_cast<int64_t>(memories.of[space]->size());
    }
  }

  absl::Status Execute(const Queued& queued) {
    std::vector<int64_t> written(queued.values.size());
    return set_.Execute(*queued.instruction, queued.values, machine_, absl::MakeSpan(written));
  }

  // `reads`: its operands are read now, else at the end.
  absl::Status Start(Queued& queued, bool reads) {
    if (reads) RETURN_IF_ERROR(Execute(queued));
    ForEachRun(queued, [&](uint8_t* at, int64_t size) {
      queued.kept.insert(queued.kept.end(), at, at + size);
    });
    ForEachRun(queued, [&](uint8_t* at, int64_t size) { garbage_.Fill(at, size); });
    queued.has_started = true;
    queued.has_read = reads;
    return absl::OkStatus();
  }

  absl::Status End(Queued& queued) {
    if (!queued.has_started) return Execute(queued);
    const uint8_t* from = queued.kept.data();
    ForEachRun(queued, [&](uint8_t* at, int64_t size) {
      std::memcpy(at, from, static_cast<size_t>(size));
      from += size;
    });
    return queued.has_read ? absl::OkStatus() : Execute(queued);
  }

 private:
  template <typename Visit>
  void ForEachRun(const Queued& queued, const Visit& visit) {
    for (const isa::ByteRanges& ranges : queued.writes) {
      uint8_t* const memory = memories_[ranges.space].data();
      ranges.ForEachRun([&](int64_t begin, int64_t size) { visit(memory + begin, size); });
    }
  }

  const isa::InstructionSet& set_;
  const Memories memories_;
  Garbage& garbage_;
  isa::InstructionSet::Machine machine_;
};

// Where allocations lie, by memory, and how large the memories are: they end behind the last one.
struct Layout {
  absl::flat_hash_map<const ir::BufferNode*, std::pair<isa::Space, int64_t>> places;
  std::array<int64_t, isa::kSpaceCount> bytes = {};

  void Put(Buffer buffer, isa::Space space, int64_t begin, int64_t size) {
    places[buffer.node()] = {space, begin};
    int64_t& end = bytes[static_cast<int>(space)];
    end = std::max(end, begin + size);
  }
  void PutBehind(Buffer buffer, isa::Space space, int64_t size) {
    Put(buffer, space, Aligned(bytes[static_cast<int>(space)]), size);
  }
};

int64_t ConstantBytes(Buffer buffer) {
  int64_t bytes = ir::ByteSize(buffer->type);
  for (ir::Expr extent : buffer->extents) {
    if (!extent.Is(ir::ExprKind::kIntImm)) return -1;
    bytes *= std::max<int64_t>(extent.int_value(), 0);
  }
  return bytes;
}

absl::StatusOr<Layout> PlaceAllocations(Stmt body) {
  Layout layout;
  const AddressMap addresses = CollectAddresses(body);
  absl::Status status;
  ir::ForEachStmt(body, [&](Stmt s) {
    if (!s.Is(StmtKind::kAllocate)) return true;
    const Buffer buffer = s.buffer();
    const std::optional<isa::Space> space = isa::ParseSpace(buffer->scope);
    const int64_t bytes = ConstantBytes(buffer);
    if (!IsOnChip(buffer->scope) || !space || bytes < 0) {
      status = InvalidInput("'", buffer->name, "' is allocated in '", buffer->scope,
                            "': expected an allocation of constant size in nmem, smem or wmem");
    } else if (auto it = addresses.find(buffer); it != addresses.end()) {
      layout.Put(buffer, *space, it->second, bytes);
    } else {
      layout.PutBehind(buffer, *space, bytes);
    }
    return true;
  });
  RETURN_IF_ERROR(status);
  return layout;
}

// A core or memory core: its program, queues and memories.
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

  absl::Status Prepare(ir::Function program) {
    program_ = std::move(program);
    ASSIGN_OR_RETURN(
        interpreter_,
        ir::Interpreter::Create(program_, {.intrinsics = &set_.intrinsics(), .device = this}));
    return absl::OkStatus();
  }

  CoreId id() const { return id_; }
  State state() const { return state_; }
  Instruction::Barrier barrier() const { return barrier_; }

  void Start(const QueueSchedule& schedule, Garbage& garbage, std::mt19937_64& random,
             const std::vector<RawArgument>& arguments) {
    schedule_ = &schedule;
    random_ = &random;
    executor_.emplace(set_, memories_, garbage);
    for (std::deque<Queued>& queue : queues_) queue.clear();
    barrier_ = Instruction::Barrier::kNone;
    state_ = State::kReady;
    waits_ = {};
    arguments_ = &arguments;
    has_begun_ = false;
    is_at_end_ = false;
  }

  // Runs until the core has to wait; a random schedule may stop it earlier.
  absl::Status TakeTurn() {
    if (state_ == State::kWaiting) {
      if (schedule_->seed != 0 && IsPending(waits_)) return AdvanceAtRandom(waits_);
      RETURN_IF_ERROR(Drain(waits_));
      waits_ = {};
      if (is_at_end_) {
        state_ = State::kDone;
        return absl::OkStatus();
      }
      if (barrier_ != Instruction::Barrier::kNone) {
        state_ = State::kAtBarrier;
        return absl::OkStatus();
      }
      state_ = State::kReady;
    }
    if (has_begun_) {
      RETURN_IF_ERROR(interpreter_->Resume());
    } else {
      has_begun_ = true;
      RETURN_IF_ERROR(interpreter_->RunRaw(*arguments_));
    }
    if (interpreter_->IsSuspended()) return absl::OkStatus();
    is_at_end_ = true;
    waits_.fill(true);
    state_ = State::kWaiting;
    return absl::OkStatus();
  }

  // At random, makes a step in one of the queues `which`.
  absl::Status AdvanceAtRandom(const std::array<bool, isa::kQueueCount>& which) {
    std::vector<int> busy;
    for (int q = 0; q < isa::kQueueCount; ++q) {
      if (which[q] && !queues_[q].empty()) busy.push_back(q);
    }
    if (busy.empty()) return absl::OkStatus();
    const int q = busy[(*random_)() % busy.size()];
    Queued& first = queues_[q].front();
    if (!first.has_started && OneIn(2)) return executor_->Start(first, OneIn(2));
    return EndFirst(q);
  }
  absl::Status AdvanceAtRandom() {
    std::array<bool, isa::kQueueCount> all;
    all.fill(true);
    return AdvanceAtRandom(all);
  }

  void OpenBarrier() {
    barrier_ = Instruction::Barrier::kNone;
    state_ = State::kReady;
  }

  // ---- what the program hands over

  absl::StatusOr<bool> Call(std::string_view name,
                            absl::Span<const RawArgument> arguments) override {
    const Instruction& instruction = *set_.Find(name);
    if (instruction.unit == isa::Unit::kControl) {
      for (isa::Queue queue : instruction.drains) waits_[static_cast<int>(queue)] = true;
      barrier_ = instruction.barrier;
      return GoesOn();
    }
    ASSIGN_OR_RETURN(Queued queued, Resolve(instruction, arguments));
    if (instruction.queue == isa::Queue::kNone) {
      RETURN_IF_ERROR(executor_->Execute(queued));
      return GoesOn();
    }
    const int q = static_cast<int>(instruction.queue);
    RETURN_IF_ERROR(Issue(std::move(queued), q));
    if (instruction.waits) waits_[q] = true;
    return GoesOn();
  }

  absl::StatusOr<uint8_t*> Allocate(const ir::BufferNode& buffer) override {
    const auto& [space, begin] = layout_.places.at(&buffer);
    return memories_[space].data() + begin;
  }

 private:
  bool OneIn(uint64_t n) { return (*random_)() % n == 0; }

  bool IsPending(const std::array<bool, isa::kQueueCount>& which) const {
    for (int q = 0; q < isa::kQueueCount; ++q) {
      if (which[q] && !queues_[q].empty()) return true;
    }
    return false;
  }

  // Whether the program goes on behind this call. Where it has to wait, others get a turn first.
  bool GoesOn() {
    if (IsPending(waits_) || barrier_ != Instruction::Barrier::kNone) {
      state_ = State::kWaiting;
      return false;
    }
    waits_ = {};
    return schedule_->seed == 0 || OneIn(2);
  }

  // Addresses become bytes from the start of their memory, floats their bits.
  absl::StatusOr<Queued> Resolve(const Instruction& instruction,
                                 absl::Span<const RawArgument> arguments) const {
    Queued queued = {.instruction = &instruction, .values = {}, .writes = {}};
    for (const isa::Operand& operand : instruction.operands) {
      const RawArgument& argument = arguments[operand.param];
      int64_t value = argument.int_value;
      if (operand.kind == isa::OperandKind::kAddress) {
        const Bytes& memory = memories_[operand.space];
        value = argument.address - memory.data();
        if (argument.address < memory.data() || value > static_cast<int64_t>(memory.size())) {
          return InvalidInput("operand '", operand.name, "' is not in ",
                              isa::SpaceName(operand.space));
        }
      } else if (ir::IsFloat(operand.type)) {
        value = 0;
        ir::StoreFloat(operand.type, reinterpret_cast<uint8_t*>(&value), argument.float_value);
      }
      queued.values.push_back(value);
    }
    for (isa::ByteRanges& ranges : set_.Footprint(instruction, queued.values)) {
      const int64_t size = static_cast<int64_t>(memories_[ranges.space].size());
      if (ranges.begin < 0 || ranges.end() > size) {
        return InvalidInput("operand '", instruction.operands[ranges.operand].name,
                            "' takes bytes ", ranges.begin, " to ", ranges.end(), " of ", size,
                            " of ", isa::SpaceName(ranges.space));
      }
      if (ranges.is_write) queued.writes.push_back(std::move(ranges));
    }
    return queued;
  }

  absl::Status Issue(Queued queued, int q) {
    if (schedule_->seed != 0) {
      queues_[q].push_back(std::move(queued));
      return absl::OkStatus();
    }
    switch (schedule_->queues[q]) {
      case Timing::kAtOnce:
        return executor_->Execute(queued);
      case Timing::kInFlight:
        while (!queues_[q].empty()) RETURN_IF_ERROR(EndFirst(q));
        queues_[q].push_back(std::move(queued));
        return executor_->Start(queues_[q].front(), true);
      case Timing::kLate:
        queues_[q].push_back(std::move(queued));
        return absl::OkStatus();
    }
    POLYNAO_UNREACHABLE(q);
  }

  absl::Status EndFirst(int q) {
    RETURN_IF_ERROR(executor_->End(queues_[q].front()));
    queues_[q].pop_front();
    return absl::OkStatus();
  }

  absl::Status Drain(const std::array<bool, isa::kQueueCount>& which) {
    // What is late comes before the end of what is in flight, so that it meets its garbage.
    bool ends_in_flight = false;
    for (int q = 0; q < isa::kQueueCount; ++q) {
      ends_in_flight = ends_in_flight || (which[q] && !queues_[q].empty() &&
                                          schedule_->queues[q] == Timing::kInFlight);
    }
    for (const Timing timing : {Timing::kLate, Timing::kInFlight, Timing::kAtOnce}) {
      for (int q = 0; q < isa::kQueueCount; ++q) {
        if (schedule_->queues[q] != timing) continue;
        if (!which[q] && !(timing == Timing::kLate && ends_in_flight)) continue;
        while (!queues_[q].empty()) RETURN_IF_ERROR(EndFirst(q));
      }
    }
    return absl::OkStatus();
  }

  const CoreId id_;
  const isa::InstructionSet& set_;
  const Layout& layout_;
  const Memories memories_;
  ir::Function program_;
  std::unique_ptr<ir::Interpreter> interpreter_;

  const QueueSchedule* schedule_ = nullptr;
  std::mt19937_64* random_ = nullptr;
  const std::vector<RawArgument>* arguments_ = nullptr;
  std::optional<Executor> executor_;
  std::array<std::deque<Queued>, isa::kQueueCount> queues_;
  State state_ = State::kDone;
  bool has_begun_ = false;
  bool is_at_end_ = false;
  std::array<bool, isa::kQueueCount> waits_ = {};  // what it waits for
  Instruction::Barrier barrier_ = Instruction::Barrier::kNone;
};

}  // namespace

std::string QueueSchedule::Name() const {
  if (seed != 0) return StrCat("random with seed ", seed);
  std::string name;
  for (int q = 0; q < isa::kQueueCount; ++q) {
    constexpr std::string_view kNames[] = {"at once", "in flight", "late"};
    StrAppend(&name, q == 0 ? "" : ", ", isa::QueueName(static_cast<isa::Queue>(q)), " ",
              kNames[static_cast<int>(queues[q])]);
  }
  return StrCat(name, memory_core_first ? ", memory core first" : "");
}

std::vector<QueueSchedule> QueueSchedules(int random, uint64_t seed) {
  std::vector<QueueSchedule> schedules;
  const auto add = [&](int q, Timing of_queue, Timing of_others, bool memory_core_first) {
    QueueSchedule schedule = {.memory_core_first = memory_core_first};
    schedule.queues.fill(of_others);
    schedule.queues[q] = of_queue;
    schedules.push_back(schedule);
  };
  for (int q = 0; q < isa::kQueueCount; ++q) {
    add(q, Timing::kInFlight, Timing::kAtOnce, false);
    add(q, Timing::kLate, Timing::kAtOnce, true);
    add(q, Timing::kLate, Timing::kInFlight, false);
  }
  for (const bool memory_core_first : {false, true}) {
    for (const Timing timing : {Timing::kAtOnce, Timing::kInFlight, Timing::kLate}) {
      add(0, timing, timing, memory_core_first);
    }
  }
  for (int i = 0; i < random; ++i) {
    schedules.push_back({.seed = seed * 1000 + static_cast<uint64_t>(i) + 1});
  }
  return schedules;
}

// ---- the card

class QueueInterpreter::Card {
 public:
  Card(const ir::Function& function, const Target& target) : function_(function), target_(target) {}

  absl::Status Prepare() {
    ASSIGN_OR_RETURN(layout_, PlaceAllocations(function_.body));
    bool has_clusters = false;
    ir::ForEachStmt(function_.body, [&](Stmt s) {
      has_clusters = has_clusters || (s.Is(StmtKind::kFor) && s.name() == isa::kClusterAxis &&
                                      s.for_kind() == ir::ForKind::kThread);
      return !has_clusters;
    });
    for (const ir::Param& param : function_.params) {
      if (param.buffer && param.buffer->scope != isa::kGmem && has_clusters) {
        return InvalidInput("parameter '", param.name(), "' is in ", param.buffer->scope,
                            ", of which every cluster has its own");
      }
    }
    const int64_t clusters = target_.machine->clusters();
    smem_.resize(static_cast<size_t>(clusters));
    for (const CoreId id : AllCores(target_)) {
      Bytes* const nmem = &own_.emplace_back();
      Bytes* const wmem = &own_.emplace_back();
      Memories memories;
      memories.of[static_cast<int>(isa::Space::kGmem)] = &gmem_;
      memories.of[static_cast<int>(isa::Space::kSmem)] = &smem_[static_cast<size_t>(id.cluster)];
      memories.of[static_cast<int>(isa::Space::kNmem)] = nmem;
      memories.of[static_cast<int>(isa::Space::kWmem)] = wmem;
      memories_.push_back(memories);
      ir::Function program = CoreProgram(function_, target_, id);
      if (program.body.IsEmpty()) continue;
      cores_.push_back(std::make_unique<Core>(id, *target_.instructions, layout_, memories));
      core_memories_.push_back(memories);
      RETURN_IF_ERROR(cores_.back()->Prepare(std::move(program)));
    }
    return absl::OkStatus();
  }

  absl::Status Run(const std::vector<ir::Argument>& arguments, const QueueSchedule& schedule) {
    if (arguments.size() != function_.params.size()) {
      return InvalidInput("function '", function_.name, "' takes ", function_.params.size(),
                          " arguments, found ", arguments.size());
    }
    Garbage garbage(schedule.seed + 12345);
    std::mt19937_64 random(schedule.seed);
    PlaceArguments(arguments, garbage);
    for (size_t i = 0; i < cores_.size(); ++i) {
      cores_[i]->Start(schedule, garbage, random, raw_[i]);
    }
    RETURN_IF_ERROR(schedule.seed != 0 ? RunAtRandom(random) : TakeTurns(schedule));
    for (size_t p = 0; p < arguments.size(); ++p) {
      if (arguments[p].tensor == nullptr || cores_.empty()) continue;
      Bytes& bytes = arguments[p].tensor->bytes;
      std::memcpy(bytes.data(), raw_[0][p].address, bytes.size());
    }
    return absl::OkStatus();
  }

 private:
  // Fills the memories with garbage and copies the arguments into them.
  void PlaceArguments(const std::vector<ir::Argument>& arguments, Garbage& garbage) {
    Layout layout = layout_;
    for (size_t p = 0; p < arguments.size(); ++p) {
      const Buffer buffer = function_.params[p].buffer;
      if (!buffer) continue;
      POLYNAO_CHECK(arguments[p].tensor != nullptr) << function_.params[p].name();
      layout.PutBehind(buffer, *isa::ParseSpace(buffer->scope),
                       static_cast<int64_t>(arguments[p].tensor->bytes.size()));
    }
    for (const Memories& memories : memories_) {
      for (int space = 0; space < isa::kSpaceCount; ++space) {
        memories.of[space]->resize(static_cast<size_t>(layout.bytes[space]));
      }
    }
    const auto fill = [&](Bytes& bytes) {
      garbage.Fill(bytes.data(), static_cast<int64_t>(bytes.size()));
    };
    for (Bytes& bytes : own_) fill(bytes);
    for (Bytes& bytes : smem_) fill(bytes);
    raw_.clear();
    for (const Memories& memories : core_memories_) {
      std::vector<RawArgument>& raw = raw_.emplace_back(arguments.size());
      for (size_t p = 0; p < arguments.size(); ++p) {
        raw[p].int_value = arguments[p].int_value;
        raw[p].float_value = arguments[p].float_value;
        const Buffer buffer = function_.params[p].buffer;
        if (!buffer) continue;
        const auto& [space, begin] = layout.places.at(buffer.node());
        const Bytes& bytes = arguments[p].tensor->bytes;
        raw[p].address = memories[space].data() + begin;
        if (space == isa::Space::kGmem && raw_.size() > 1) continue;  // all cores see the same
        std::memcpy(raw[p].address, bytes.data(), bytes.size());
      }
    }
  }

  absl::Status TakeTurns(const QueueSchedule& schedule) {
    std::vector<Core*> order;
    for (const auto& core : cores_) order.push_back(core.get());
    if (schedule.memory_core_first) std::reverse(order.begin(), order.end());
    while (true) {
      bool has_run = false;
      for (Core* core : order) {
        if (core->state() != Core::State::kReady && core->state() != Core::State::kWaiting)
          continue;
        has_run = true;
        RETURN_IF_ERROR(core->TakeTurn());
      }
      if (has_run || OpenBarriers()) continue;
      return End();
    }
  }

  absl::Status RunAtRandom(std::mt19937_64& random) {
    while (true) {
      std::vector<Core*> running;
      for (const auto& core : cores_) {
        if (core->state() == Core::State::kReady || core->state() == Core::State::kWaiting) {
          running.push_back(core.get());
        }
      }
      if (running.empty()) {
        if (OpenBarriers()) continue;
        return End();
      }
      Core& core = *running[random() % running.size()];
      RETURN_IF_ERROR(random() % 2 == 0 ? core.AdvanceAtRandom() : core.TakeTurn());
    }
  }

  // Opens the barriers that all their members have reached. Whether there was one.
  bool OpenBarriers() {
    bool opened = false;
    const auto open = [&](Instruction::Barrier barrier, int cluster) {
      int members = 0;
      for (const auto& core : cores_) {
        if (cluster >= 0 && core->id().cluster != cluster) continue;
        if (core->state() != Core::State::kAtBarrier || core->barrier() != barrier) return;
        ++members;
      }
      const int64_t wanted = (target_.machine->cores_per_cluster() + 1) *
                             (cluster >= 0 ? 1 : target_.machine->clusters());
      if (members != wanted) return;
      for (const auto& core : cores_) {
        if (cluster < 0 || core->id().cluster == cluster) core->OpenBarrier();
      }
      opened = true;
    };
    open(Instruction::Barrier::kGlobal, -1);
    for (int64_t cluster = 0; cluster < target_.machine->clusters(); ++cluster) {
      open(Instruction::Barrier::kCluster, static_cast<int>(cluster));
    }
    return opened;
  }

  absl::Status End() const {
    for (const auto& core : cores_) {
      if (core->state() == Core::State::kDone) continue;
      return InvalidInput("core ", core->id().core, " of cluster ", core->id().cluster,
                          " waits at a barrier that not all others reach");
    }
    return absl::OkStatus();
  }

  const ir::Function& function_;
  const Target& target_;
  Layout layout_;
  Bytes gmem_;
  std::vector<Bytes> smem_;  // by cluster
  std::deque<Bytes> own_;    // NMEM and WMEM of every core
  std::vector<Memories> memories_;
  // Cores with a program, and what they see.
  std::vector<std::unique_ptr<Core>> cores_;
  std::vector<Memories> core_memories_;
  std::vector<std::vector<RawArgument>> raw_;
};

QueueInterpreter::QueueInterpreter(std::unique_ptr<Card> card) : card_(std::move(card)) {}
QueueInterpreter::~QueueInterpreter() = default;

absl::StatusOr<std::unique_ptr<QueueInterpreter>> QueueInterpreter::Create(
    const ir::Function& function, const Target& target) {
  if (target.instructions == nullptr || target.machine == nullptr) {
    return InvalidInput("target '", target.name, "' has no instruction queues");
  }
  auto card = std::make_unique<Card>(function, target);
  RETURN_IF_ERROR(card->Prepare());
  return std::unique_ptr<QueueInterpreter>(new QueueInterpreter(std::move(card)));
}

absl::Status QueueInterpreter::Run(const std::vector<ir::Argument>& arguments,
                                   const QueueSchedule& schedule) {
  return card_->Run(arguments, schedule);
}

namespace {

// Arguments of a function. Element values are whole numbers from -8 to 8 (0 to 16 of u8): a NaN or an
// infinity would spread over whole sums and so hide what a missing wait does to them.
struct Arguments {
  std::vector<ir::Argument> scalars;               // one per parameter; unset for tensors
  std::vector<std::optional<ir::Tensor>> tensors;  // one per parameter

  static absl::StatusOr<Arguments> Draw(const ir::Function& function, uint64_t seed) {
    Arguments result;
    std::mt19937_64 random(seed);
    ir::IntValues values;
    for (const ir::Param& param : function.params) {
      ir::Argument& argument = result.scalars.emplace_back();
      if (!param.var) continue;
      const int64_t value = 1 + static_cast<int64_t>(random() % 5);
      argument = ir::IsFloat(param.var.type()) ? ir::Argument::Float(static_cast<double>(value))
                                               : ir::Argument::Int(value);
      if (ir::IsInt(param.var.type())) values[param.var] = value;
    }
    ASSIGN_OR_RETURN(const std::vector<std::vector<int64_t>> shapes,
                     ir::ParameterShapes(function, values));
    size_t next = 0;
    for (const ir::Param& param : function.params) {
      std::optional<ir::Tensor>& tensor = result.tensors.emplace_back();
      if (!param.buffer) continue;
      tensor.emplace(param.buffer->type, shapes[next++]);
      for (int64_t i = 0; i < tensor->element_count(); ++i) {
        const auto value = static_cast<double>(random() % 17);
        tensor->SetValue(i, param.buffer->type == ir::Type::kU8 ? value : value - 8);
      }
    }
    return result;
  }

  std::vector<ir::Argument> Get() {
    std::vector<ir::Argument> arguments = scalars;
    for (size_t p = 0; p < arguments.size(); ++p) {
      if (tensors[p]) arguments[p] = ir::Argument::Of(&*tensors[p]);
    }
    return arguments;
  }
};

}  // namespace

absl::Status CheckQueueOrder(const ir::Function& function, const Target& target, uint64_t seed,
                             int random) {
  ASSIGN_OR_RETURN(const Arguments inputs, Arguments::Draw(function, seed));
  Arguments expected = inputs;
  RETURN_IF_ERROR(ir::Interpret(function, expected.Get(), nullptr,
                                {.intrinsics = &target.instructions->intrinsics()}));
  ASSIGN_OR_RETURN(const std::unique_ptr<QueueInterpreter> interpreter,
                   QueueInterpreter::Create(function, target));
  for (const QueueSchedule& schedule : QueueSchedules(random, seed)) {
    Arguments found = inputs;
    RETURN_IF_ERROR(WithContext(schedule.Name(), interpreter->Run(found.Get(), schedule)));
    for (size_t p = 0; p < function.params.size(); ++p) {
      if (!expected.tensors[p]) continue;
      const ir::Difference difference = ir::Compare(*expected.tensors[p], *found.tensors[p]);
      if (difference.where < 0) continue;
      return absl::InternalError(StrCat(
          schedule.Name(), ": element ", difference.where, " of '", function.params[p].name(),
          "' is ", found.tensors[p]->Value(difference.where), ", in program order ",
          expected.tensors[p]->Value(difference.where), " (seed ", seed, ")"));
    }
  }
  return absl::OkStatus();
}

}  // namespace polynao
