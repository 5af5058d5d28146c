#include "simulator/reference/card.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "simulator/dram/preset.h"
#include "simulator/reference/issue.h"
#include "simulator/reference/transfer.h"

namespace polynao::simulator::reference {
namespace {

// ---- the card in cycle 0

// Byte addresses of tensors in GMEM: in the order of parameters, at multiples of isa::kTensorAlignment with a byte or
// more between.
constexpr int64_t kFirstTensor = 1 << 20;

absl::StatusOr<std::vector<int64_t>> ParameterValues(const isa::Program& program,
                                                     const std::vector<Argument>& arguments) {
  std::vector<int64_t> values;
  int64_t next = kFirstTensor;
  size_t used = 0;
  for (const isa::ProgramParam& param : program.params) {
    Argument argument;
    if (param.is_temporary) {
      argument.bytes = ir::ByteSize(param.type);
      for (int64_t extent : param.shape) argument.bytes *= extent;
    } else if (used < arguments.size()) {
      argument = arguments[used++];
    } else {
      return InvalidInput("program ", program.name, ": expected an argument for ", param.name,
                          ", found ", arguments.size(), " arguments");
    }
    values.push_back(param.is_tensor ? next : argument.value);
    if (!param.is_tensor) continue;
    const int64_t end = next + argument.bytes + 1;
    next = (end + isa::kTensorAlignment - 1) / isa::kTensorAlignment * isa::kTensorAlignment;
  }
  if (used < arguments.size()) {
    return InvalidInput("program ", program.name, ": expected ", used, " arguments, found ",
                        arguments.size());
  }
  return values;
}

Core MakeCore(const Parameters& p, const isa::Machine& machine, int64_t cluster, int64_t number,
              const std::vector<int64_t>& values) {
  Core core;
  core.cluster = cluster;
  core.core = number;
  core.index = cluster * p.cores_and_memory_core() + number;
  core.is_memory_core = number == p.cores;
  core.args = {number,
               cluster,
               p.cores,
               p.clusters,
               core.is_memory_core ? 1 : 0,
               machine.nmem_bytes(),
               machine.smem_bytes(),
               machine.wmem_bytes()};
  core.args.insert(core.args.end(), values.begin(), values.end());
  core.counts.cluster = cluster;
  core.counts.core = number;
  core.counts.is_memory_core = core.is_memory_core;
  return core;
}

void AddCluster(Card& card, const isa::Machine& machine, int64_t cluster,
                const std::vector<int64_t>& values) {
  const Parameters& p = card.parameters;
  const std::string prefix = absl::StrCat("cluster", cluster);
  const int64_t members = p.cores_and_memory_core();
  // Two requesters for each channel: its data and its cache's; two for each core upwards: its IO-DMA and its scalar
  // unit.
  card.links_down.push_back(
      MakeServer(prefix + ".link.down", 2 * p.gmem.channels, p.link_bytes * 1000));
  card.links_up.push_back(MakeServer(prefix + ".link.up", 2 * members, p.link_bytes * 1000));
  card.links_up.back().segments_allowed = p.store_segments;
  card.smem.push_back(MakeServer(prefix + ".smem", kSmemRequesters * members, p.smem_bytes * 1000));
  for (int64_t i = 0; i < members; ++i) {
    card.cores.push_back(MakeCore(p, machine, cluster, i, values));
    const bool is_memory_core = card.cores.back().is_memory_core;
    const std::string name =
        is_memory_core ? prefix + ".memory_core" : absl::StrCat(prefix, ".core", i);
    const int64_t io_rate =
        1000 * (is_memory_core ? p.io_dma.memory_core_port_bytes : p.io_dma.port_bytes);
    card.io_in.push_back(MakeServer(name + ".io.in", 1, io_rate));
    card.io_out.push_back(MakeServer(name + ".io.out", 1, io_rate));
    card.move.push_back(MakeServer(name + ".move", 1, 1000 * p.move_dma.port_bytes));
  }
}

// ---- 1. services that end

// A burst has passed all servers on its way.
void Return(Card& card, const Burst& burst) {
  Core& core = card.cores[static_cast<size_t>(burst.core)];
  switch (burst.sender) {
    case Sender::kIoDma:
      if (Complete(core, burst) && burst.writes_gmem && card.parameters.store_segments > 0) {
        --card.links_up[static_cast<size_t>(core.cluster)].segments_in_flight;
      }
      return;
    case Sender::kMoveDma:
      Complete(core, burst);
      return;
    case Sender::kScalar:
      core.access_done = true;
      core.free_at = card.cycle + burst.return_delay;
      return;
  }
}

// A burst sets out for its next stop, or home.
void Travel(Card& card, const Burst& burst) {
  if (burst.arrived()) return Return(card, burst);
  SetOut(card, burst);
}

void EndServices(Card& card) {
  for (Channel& channel : card.channels) {
    const auto finish = [&](auto& c) { return Finish(c, card.cycle); };
    for (const Burst& burst : std::visit(finish, channel)) Travel(card, burst);
  }
  for (auto* servers :
       {&card.links_down, &card.links_up, &card.smem, &card.io_in, &card.io_out, &card.move}) {
    for (Server& server : *servers) {
      if (server.free()) continue;
      if (const std::optional<Burst> burst = Finish(server)) Travel(card, *burst);
    }
  }
}

// ---- 2. queues and their units

bool IsDma(isa::Queue queue) { return queue == isa::Queue::kIo || queue == isa::Queue::kMove; }

bool UnitIsDone(const Card& card, const Running& running) {
  if (card.cycle < running.started + running.issued.cost + running.stolen) return false;
  if (!IsDma(running.issued.instruction->queue)) return true;
  return running.transfer.all_sent() && running.transfer.in_flight == 0;
}

// The oldest instruction of the queue's unit is complete.
void CompleteInstruction(Card& card, Core& core, Queue& queue) {
  const Running& running = queue.running.front();
  const isa::Instruction& instruction = *running.issued.instruction;
  UnitCounts& counts = core.counts.units[static_cast<size_t>(instruction.unit)];
  ++counts.instructions;
  counts.busy += card.cycle - std::max(running.started, queue.last_completion);
  const Sides sides = SidesOf(running.issued);
  bool is_store = false;
  if (sides.from != nullptr && sides.to != nullptr && IsDma(instruction.queue)) {
    card.report
        .path_bytes[static_cast<int>(sides.from->space)][static_cast<int>(sides.to->space)] +=
        sides.to->byte_count();
    is_store = sides.to->space == isa::Space::kGmem;
  }
  if (is_store) card.last_gmem_write = card.cycle;
  Record(card, {core.index, instruction.unit, Span::Kind::kExecute, is_store, running.issued.pc,
                running.started, card.cycle});
  queue.running.pop_front();
  queue.last_completion = card.cycle;
}

// Whether the next instruction of a queue may start beside those in its unit.
bool MayStart(const Card& card, const Queue& queue) {
  const Issued& next = queue.waiting.front();
  if (next.ready > card.cycle) return false;
  const isa::Queue kind = next.instruction->queue;
  const int64_t allowed = kind == isa::Queue::kIo     ? card.parameters.io_dma.transfers
                          : kind == isa::Queue::kMove ? card.parameters.move_dma.transfers
                                                      : 1;
  return static_cast<int64_t>(queue.running.size()) < allowed &&
         std::none_of(
             queue.running.begin(), queue.running.end(),
             [&](const Running& running) { return Hinders(running.issued, next); });
}

void RunQueue(Card& card, Core& core, Queue& queue) {
  while (!queue.running.empty() && UnitIsDone(card, queue.running.front())) {
    CompleteInstruction(card, core, queue);
  }
  // At most one starts in a cycle.
  if (queue.waiting.empty() || !MayStart(card, queue)) return;
  Running& running = queue.running.emplace_back();
  running.issued = queue.waiting.front();
  queue.waiting.pop_front();
  running.started = card.cycle;
  running.number = queue.starts++;
  queue.last_start = card.cycle;
  const isa::Queue kind = running.issued.instruction->queue;
  if (!IsDma(kind)) return;
  const Sender sender = kind == isa::Queue::kIo ? Sender::kIoDma : Sender::kMoveDma;
  running.transfer = MakeTransfer(card.parameters, running.issued, sender, card.cycle);
}

// ---- 3. cores

absl::Status RunCores(Card& card) {
  // A barrier that opens lets cores go on that have had their turn.
  for (bool any = true; any;) {
    any = false;
    for (Core& core : card.cores) {
      while (true) {
        const int64_t pc = core.pc;
        const absl::StatusOr<bool> acted = Act(card, core);
        if (!acted.ok()) {
          return WithContext(absl::StrCat(core.Name(), " pc ", pc, " cycle ", card.cycle),
                             acted.status());
        }
        if (!*acted) break;
        any = true;
      }
    }
  }
  return absl::OkStatus();
}

// ---- 4. and 5. bursts

void SendBursts(Card& card) {
  for (Core& core : card.cores) {
    for (const Sender sender : {Sender::kIoDma, Sender::kMoveDma}) {
      const auto burst = Send(card.parameters, core, sender, card.cycle);
      if (burst) Travel(card, *burst);
    }
  }
}

void BeginServices(Card& card) {
  for (Channel& channel : card.channels) {
    const int64_t bytes = std::visit([&](auto& c) { return Take(c, card.cycle); }, channel);
    if (bytes == 0) continue;
    const size_t bucket = static_cast<size_t>(card.cycle / Report::kGmemBucket);
    if (bucket >= card.report.gmem_buckets.size()) card.report.gmem_buckets.resize(bucket + 1);
    card.report.gmem_buckets[bucket] += bytes;
  }
  for (auto* servers :
       {&card.links_down, &card.links_up, &card.smem, &card.io_in, &card.io_out, &card.move}) {
    for (Server& server : *servers) Take(server, card.cycle);
  }
}

// In this cycle, DMAs take a memory's one port from what computes.
void StealPorts(Card& card) {
  const Parameters& p = card.parameters;
  if (p.nmem_ports > 1 && p.wmem_ports > 1) return;
  for (Core& core : card.cores) {
    Queue& queue = core.queue(isa::Queue::kCompute);
    if (queue.running.empty()) continue;
    Running& running = queue.running.front();
    const isa::Unit unit = running.issued.instruction->unit;
    const bool uses_wmem = unit == isa::Unit::kTensor;
    const size_t index = static_cast<size_t>(core.index);
    for (const Server* port : {&card.io_in[index], &card.io_out[index], &card.move[index]}) {
      if (!port->serving) continue;
      if (p.nmem_ports == 1 && port->serving->touches_nmem) ++running.stolen;
      if (p.wmem_ports == 1 && uses_wmem && port->serving->touches_wmem) ++running.stolen;
    }
  }
}

// ---- the end

// Some core waits at a barrier, and no core can arrive there any more.
bool IsStuck(const Card& card) {
  bool any_waits = false;
  for (const Core& core : card.cores) {
    const bool waits = core.state == Core::State::kBarrier;
    if ((!waits && core.state != Core::State::kHalted) || !core.idle()) return false;
    any_waits |= waits;
  }
  return any_waits;
}

void ReportChannel(GmemChannel& channel, Report& report) {
  report.ports.push_back(channel.memory.counts);
  if (channel.lines_allowed > 0) report.ports.push_back(channel.slice_port.counts);
}

void ReportChannel(DramChannel& channel, Report& report) {
  report.dram.push_back(Close(channel, report.end_cycle));
  const auto& banks = channel.controller.bank_counters();
  report.dram_banks.insert(report.dram_banks.end(), banks.begin(), banks.end());
  report.ports.push_back(channel.queues.counts);
}

Report Finished(Card& card) {
  Report& report = card.report;
  report.end_cycle = card.cycle;
  report.cycles = card.last_gmem_write >= 0 ? card.last_gmem_write : report.end_cycle;
  report.launch_cycles = card.parameters.launch;
  for (const Core& core : card.cores) report.cores.push_back(core.counts);
  for (Channel& channel : card.channels) {
    std::visit([&](auto& c) { ReportChannel(c, report); }, channel);
    const GmemCounts& counts = std::visit([](auto& c) -> GmemCounts& { return c.counts; }, channel);
    report.gmem_read += counts.read;
    report.gmem_read_moved += counts.read_moved;
    report.gmem_read_cached += counts.read_cached;
    report.gmem_written += counts.written;
    report.gmem_written_moved += counts.written_moved;
  }
  const size_t members = static_cast<size_t>(card.parameters.cores_and_memory_core());
  for (size_t cluster = 0; cluster < card.smem.size(); ++cluster) {
    report.ports.push_back(card.links_down[cluster].counts);
    report.ports.push_back(card.links_up[cluster].counts);
    report.ports.push_back(card.smem[cluster].counts);
    for (size_t core = cluster * members; core < (cluster + 1) * members; ++core) {
      report.ports.push_back(card.io_in[core].counts);
      report.ports.push_back(card.io_out[core].counts);
      report.ports.push_back(card.move[core].counts);
    }
  }
  return report;
}

}  // namespace

absl::StatusOr<Card> MakeCard(const isa::InstructionSet& set, const isa::Program& program,
                              const std::vector<Argument>& arguments, const isa::Machine& machine) {
  Card card(set, machine);
  for (const isa::Word& word : program.code) {
    auto decoded = set.Decode(word);
    card.code.push_back(decoded.ok() ? std::optional(*std::move(decoded)) : std::nullopt);
  }
  card.report.issued.resize(card.code.size());
  ASSIGN_OR_RETURN(card.cost_parameters, set.ResolveParameters(machine));
  ASSIGN_OR_RETURN(const std::vector<int64_t> values, ParameterValues(program, arguments));
  const Parameters& p = card.parameters;
  const int64_t requesters = kChannelRequesters * p.clusters * p.cores_and_memory_core();
  if (machine.has_dram()) {
    ASSIGN_OR_RETURN(const DramTiming timing, DramOf(machine));
    for (int64_t i = 0; i < p.gmem.channels; ++i) {
      card.channels.emplace_back(MakeDramChannel(p, timing, i, requesters));
    }
  } else {
    for (int64_t i = 0; i < p.gmem.channels; ++i) {
      card.channels.emplace_back(MakeGmemChannel(p, i, requesters));
    }
  }
  for (int64_t i = 0; i < p.clusters; ++i) AddCluster(card, machine, i, values);
  card.at_cluster_barrier.assign(static_cast<size_t>(p.clusters), 0);
  return card;
}

void SetOut(Card& card, const Burst& burst) {
  const Stop& stop = burst.next_stop();
  const size_t index = static_cast<size_t>(stop.place.index);
  const auto enter = [&](auto& place) { Enter(place, burst, card.cycle + stop.delay); };
  switch (stop.place.kind) {
    case Place::Kind::kChannel:
      return std::visit(enter, card.channels[index]);
    case Place::Kind::kLinkDown:
      return enter(card.links_down[index]);
    case Place::Kind::kLinkUp:
      return enter(card.links_up[index]);
    case Place::Kind::kSmem:
      return enter(card.smem[index]);
    case Place::Kind::kIoIn:
      return enter(card.io_in[index]);
    case Place::Kind::kIoOut:
      return enter(card.io_out[index]);
    case Place::Kind::kMove:
      return enter(card.move[index]);
  }
}

absl::Status Step(Card& card) {
  EndServices(card);
  for (Core& core : card.cores) {
    for (Queue& queue : core.queues) RunQueue(card, core, queue);
  }
  RETURN_IF_ERROR(RunCores(card));
  SendBursts(card);
  BeginServices(card);
  StealPorts(card);
  return absl::OkStatus();
}

bool IsDone(const Card& card) {
  return std::all_of(card.cores.begin(), card.cores.end(), [&](const Core& core) {
    return core.state == Core::State::kHalted && core.free_at <= card.cycle && core.idle();
  });
}

absl::StatusOr<Report> Run(const isa::InstructionSet& set, const isa::Program& program,
                           const std::vector<Argument>& arguments, const isa::Machine& machine,
                           int64_t max_cycles) {
  ASSIGN_OR_RETURN(Card card, MakeCard(set, program, arguments, machine));
  for (; card.cycle <= max_cycles; ++card.cycle) {
    RETURN_IF_ERROR(Step(card));
    if (IsDone(card)) return Finished(card);
    if (IsStuck(card)) {
      return InvalidInput("deadlock in cycle ", card.cycle, ": cores wait at barriers for others");
    }
  }
  return absl::DeadlineExceededError(
      absl::StrCat("the program runs for more than ", max_cycles, " cycles"));
}

}  // namespace polynao::simulator::reference
