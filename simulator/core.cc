#include "simulator/core.h"

#include <algorithm>

#include "base/check.h"

namespace polynao::simulator {
namespace {

int CardCore(const isa::Machine& machine, AccessChecker::CoreId id) {
  return id.cluster * (static_cast<int>(machine.cores_per_cluster()) + 1) + id.core;
}

}  // namespace

Core::Core(sc_core::sc_module_name name, Context& context, AccessChecker::CoreId id,
           const Surroundings& surroundings, CoreReport& report, int32_t report_index)
    : sc_core::sc_module(name),
      context_(context),
      id_(id),
      report_(report),
      report_index_(report_index),
      is_memory_core_(id.core == context.machine.cores_per_cluster()),
      io_queue_("io_queue", isa::Queue::kIo, context.machine.Get("core.queue_depth"),
                context.machine.Get("io_dma.transfers"), *this),
      move_queue_("move_queue", isa::Queue::kMove, context.machine.Get("core.queue_depth"),
                  context.machine.Get("move_dma.transfers"), *this),
      io_dma_("io", context.machine, io_queue_, id.core, CardCore(context.machine, id),
              is_memory_core_, *surroundings.gmem, *surroundings.link, *surroundings.smem,
              context.profile),
      move_dma_("move", context.machine, move_queue_, id.core, *surroundings.smem) {
  ScalarUnit::Wiring wiring;
  if (!is_memory_core_) {
    nmem_ = std::make_unique<Nmem>("nmem", context.machine.nmem_bytes());
    wmem_ = std::make_unique<Wmem>("wmem", context.machine.wmem_bytes());
    compute_queue_ = std::make_unique<InstructionQueue>(
        "compute_queue", isa::Queue::kCompute, context.machine.Get("core.queue_depth"), 1, *this);
    MakeComputeUnits();
  }
  const auto connect = [&](isa::Space space, uint8_t* data, int64_t size) {
    wiring.machine.memory[static_cast<int>(space)] = data;
    wiring.machine.size[static_cast<int>(space)] = size;
  };
  connect(isa::Space::kGmem, surroundings.gmem->data(), surroundings.gmem->size());
  connect(isa::Space::kSmem, surroundings.smem->data(), surroundings.smem->size());
  if (nmem_) connect(isa::Space::kNmem, nmem_->data(), nmem_->size());
  if (wmem_) connect(isa::Space::kWmem, wmem_->data(), wmem_->size());
  wiring.queues[static_cast<size_t>(isa::Queue::kCompute)] = compute_queue_.get();
  wiring.queues[static_cast<size_t>(isa::Queue::kIo)] = &io_queue_;
  wiring.queues[static_cast<size_t>(isa::Queue::kMove)] = &move_queue_;
  wiring.cluster_barrier = surroundings.cluster_barrier;
  wiring.global_barrier = surroundings.global_barrier;
  wiring.gmem = surroundings.gmem;
  wiring.link = surroundings.link;
  wiring.smem = surroundings.smem;
  scalar_ = std::make_unique<ScalarUnit>("scalar", context, id, wiring, report, report_index);
}

void Core::MakeComputeUnits() {
  std::vector<PortSharing*> of_vector, of_tensor;
  const auto share = [&](isa::Space memory, PortSharing* sharing) {
    io_dma_.Share(memory, sharing);
    move_dma_.Share(memory, sharing);
    of_tensor.push_back(sharing);
  };
  if (context_.machine.Get("core.nmem_ports") == 1) {
    share(isa::Space::kNmem, &nmem_sharing_);
    of_vector.push_back(&nmem_sharing_);
  }
  if (context_.machine.Get("core.wmem_ports") == 1) share(isa::Space::kWmem, &wmem_sharing_);
  vector_ = std::make_unique<ComputeUnit>("vector", *compute_queue_, of_vector);
  tensor_ = std::make_unique<ComputeUnit>("tensor", *compute_queue_, of_tensor);
}

ExecutionUnit& Core::UnitOf(const isa::Instruction& instruction) {
  switch (instruction.unit) {
    case isa::Unit::kVector:
      return *vector_;
    case isa::Unit::kTensor:
      return *tensor_;
    case isa::Unit::kIoDma:
      return io_dma_;
    case isa::Unit::kMoveDma:
      return move_dma_;
    case isa::Unit::kScalar:
    case isa::Unit::kControl:
      break;
  }
  POLYNAO_UNREACHABLE("scalar instructions wait in no queue");
}

bool Core::idle() const {
  return (compute_queue_ == nullptr || compute_queue_->idle()) && io_queue_.idle() &&
         move_queue_.idle();
}

void Core::OnComplete(const Issued& issued, int64_t start, int64_t first) {
  const isa::Instruction& instruction = *issued.instruction;
  if (!context_.timing_only) {
    written_.assign(issued.values.size(), 0);
    const absl::Status status = context_.set.Execute(instruction, issued.values, scalar_->machine(),
                                                     absl::MakeSpan(written_));
    if (!status.ok()) {
      context_.Fail(id_, issued.pc, status);
      return;
    }
    if (instruction.waits) scalar_->WriteRegisters(issued.pc, written_, Now());
  }
  context_.set.CountActions(instruction, issued.values, &context_.result->actions);

  const int64_t now = Now();
  UnitReport& unit = report_.units[static_cast<size_t>(instruction.unit)];
  ++unit.instructions;
  unit.busy += now - first;
  context_.last_activity = std::max(context_.last_activity, now);
  Profile(issued, -1);
  Slice slice{.core = report_index_,
              .unit = instruction.unit,
              .kind = Slice::Kind::kExecute,
              .pc = static_cast<int32_t>(issued.pc),
              .begin = start,
              .end = now};
  if (instruction.queue != isa::Queue::kCompute) CountTransfer(issued, slice);
  context_.Trace(slice);
}

void Core::Profile(const Issued& issued, int delta) {
  if (context_.profile == nullptr) return;
  CycleClasses::Activity activity = CycleClasses::kComputing;
  if (issued.instruction->queue == isa::Queue::kMove) activity = CycleClasses::kMoving;
  if (issued.instruction->queue == isa::Queue::kIo) {
    const bool is_store = std::any_of(
        issued.ranges.begin(), issued.ranges.end(),
        [](const auto& ranges) { return ranges.is_write && ranges.space == isa::Space::kGmem; });
    activity = is_store ? CycleClasses::kStoring : CycleClasses::kLoading;
  }
  context_.profile->Change(report_index_, activity, delta, Now());
}

void Core::CountTransfer(const Issued& issued, Slice& slice) {
  const isa::ByteRanges* from = nullptr;
  const isa::ByteRanges* to = nullptr;
  for (const isa::ByteRanges& ranges : issued.ranges) (ranges.is_write ? to : from) = &ranges;
  if (from != nullptr && to != nullptr) {
    context_.result->path_bytes[static_cast<size_t>(from->space)][static_cast<size_t>(to->space)] +=
        to->byte_count();
  }
  slice.is_store = to != nullptr && to->space == isa::Space::kGmem;
  if (slice.is_store && to->byte_count() > 0) {
    context_.last_gmem_write = std::max(context_.last_gmem_write, Now());
  }
}

}  // namespace polynao::simulator
