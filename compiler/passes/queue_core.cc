#include "compiler/passes/queue_core.h"

#include <algorithm>
#include <cstring>

#include "absl/hash/hash.h"
#include "base/check.h"
#include "base/math.h"
#include "base/status.h"

namespace polynao::queue_interpreter {
namespace {

using ir::Buffer;
using isa::Instruction;
using Timing = QueueSchedule::Timing;
using RawArgument = ir::Interpreter::RawArgument;

int64_t Aligned(int64_t bytes) { return RoundUp(bytes, kOnChipAlignment); }

// Calls visit(first byte, size) for the runs of bytes that the instruction accesses, or only those that it
// writes.
template <typename Visit>
void ForEachRun(const Queued& queued, const Memories& memories, bool only_writes,
                const Visit& visit) {
  for (const isa::ByteRanges& ranges : queued.accesses) {
    if (only_writes && !ranges.is_write) continue;
    uint8_t* const memory = memories[ranges.space].data();
    ranges.ForEachRun([&](int64_t begin, int64_t size) { visit(memory + begin, size); });
  }
}

}  // namespace

void Garbage::Fill(uint8_t* begin, int64_t size) {
  for (int64_t i = 0; i < size; i += 8) {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    std::memcpy(begin + i, &z, static_cast<size_t>(std::min<int64_t>(8, size - i)));
  }
}

void Layout::Put(Buffer buffer, isa::Space space, int64_t begin, int64_t size) {
  places[buffer.node()] = {space, begin};
  int64_t& end = bytes[static_cast<int>(space)];
  end = std::max(end, begin + size);
}

void Layout::PutBehind(Buffer buffer, isa::Space space, int64_t size) {
  Put(buffer, space, Aligned(bytes[static_cast<int>(space)]), size);
}

// ---- instructions

Executor::Executor(const isa::InstructionSet& set, const Memories& memories, Garbage& garbage,
                   std::vector<QueueRecord::Step>& record)
    : set_(set), memories_(memories), garbage_(garbage), record_(record) {
  for (int space = 0; space < isa::kSpaceCount; ++space) {
    machine_.memory[space] = memories.of[space]->data();
    machine_.size[space] = static_cast<int64_t>(memories.of[space]->size());
  }
}

absl::Status Executor::Execute(const Queued& queued) {
  size_t hash = 0;
  ForEachRun(queued, memories_, false, [&](const uint8_t* at, int64_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(at), static_cast<size_t>(size));
    hash = absl::HashOf(hash, bytes);
  });
  record_[queued.step] = {queued.instruction, hash};
  std::vector<int64_t> written(queued.values.size());
  return set_.Execute(*queued.instruction, queued.values, machine_, absl::MakeSpan(written));
}

absl::Status Executor::Start(Queued& queued, bool reads) {
  if (reads) RETURN_IF_ERROR(Execute(queued));
  ForEachRun(queued, memories_, true, [&](uint8_t* at, int64_t size) {
    queued.kept.insert(queued.kept.end(), at, at + size);
  });
  ForEachRun(queued, memories_, true, [&](uint8_t* at, int64_t size) { garbage_.Fill(at, size); });
  queued.has_started = true;
  queued.has_read = reads;
  return absl::OkStatus();
}

absl::Status Executor::End(Queued& queued) {
  if (!queued.has_started) return Execute(queued);
  const uint8_t* from = queued.kept.data();
  ForEachRun(queued, memories_, true, [&](uint8_t* at, int64_t size) {
    std::memcpy(at, from, static_cast<size_t>(size));
    from += size;
  });
  return queued.has_read ? absl::OkStatus() : Execute(queued);
}

// ---- turns

absl::Status Core::Prepare(ir::Function program) {
  program_ = std::move(program);
  ASSIGN_OR_RETURN(interpreter_, ir::Interpreter::Create(
                                     program_, {.intrinsics = &set_.intrinsics(), .device = this}));
  return absl::OkStatus();
}

void Core::Start(const QueueSchedule& schedule, Garbage& garbage, std::mt19937_64& random,
                 const std::vector<RawArgument>& arguments,
                 std::vector<QueueRecord::Step>& record) {
  schedule_ = &schedule;
  random_ = &random;
  record_ = &record;
  executor_.emplace(set_, memories_, garbage, record);
  for (std::deque<Queued>& queue : queues_) queue.clear();
  barrier_ = Instruction::Barrier::kNone;
  state_ = State::kReady;
  waits_ = {};
  arguments_ = &arguments;
  has_begun_ = false;
  is_at_end_ = false;
}

absl::Status Core::TakeTurn() {
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

absl::Status Core::AdvanceAtRandom(const Queues& which) {
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

absl::Status Core::AdvanceAtRandom() {
  Queues all;
  all.fill(true);
  return AdvanceAtRandom(all);
}

void Core::OpenBarrier() {
  barrier_ = Instruction::Barrier::kNone;
  state_ = State::kReady;
}

// ---- what the program hands over

absl::StatusOr<bool> Core::Call(std::string_view name, absl::Span<const RawArgument> arguments) {
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

absl::StatusOr<uint8_t*> Core::Allocate(const ir::BufferNode& buffer) {
  const auto& [space, begin] = layout_.places.at(&buffer);
  return memories_[space].data() + begin;
}

bool Core::IsPending(const Queues& which) const {
  for (int q = 0; q < isa::kQueueCount; ++q) {
    if (which[q] && !queues_[q].empty()) return true;
  }
  return false;
}

bool Core::GoesOn() {
  if (IsPending(waits_) || barrier_ != Instruction::Barrier::kNone) {
    state_ = State::kWaiting;
    return false;
  }
  waits_ = {};
  return schedule_->seed == 0 || OneIn(2);
}

absl::StatusOr<Queued> Core::Resolve(const Instruction& instruction,
                                     absl::Span<const RawArgument> arguments) {
  Queued queued = {
      .instruction = &instruction, .values = {}, .accesses = {}, .step = record_->size()};
  record_->push_back({&instruction, 0});
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
      return InvalidInput("operand '", instruction.operands[ranges.operand].name, "' takes bytes ",
                          ranges.begin, " to ", ranges.end(), " of ", size, " of ",
                          isa::SpaceName(ranges.space));
    }
    queued.accesses.push_back(std::move(ranges));
  }
  return queued;
}

absl::Status Core::Issue(Queued queued, int q) {
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

absl::Status Core::EndFirst(int q) {
  RETURN_IF_ERROR(executor_->End(queues_[q].front()));
  queues_[q].pop_front();
  return absl::OkStatus();
}

absl::Status Core::Drain(const Queues& which) {
  // What is late comes before the end of what is in flight, so that it meets its garbage.
  bool ends_in_flight = false;
  for (int q = 0; q < isa::kQueueCount; ++q) {
    ends_in_flight = ends_in_flight ||
                     (which[q] && !queues_[q].empty() && schedule_->queues[q] == Timing::kInFlight);
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

}  // namespace polynao::queue_interpreter
