#include "simulator/dma.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace polynao::simulator {

Dma::Dma(sc_core::sc_module_name name, const isa::Machine& machine, InstructionQueue& queue,
         int64_t outstanding)
    : sc_core::sc_module(name),
      queue_(queue),
      line_(machine.Get("core.nmem_line")),
      pool_(static_cast<size_t>(outstanding)),
      wake_([this] { Run(); }) {
  for (Burst& burst : pool_) {
    burst.owner = this;
    unused_.push_back(&burst);
  }
}

void Dma::OnSegmentDone(const DmaTransfer&, int64_t) {}

int64_t Dma::Pass(Port& port, Burst& burst, int64_t time) {
  const int64_t passed = port.Pass(burst, burst.payload, time, burst.lines);
  for (const isa::Space space : {burst.transfer->from, burst.transfer->to}) {
    PortSharing* sharing = sharing_[static_cast<size_t>(space)];
    if (sharing == nullptr) continue;
    const int64_t service = std::max(burst.lines, ServiceCycles(burst.payload, port.rate()));
    sharing->Add(passed - service, passed, Now());
  }
  return passed;
}

void Dma::Start(const Issued& issued) {
  if (unused_transfers_.empty()) unused_transfers_.push_back(std::make_unique<DmaTransfer>());
  transfers_.push_back(std::move(unused_transfers_.back()));
  unused_transfers_.pop_back();
  DmaTransfer& transfer = *transfers_.back();
  POLYNAO_CHECK(transfer.in_flight == 0) << name();
  transfer.send_from = Now() + std::max<int64_t>(1, issued.cost);
  transfer.core_side.reset();
  for (const isa::ByteRanges& ranges : issued.ranges) {
    (ranges.is_write ? transfer.to : transfer.from) = ranges.space;
    const bool is_cores = ranges.space == isa::Space::kNmem || ranges.space == isa::Space::kWmem;
    if (is_cores && line_ > 0) transfer.core_side.emplace(ranges);
  }
  transfer.core_side_sent = 0;
  transfer.limits = LimitsOf(transfer);
  transfer.runs.clear();
  int64_t run_count = 0;
  for (const isa::ByteRanges* ranges : SegmentsOf(issued, transfer)) {
    isa::RunCursor cursor(*ranges);
    if (cursor.done()) continue;
    run_count += cursor.run_count();
    transfer.runs.push_back(std::move(cursor));
  }
  transfer.run = 0;
  transfer.sent = 0;
  transfer.current_segment = -1;
  transfer.segments.assign(static_cast<size_t>(run_count > 1 ? transfer.limits.segments : 1), {});
  wake_.NotifyAt(transfer.send_from);
}

void Dma::Complete(Burst& burst, int64_t time) {
  DmaTransfer::Segment& segment = burst.transfer->segments[static_cast<size_t>(burst.segment)];
  segment.done = std::max(segment.done, time);
  if (--segment.unsettled == 0 && !segment.open) OnSegmentDone(*burst.transfer, segment.done);
  completions_.push({time, &burst});
  wake_.NotifyAt(completions_.top().time);
}

void Dma::Run() {
  const int64_t now = Now();
  while (!completions_.empty() && completions_.top().time <= now) {
    Burst* burst = completions_.top().burst;
    completions_.pop();
    --burst->transfer->in_flight;
    --burst->transfer->segments[static_cast<size_t>(burst->segment)].in_flight;
    unused_.push_back(burst);
  }
  Send();
  while (!transfers_.empty()) {
    const DmaTransfer& first = *transfers_.front();
    if (!first.all_sent() || first.in_flight > 0) break;
    if (now < first.send_from) {
      // An empty one, whose own wake-up gave way to that of a transfer before it.
      wake_.NotifyAt(first.send_from);
      break;
    }
    unused_transfers_.push_back(std::move(transfers_.front()));
    transfers_.pop_front();
    queue_.Complete();  // may start another transfer here
  }
  if (!completions_.empty()) wake_.NotifyAt(completions_.top().time);
}

// Sends bursts ahead of the cycles in which they leave: until then the number in flight can only fall.
void Dma::Send() {
  for (const std::unique_ptr<DmaTransfer>& each : transfers_) {
    DmaTransfer& transfer = *each;
    while (!transfer.all_sent()) {
      if (unused_.empty()) return;
      if (transfer.current_segment < 0) {
        const auto slot = std::find_if(transfer.segments.begin(), transfer.segments.end(),
                                       [](const auto& segment) { return segment.free(); });
        if (slot == transfer.segments.end()) return;
        slot->open = true;
        slot->done = 0;
        transfer.current_segment = static_cast<int>(slot - transfer.segments.begin());
      }
      SendNext(transfer);
    }
  }
}

void Dma::SendNext(DmaTransfer& transfer) {
  isa::RunCursor& cursor = transfer.runs[transfer.run];
  DmaTransfer::Segment& segment = transfer.segments[static_cast<size_t>(transfer.current_segment)];
  Burst& burst = *unused_.back();
  unused_.pop_back();
  const int64_t largest = transfer.limits.burst;
  const int64_t address = cursor.begin() + transfer.sent;
  burst.transfer = &transfer;
  burst.address = address;
  burst.payload = std::min(largest - address % largest, cursor.size() - transfer.sent);
  burst.lines = LinesOf(transfer, burst.payload);
  burst.segment = transfer.current_segment;
  burst.is_first = transfer.sent == 0;
  burst.stage = 0;
  ++transfer.in_flight;
  ++segment.in_flight;
  ++segment.unsettled;
  transfer.sent += burst.payload;
  if (transfer.sent == cursor.size()) {
    segment.open = false;
    transfer.current_segment = -1;
    transfer.sent = 0;
    cursor.Next();
    if (cursor.done()) ++transfer.run;
  }
  const int64_t time = std::max({Now(), next_send_, transfer.send_from});
  next_send_ = time + 1;
  Inject(burst, time);
}

int64_t Dma::LinesOf(DmaTransfer& transfer, int64_t bytes) const {
  if (!transfer.core_side) return 0;
  isa::RunCursor& cursor = *transfer.core_side;
  int64_t lines = 0;
  while (bytes > 0) {
    const int64_t begin = cursor.begin() + transfer.core_side_sent;
    const int64_t piece = std::min(bytes, cursor.size() - transfer.core_side_sent);
    lines += (begin + piece - 1) / line_ - begin / line_ + 1;
    bytes -= piece;
    transfer.core_side_sent += piece;
    if (transfer.core_side_sent == cursor.size()) {
      cursor.Next();
      transfer.core_side_sent = 0;
    }
  }
  return lines;
}

}  // namespace polynao::simulator
