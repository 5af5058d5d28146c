#include "simulator/reference/issue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "simulator/reference/transfer.h"

namespace polynao::simulator::reference {
namespace {

using State = Core::State;

void RecordScalar(Card& card, const Core& core, Span::Kind kind, int64_t pc, int64_t begin,
                  int64_t end) {
  Record(card, {core.index, isa::Unit::kScalar, kind, false, pc, begin, end});
}

// The core waits from this cycle on.
void BeginWait(Card& card, Core& core, State state) {
  RecordScalar(card, core, Span::Kind::kScalarCode, core.pc, core.scalar_code_from, card.cycle);
  core.scalar_code_from = card.cycle;
  core.state = state;
  core.wait_from = card.cycle;
}

// The core goes on in cycle `end`.
void EndWait(Card& card, Core& core, Span::Kind kind, int64_t pc, int64_t& counter, int64_t end) {
  counter += end - core.wait_from;
  RecordScalar(card, core, kind, pc, core.wait_from, end);
  core.state = State::kRunning;
  core.free_at = end;
  core.scalar_code_from = end;
}

const isa::InstructionSet::Decoded& At(const Card& card, int64_t pc) {
  return *card.code[static_cast<size_t>(pc)];
}

absl::StatusOr<int64_t> CostOf(const Card& card, const isa::Instruction& instruction,
                               const std::vector<int64_t>& operands) {
  return card.set->Cost(instruction, operands, card.cost_parameters);
}

void CountIssue(Card& card, int64_t pc) { ++card.report.issued[static_cast<size_t>(pc)]; }

UnitCounts& CountsOf(Core& core, isa::Unit unit) {
  return core.counts.units[static_cast<size_t>(unit)];
}

absl::Status CheckMemoryCore(const Core& core, const isa::Instruction& instruction) {
  if (!core.is_memory_core) return absl::OkStatus();
  if (instruction.queue == isa::Queue::kCompute) {
    return InvalidInput("the memory core has no ", std::string(isa::UnitName(instruction.unit)),
                        " unit");
  }
  for (const isa::Operand& operand : instruction.operands) {
    if (operand.kind != isa::OperandKind::kAddress) continue;
    if (operand.space == isa::Space::kNmem || operand.space == isa::Space::kWmem) {
      return InvalidInput("the memory core has no ", std::string(isa::SpaceName(operand.space)));
    }
  }
  return absl::OkStatus();
}

// Sends a scalar access on its way. The instruction is executed when it is done.
absl::Status BeginAccess(Card& card, Core& core, const isa::Instruction& instruction,
                         const std::vector<int64_t>& operands, int64_t cost) {
  RETURN_IF_ERROR(CheckMemoryCore(core, instruction));
  const std::vector<isa::ByteRanges> ranges = card.set->Footprint(instruction, operands);
  const isa::ByteRanges& access = ranges.at(0);
  core.state = State::kAccess;
  core.wait_from = card.cycle;
  core.access_done = false;
  if (access.space == isa::Space::kNmem) {
    core.access_done = true;
    core.free_at = card.cycle + cost;
    return absl::OkStatus();
  }
  SetOut(card, ScalarBurst(card.parameters, core, access, cost));
  return absl::OkStatus();
}

absl::Status IssueScalar(Card& card, Core& core, const isa::InstructionSet::Decoded& decoded,
                         const std::vector<int64_t>& operands) {
  ASSIGN_OR_RETURN(int64_t cost, CostOf(card, *decoded.instruction, operands));
  cost = std::max<int64_t>(1, cost);
  CountIssue(card, core.pc);
  if (AccessesMemory(*decoded.instruction)) {
    return BeginAccess(card, core, *decoded.instruction, operands, cost);
  }
  const int64_t pc = core.pc;
  core.free_at = card.cycle + cost;
  RETURN_IF_ERROR(ExecuteScalar(*card.set, decoded, operands,
                                core.free_at + card.parameters.scalar_dependent, core));
  ++CountsOf(core, isa::Unit::kScalar).instructions;
  CountsOf(core, isa::Unit::kScalar).busy += cost;
  if (core.pc < 0) {
    RecordScalar(card, core, Span::Kind::kScalarCode, pc, core.scalar_code_from, core.free_at);
    core.state = State::kHalted;
    core.counts.halted_at = core.free_at;
  }
  return absl::OkStatus();
}

absl::Status EndAccess(Card& card, Core& core) {
  const isa::InstructionSet::Decoded& decoded = At(card, core.pc);
  ASSIGN_OR_RETURN(const std::vector<int64_t> operands, ReadOperands(*card.set, decoded, core));
  for (const isa::Operand& operand : decoded.instruction->operands) {
    if (operand.kind == isa::OperandKind::kAddress && operand.space == isa::Space::kGmem &&
        operand.is_written) {
      card.last_gmem_write = card.cycle;
    }
  }
  RETURN_IF_ERROR(ExecuteScalar(*card.set, decoded, operands,
                                card.cycle + card.parameters.scalar_dependent, core));
  card.set->CountActions(*decoded.instruction, operands, &card.report.actions);
  ++CountsOf(core, isa::Unit::kScalar).instructions;
  CountsOf(core, isa::Unit::kScalar).busy += card.cycle - core.wait_from;
  core.state = State::kRunning;
  core.free_at = card.cycle;
  return absl::OkStatus();
}

// A place is free from the cycle after its instruction has started.
bool HasRoom(const Card& card, const Queue& queue) {
  const bool started_now = queue.last_start == card.cycle;
  return static_cast<int64_t>(queue.waiting.size()) + (started_now ? 1 : 0) <
         card.parameters.queue_depth;
}

absl::Status IssueToQueue(Card& card, Core& core, const isa::Instruction& instruction,
                          const std::vector<int64_t>& operands) {
  RETURN_IF_ERROR(CheckMemoryCore(core, instruction));
  Queue& queue = core.queue(instruction.queue);
  if (!HasRoom(card, queue)) {
    core.wait_queue = instruction.queue;
    BeginWait(card, core, State::kQueueFull);
    return absl::OkStatus();
  }
  CountIssue(card, core.pc);
  Issued issued;
  issued.instruction = &instruction;
  issued.pc = core.pc;
  ASSIGN_OR_RETURN(const int64_t cost, CostOf(card, instruction, operands));
  issued.cost = std::max<int64_t>(1, cost);
  issued.ready = card.cycle + card.parameters.scalar_issue;
  issued.ranges = card.set->Footprint(instruction, operands);
  queue.waiting.push_back(std::move(issued));
  card.set->CountActions(instruction, operands, &card.report.actions);
  CountsOf(core, isa::Unit::kScalar).busy += card.parameters.scalar_issue;
  core.free_at = card.cycle + card.parameters.scalar_issue;
  if (instruction.waits) {
    core.wait_queue = instruction.queue;
    core.wait_pc = core.pc;
    BeginWait(card, core, State::kCompletion);
  }
  ++core.pc;
  return absl::OkStatus();
}

absl::Status Issue(Card& card, Core& core) {
  if (core.pc >= static_cast<int64_t>(card.code.size())) {
    return InvalidInput("expected an instruction, found the end of the program");
  }
  if (!card.code[static_cast<size_t>(core.pc)]) {
    return InvalidInput("expected an instruction, found a word that is none");
  }
  const isa::InstructionSet::Decoded& decoded = At(card, core.pc);
  if (const int64_t readable = ReadableFrom(decoded, core); readable > card.cycle) {
    core.counts.dependent_wait += readable - card.cycle;
    core.free_at = readable;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> operands, ReadOperands(*card.set, decoded, core));
  switch (decoded.instruction->unit) {
    case isa::Unit::kScalar:
      return IssueScalar(card, core, decoded, operands);
    case isa::Unit::kControl:
      CountIssue(card, core.pc);
      ++CountsOf(core, isa::Unit::kControl).instructions;
      BeginWait(card, core, State::kDrain);
      return absl::OkStatus();
    case isa::Unit::kVector:
    case isa::Unit::kTensor:
    case isa::Unit::kIoDma:
    case isa::Unit::kMoveDma:
      break;
  }
  return IssueToQueue(card, core, *decoded.instruction, operands);
}

// The barrier opens for all who wait at it.
void Open(Card& card, isa::Instruction::Barrier barrier, int64_t cluster, int64_t time) {
  for (Core& core : card.cores) {
    if (core.state != State::kBarrier) continue;
    if (At(card, core.pc).instruction->barrier != barrier) continue;
    if (barrier == isa::Instruction::Barrier::kCluster && core.cluster != cluster) continue;
    EndWait(card, core, Span::Kind::kBarrier, core.pc, core.counts.barrier_wait, time);
    ++core.pc;
  }
}

absl::Status Arrive(Card& card, Core& core, isa::Instruction::Barrier barrier, int64_t latency) {
  if (card.cycle > core.wait_from) {
    EndWait(card, core, Span::Kind::kSync, core.pc, core.counts.sync_wait, card.cycle);
  }
  BeginWait(card, core, State::kBarrier);
  const bool is_global = barrier == isa::Instruction::Barrier::kGlobal;
  int64_t& arrived = is_global ? card.at_global_barrier
                               : card.at_cluster_barrier[static_cast<size_t>(core.cluster)];
  const int64_t members =
      is_global ? static_cast<int64_t>(card.cores.size()) : card.parameters.cores_and_memory_core();
  if (++arrived < members) return absl::OkStatus();
  arrived = 0;
  Open(card, barrier, core.cluster, card.cycle + latency);
  return absl::OkStatus();
}

absl::StatusOr<bool> EndDrain(Card& card, Core& core) {
  const isa::Instruction& instruction = *At(card, core.pc).instruction;
  for (isa::Queue queue : instruction.drains) {
    if (!core.queue(queue).empty()) return false;
  }
  ASSIGN_OR_RETURN(const int64_t cost, CostOf(card, instruction, {}));
  if (instruction.barrier != isa::Instruction::Barrier::kNone) {
    RETURN_IF_ERROR(Arrive(card, core, instruction.barrier, cost));
    return true;
  }
  EndWait(card, core, Span::Kind::kSync, core.pc, core.counts.sync_wait, card.cycle + cost);
  ++core.pc;
  return true;
}

}  // namespace

void Record(Card& card, const Span& span) {
  if (span.begin < span.end) card.report.spans.push_back(span);
}

absl::StatusOr<bool> Act(Card& card, Core& core) {
  switch (core.state) {
    case State::kRunning:
      if (card.cycle < core.free_at) return false;
      RETURN_IF_ERROR(Issue(card, core));
      return true;
    case State::kAccess:
      if (!core.access_done || card.cycle < core.free_at) return false;
      RETURN_IF_ERROR(EndAccess(card, core));
      return true;
    case State::kQueueFull: {
      if (!HasRoom(card, core.queue(core.wait_queue))) return false;
      int64_t& counter = core.counts.queue_full[static_cast<size_t>(core.wait_queue)];
      EndWait(card, core, Span::Kind::kQueueFull, core.pc, counter, card.cycle);
      return true;
    }
    case State::kCompletion:
      if (!core.queue(core.wait_queue).empty()) return false;
      EndWait(card, core, Span::Kind::kCompletion, core.wait_pc, core.counts.completion_wait,
              card.cycle);
      return true;
    case State::kDrain:
      return EndDrain(card, core);
    case State::kBarrier:
    case State::kHalted:
      return false;
  }
  return false;
}

}  // namespace polynao::simulator::reference
