#include "simulator/scalar_unit.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "isa/program.h"

namespace polynao::simulator {
namespace {

// The number of scalar instructions that run ahead of simulated time, so that an endless loop does not stop
// the other cores.
constexpr int kQuantum = 4096;

bool TouchesMemory(const isa::Instruction& instruction) {
  return std::any_of(
      instruction.operands.begin(), instruction.operands.end(),
      [](const auto& operand) { return operand.kind == isa::OperandKind::kAddress; });
}

}  // namespace

ScalarUnit::ScalarUnit(sc_core::sc_module_name name, Context& context, AccessChecker::CoreId id,
                       const Wiring& wiring, CoreReport& report, int32_t report_index)
    : sc_core::sc_module(name),
      context_(context),
      id_(id),
      wiring_(wiring),
      report_(report),
      report_index_(report_index),
      issue_(context.machine.Get("scalar.issue")),
      smem_latency_(context.machine.Get("smem.latency")),
      dependent_(context.machine.Get("scalar.dependent")),
      wake_([this] { Run(); }) {
  const isa::Machine& machine = context.machine;
  args_.resize(isa::kFirstParam);
  args_[isa::kCoreId] = id.core;
  args_[isa::kClusterId] = id.cluster;
  args_[isa::kCoresPerCluster] = machine.cores_per_cluster();
  args_[isa::kClusters] = machine.clusters();
  args_[isa::kIsMemoryCore] = id.core == machine.cores_per_cluster() ? 1 : 0;
  args_[isa::kNmemBytes] = machine.nmem_bytes();
  args_[isa::kSmemBytes] = machine.smem_bytes();
  args_[isa::kWmemBytes] = machine.wmem_bytes();
  args_.insert(args_.end(), context.params.begin(), context.params.end());
  wiring_.machine.args = args_;
  wiring_.machine.pc = &next_pc_;
  wake_.NotifyAt(0);
}

void ScalarUnit::Run() {
  switch (state_) {
    case State::kRunning:
      RunFrom(Now());
      return;
    case State::kFailing:
      context_.Fail(id_, pc_, status_);
      return;
    case State::kQueueFull: {
      const size_t q = static_cast<size_t>(wait_queue_);
      if (!wiring_.queues[q]->HasRoom()) return;
      EndWait(report_.queue_full[q], Slice::Kind::kQueueFull, Now());
      RunFrom(Now());
      return;
    }
    case State::kAccess:
      FinishAccess();
      return;
    case State::kCompletion:
    case State::kDrain:
    case State::kBarrier:
    case State::kHalted:
      return;
  }
}

void ScalarUnit::OnProgress(isa::Queue queue) {
  switch (state_) {
    case State::kQueueFull:
      if (queue == wait_queue_ && wiring_.queues[static_cast<size_t>(queue)]->started_now()) {
        wake_.NotifyAt(Now() + 1);
      }
      return;
    case State::kCompletion:
      if (queue != wait_queue_ || !wiring_.queues[static_cast<size_t>(queue)]->idle()) return;
      context_.checker->Drain(id_, queue);
      EndWait(report_.completion_wait, Slice::Kind::kWait, Now());
      ++pc_;
      wake_.NotifyAt(Now());
      return;
    case State::kDrain:
      Synchronize(*context_.code[static_cast<size_t>(pc_)]->instruction);
      return;
    case State::kRunning:
    case State::kFailing:
    case State::kBarrier:
    case State::kAccess:
    case State::kHalted:
      return;
  }
}

void ScalarUnit::OnRelease(int64_t time) {
  EndWait(report_.barrier_wait, Slice::Kind::kBarrier, time);
  ++pc_;
  wake_.NotifyAt(time);
}

void ScalarUnit::EndWait(int64_t& counter, Slice::Kind kind, int64_t time) {
  counter += time - wait_from_;
  context_.Trace({.core = report_index_,
                  .unit = isa::Unit::kScalar,
                  .kind = kind,
                  .pc = static_cast<int32_t>(pc_),
                  .begin = wait_from_,
                  .end = time});
  state_ = State::kRunning;
  scalar_from_ = time;
  Profile(std::nullopt, time);
  // A wake-up that was meant for the wait would let the unit go on before its time: another instruction of the queue
  // may have started in the very cycle in which a full queue's wait ends.
  wake_.Cancel();
}

void ScalarUnit::CloseScalarSlice(int64_t time) {
  context_.Trace({.core = report_index_,
                  .unit = isa::Unit::kScalar,
                  .kind = Slice::Kind::kScalar,
                  .pc = static_cast<int32_t>(pc_),
                  .begin = scalar_from_,
                  .end = time});
  scalar_from_ = time;
}

void ScalarUnit::Wait(State state) {
  CloseScalarSlice(Now());
  state_ = state;
  wait_from_ = Now();
  Profile(state == State::kBarrier ? CycleClasses::kAtBarrier : CycleClasses::kWaiting, Now());
}

void ScalarUnit::Profile(std::optional<CycleClasses::Activity> activity, int64_t time) {
  if (context_.profile == nullptr) return;
  if (profiled_) context_.profile->Change(report_index_, *profiled_, -1, time);
  if (activity) context_.profile->Change(report_index_, *activity, 1, time);
  profiled_ = activity;
}

void ScalarUnit::Fail(const absl::Status& status, int64_t time) {
  state_ = State::kFailing;
  status_ = status;
  wake_.NotifyAt(time);
}

void ScalarUnit::Halt(int64_t time) {
  CloseScalarSlice(time);
  state_ = State::kHalted;
  Profile(CycleClasses::kHalted, time);
  report_.halted_at = time;
  context_.last_activity = std::max(context_.last_activity, time);
}

absl::Status ScalarUnit::Resolve(const isa::InstructionSet::Decoded& decoded) {
  const isa::Instruction& instruction = *decoded.instruction;
  values_.resize(instruction.operands.size());
  for (size_t i = 0; i < values_.size(); ++i) {
    switch (instruction.operands[i].kind) {
      case isa::OperandKind::kWritten:
        values_[i] = 0;
        break;
      case isa::OperandKind::kImmediate:
        values_[i] = decoded.fields[i];
        break;
      case isa::OperandKind::kValue:
      case isa::OperandKind::kAddress:
        values_[i] = registers_[static_cast<size_t>(decoded.fields[i])];
        break;
    }
  }
  return context_.set.CheckConstraints(instruction, values_);
}

int64_t ScalarUnit::ReadableFrom(const isa::InstructionSet::Decoded& decoded) const {
  int64_t from = 0;
  for (size_t i = 0; i < decoded.instruction->operands.size(); ++i) {
    const isa::OperandKind kind = decoded.instruction->operands[i].kind;
    if (kind != isa::OperandKind::kValue && kind != isa::OperandKind::kAddress) continue;
    from = std::max(from, readable_[static_cast<size_t>(decoded.fields[i])]);
  }
  return from;
}

void ScalarUnit::WriteRegisters(int64_t pc, absl::Span<const int64_t> written, int64_t time) {
  const isa::InstructionSet::Decoded& decoded = *context_.code[static_cast<size_t>(pc)];
  for (size_t i = 0; i < written.size(); ++i) {
    if (decoded.instruction->operands[i].kind == isa::OperandKind::kWritten) {
      registers_[static_cast<size_t>(decoded.fields[i])] = written[i];
      readable_[static_cast<size_t>(decoded.fields[i])] = time + dependent_;
    }
  }
}

void ScalarUnit::RunFrom(int64_t time) {
  const int64_t size = static_cast<int64_t>(context_.code.size());
  for (int steps = 0;; ++steps) {
    if (pc_ < 0 || pc_ >= size) {
      return Fail(InvalidInput("pc is outside of the program, which has ", size, " instructions"),
                  time);
    }
    const auto& decoded = context_.code[static_cast<size_t>(pc_)];
    if (!decoded) return Fail(InvalidInput("the word is no instruction"), time);
    const isa::Instruction& instruction = *decoded->instruction;
    if (dependent_ > 0) {
      const int64_t readable = ReadableFrom(*decoded);
      if (readable > time) {
        report_.dependent_wait += readable - time;
        time = readable;
      }
    }
    const bool seen_by_others =
        instruction.unit != isa::Unit::kScalar || TouchesMemory(instruction);
    if ((seen_by_others || steps >= kQuantum) && time > Now()) {
      wake_.NotifyAt(time);
      return;
    }
    if (absl::Status status = Resolve(*decoded); !status.ok()) return Fail(status, time);
    switch (instruction.unit) {
      case isa::Unit::kScalar:
        if (!RunScalar(instruction, time)) return;
        break;
      case isa::Unit::kControl:
        ++report(isa::Unit::kControl).instructions;
        Wait(State::kDrain);
        Synchronize(instruction);
        return;
      case isa::Unit::kVector:
      case isa::Unit::kTensor:
      case isa::Unit::kIoDma:
      case isa::Unit::kMoveDma:
        if (!Push(instruction, time)) return;
        break;
    }
  }
}

bool ScalarUnit::RunScalar(const isa::Instruction& instruction, int64_t& time) {
  if (TouchesMemory(instruction)) {
    StartAccess(instruction);
    return false;
  }
  int64_t cost = context_.fixed_costs[static_cast<size_t>(pc_)];
  if (cost < 0) {
    const absl::StatusOr<int64_t> computed =
        context_.set.Cost(instruction, values_, context_.parameters);
    if (!computed.ok()) {
      Fail(computed.status(), time);
      return false;
    }
    cost = *computed;
  }
  const int64_t begin = time;
  time += std::max<int64_t>(1, cost);
  return ExecuteScalar(instruction, begin, time);
}

bool ScalarUnit::ExecuteScalar(const isa::Instruction& instruction, int64_t begin, int64_t end) {
  next_pc_ = pc_ + 1;
  written_.assign(values_.size(), 0);
  const absl::Status status =
      context_.set.Execute(instruction, values_, wiring_.machine, absl::MakeSpan(written_));
  if (!status.ok()) {
    Fail(status, begin);
    return false;
  }
  WriteRegisters(pc_, written_, end);
  ++report(isa::Unit::kScalar).instructions;
  report(isa::Unit::kScalar).busy += end - begin;
  if (next_pc_ < 0) {
    Halt(end);
    return false;
  }
  pc_ = next_pc_;
  return true;
}

void ScalarUnit::StartAccess(const isa::Instruction& instruction) {
  const absl::StatusOr<int64_t> cost = context_.set.Cost(instruction, values_, context_.parameters);
  if (!cost.ok()) return Fail(cost.status(), Now());
  const std::vector<isa::ByteRanges> ranges = context_.set.Footprint(instruction, values_);
  if (absl::Status status = context_.checker->Issue(id_, instruction, pc_, values_, ranges);
      !status.ok()) {
    return Fail(status, Now());
  }
  POLYNAO_CHECK(ranges.size() == 1) << instruction.mnemonic << " accesses one place";
  access_space_ = ranges[0].space;
  access_is_store_ = ranges[0].is_write;
  access_.owner = this;
  access_.address = ranges[0].begin;
  access_.payload = ranges[0].byte_count();
  access_.stage = 0;
  state_ = State::kAccess;
  wait_from_ = Now();
  const int64_t time = Now() + std::max<int64_t>(1, *cost);
  switch (access_space_) {
    case isa::Space::kNmem:
    case isa::Space::kWmem:
      wake_.NotifyAt(time);
      return;
    case isa::Space::kSmem:
      access_.moved = wiring_.smem->MovedBytes(access_.address, access_.payload);
      wiring_.smem->Push(id_.core, Smem::Use::kScalar, access_, access_.moved,
                         time + (access_is_store_ ? smem_latency_ : 0));
      return;
    case isa::Space::kGmem:
      access_.is_write = access_is_store_;
      access_.is_cached = false;
      access_.moved = wiring_.gmem->MovedBytes(access_.address, access_.payload, access_is_store_);
      wiring_.gmem->Count(access_);
      if (access_is_store_) {
        wiring_.link->up.Push(ClusterLink::ScalarRequester(id_.core), access_, access_.payload,
                              time);
      } else {
        PushToChannel(time);
      }
      return;
  }
}

void ScalarUnit::PushToChannel(int64_t time) {
  const int card_core =
      id_.cluster * (static_cast<int>(context_.machine.cores_per_cluster()) + 1) + id_.core;
  wiring_.gmem->channel(wiring_.gmem->ChannelOf(access_.address))
      .Push(Gmem::ScalarRequester(card_core), access_, access_.moved, time);
}

void ScalarUnit::Advance(Burst& burst, int64_t time) {
  ++burst.stage;
  if (access_space_ == isa::Space::kSmem) {
    wake_.NotifyAt(time + (access_is_store_ ? 0 : smem_latency_));
    return;
  }
  if (burst.stage == 2) {
    wake_.NotifyAt(time);
    return;
  }
  const int64_t later = time + wiring_.gmem->LatencyOf(burst);
  if (access_is_store_) {
    PushToChannel(later);
  } else {
    const int channel = wiring_.gmem->ChannelOf(burst.address);
    wiring_.link->down.Push(ClusterLink::DownRequester(channel, burst.is_cached), burst,
                            burst.payload, later);
  }
}

void ScalarUnit::FinishAccess() {
  state_ = State::kRunning;
  if (access_is_store_ && access_space_ == isa::Space::kGmem) {
    context_.last_gmem_write = std::max(context_.last_gmem_write, Now());
  }
  const isa::Instruction& instruction = *context_.code[static_cast<size_t>(pc_)]->instruction;
  // Other scalar code touches registers alone; the instructions are counted.
  context_.set.CountActions(instruction, values_, &context_.result->actions);
  if (ExecuteScalar(instruction, wait_from_, Now())) RunFrom(Now());
}

bool ScalarUnit::Push(const isa::Instruction& instruction, int64_t& time) {
  InstructionQueue* queue = wiring_.queues[static_cast<size_t>(instruction.queue)];
  if (queue != nullptr && !queue->HasRoom()) {
    wait_queue_ = instruction.queue;
    Wait(State::kQueueFull);
    if (queue->started_now()) wake_.NotifyAt(Now() + 1);
    return false;
  }
  const absl::StatusOr<int64_t> cost = context_.set.Cost(instruction, values_, context_.parameters);
  if (!cost.ok()) {
    Fail(cost.status(), time);
    return false;
  }
  Issued issued;
  issued.ranges = context_.set.Footprint(instruction, values_);
  if (absl::Status status = context_.checker->Issue(id_, instruction, pc_, values_, issued.ranges);
      !status.ok()) {
    Fail(status, time);
    return false;
  }
  POLYNAO_CHECK(queue != nullptr) << instruction.mnemonic;
  issued.instruction = &instruction;
  issued.pc = pc_;
  issued.values = values_;
  issued.cost = *cost;
  issued.ready = Now() + issue_;
  queue->Push(std::move(issued));
  report(isa::Unit::kScalar).busy += issue_;
  time = Now() + issue_;
  if (instruction.waits) {
    wait_queue_ = instruction.queue;
    Wait(State::kCompletion);
    return false;
  }
  ++pc_;
  return true;
}

void ScalarUnit::Synchronize(const isa::Instruction& instruction) {
  for (isa::Queue queue : instruction.drains) {
    const InstructionQueue* each = wiring_.queues[static_cast<size_t>(queue)];
    if (each != nullptr && !each->idle()) return;
  }
  for (isa::Queue queue : instruction.drains) context_.checker->Drain(id_, queue);
  // A row without operands: its cost depends on the machine alone.
  const absl::StatusOr<int64_t> cost = context_.set.Cost(instruction, values_, context_.parameters);
  if (!cost.ok()) return Fail(cost.status(), Now());
  switch (instruction.barrier) {
    case isa::Instruction::Barrier::kNone: {
      const int64_t time = Now() + *cost;
      EndWait(report_.sync_wait, Slice::Kind::kSync, time);
      ++pc_;
      wake_.NotifyAt(time);
      return;
    }
    case isa::Instruction::Barrier::kCluster:
    case isa::Instruction::Barrier::kGlobal:
      if (Now() > wait_from_) EndWait(report_.sync_wait, Slice::Kind::kSync, Now());
      Wait(State::kBarrier);
      (instruction.barrier == isa::Instruction::Barrier::kCluster ? wiring_.cluster_barrier
                                                                  : wiring_.global_barrier)
          ->Arrive(*this, *cost);
      return;
  }
}

std::string ScalarUnit::Describe() const {
  switch (state_) {
    case State::kHalted:
      return absl::StrCat("halted in cycle ", report_.halted_at);
    case State::kBarrier:
      return absl::StrCat("waits since cycle ", wait_from_, " at pc ", pc_, " \"",
                          isa::DisassembleWord(context_.set, context_.program, pc_), "\"");
    case State::kQueueFull:
    case State::kCompletion:
    case State::kDrain:
    case State::kRunning:
    case State::kAccess:
    case State::kFailing:
      break;
  }
  return absl::StrCat("is at pc ", pc_);
}

}  // namespace polynao::simulator
