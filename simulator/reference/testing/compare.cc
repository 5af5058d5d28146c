#include "simulator/reference/testing/compare.h"

#include <algorithm>
#include <deque>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "simulator/reference/card.h"

namespace polynao::simulator::reference {
namespace {

constexpr int kMaxLines = 12;

Slice::Kind KindOf(Span::Kind kind) {
  switch (kind) {
    case Span::Kind::kExecute:
      return Slice::Kind::kExecute;
    case Span::Kind::kScalarCode:
      return Slice::Kind::kScalar;
    case Span::Kind::kQueueFull:
      return Slice::Kind::kQueueFull;
    case Span::Kind::kSync:
      return Slice::Kind::kSync;
    case Span::Kind::kBarrier:
      return Slice::Kind::kBarrier;
    case Span::Kind::kCompletion:
      break;
  }
  return Slice::Kind::kWait;
}

const char* NameOf(Slice::Kind kind) {
  switch (kind) {
    case Slice::Kind::kExecute:
      return "execute";
    case Slice::Kind::kScalar:
      return "scalar code";
    case Slice::Kind::kQueueFull:
      return "queue full";
    case Slice::Kind::kSync:
      return "sync";
    case Slice::Kind::kBarrier:
      return "barrier";
    case Slice::Kind::kWait:
      break;
  }
  return "completion";
}

// The clocked model's report in the other's words.
RunResult Translate(const Report& report, const RunResult& names) {
  RunResult result;
  result.machine = names.machine;
  result.program = names.program;
  result.instructions = names.instructions;
  result.cycles = report.cycles;
  result.end_cycle = report.end_cycle;
  result.launch_cycles = report.launch_cycles;
  for (const CoreCounts& from : report.cores) {
    CoreReport core{.cluster = static_cast<int>(from.cluster),
                    .core = static_cast<int>(from.core),
                    .is_memory_core = from.is_memory_core};
    for (size_t i = 0; i < core.units.size(); ++i) {
      core.units[i] = {from.units[i].instructions, from.units[i].busy};
    }
    core.queue_full = from.queue_full;
    core.sync_wait = from.sync_wait;
    core.barrier_wait = from.barrier_wait;
    core.completion_wait = from.completion_wait;
    core.dependent_wait = from.dependent_wait;
    core.halted_at = from.halted_at;
    result.cores.push_back(core);
  }
  for (const PortCounts& port : report.ports) {
    result.ports.push_back(
        {port.name, port.rate, port.bursts, port.payload, port.moved, port.busy});
  }
  for (size_t from = 0; from < isa::kSpaceCount; ++from) {
    for (size_t to = 0; to < isa::kSpaceCount; ++to) {
      result.path_bytes[from][to] = report.path_bytes[from][to];
    }
  }
  result.gmem_read = report.gmem_read;
  result.gmem_read_moved = report.gmem_read_moved;
  result.gmem_read_cached = report.gmem_read_cached;
  result.gmem_written = report.gmem_written;
  result.gmem_written_moved = report.gmem_written_moved;
  result.dram = report.dram;
  result.dram_banks = report.dram_banks;
  result.actions = report.actions;
  for (const Span& span : report.spans) {
    result.slices.push_back({.core = static_cast<int32_t>(span.core),
                             .unit = span.unit,
                             .kind = KindOf(span.kind),
                             .is_store = span.is_store,
                             .pc = static_cast<int32_t>(span.pc),
                             .begin = span.begin,
                             .end = span.end});
  }
  result.gmem_bucket = Report::kGmemBucket;
  result.gmem_buckets = report.gmem_buckets;
  return result;
}

void SortSlices(RunResult& result) {
  const auto key = [](const Slice& s) {
    return std::tuple(s.begin, s.end, s.core, s.unit, s.kind, s.pc, s.is_store);
  };
  std::sort(result.slices.begin(), result.slices.end(),
            [&](const Slice& a, const Slice& b) { return key(a) < key(b); });
}

class Lines {
 public:
  template <typename T>
  void Compare(const std::string& what, const T& event, const T& clocked) {
    if (event != clocked) Add(absl::StrCat(what, ": ", event, ", clocked ", clocked));
  }
  void Add(const std::string& line) {
    if (++count_ <= kMaxLines) absl::StrAppend(&text_, line, "\n");
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int count_ = 0;
};

std::string Text(const RunResult& result, const Slice& slice) {
  const CoreReport& core = result.cores[static_cast<size_t>(slice.core)];
  const size_t pc = static_cast<size_t>(slice.pc);
  return absl::StrCat("cluster ", core.cluster, " core ", core.core, " pc ", pc, " ",
                      NameOf(slice.kind), " \"",
                      pc < result.instructions.size() ? result.instructions[pc] : "", "\" cycles ",
                      slice.begin, " to ", slice.end);
}

void CompareSlices(const RunResult& event, const RunResult& clocked, Lines& lines) {
  const size_t count = std::min(event.slices.size(), clocked.slices.size());
  for (size_t i = 0; i < count; ++i) {
    if (event.slices[i] == clocked.slices[i]) continue;
    // Slices are sorted by time, so this is the first difference; later ones follow from it.
    return lines.Add(
        absl::StrCat(Text(event, event.slices[i]), "\n  clocked ", Text(event, clocked.slices[i])));
  }
  lines.Compare("slices", event.slices.size(), clocked.slices.size());
}

// The kind of an error: its code, and whether it is a deadlock.
std::pair<absl::StatusCode, bool> KindOf(const absl::Status& status) {
  return {status.code(), std::string(status.message()).find("deadlock") != std::string::npos};
}

}  // namespace

std::string Difference(const RunResult& event_driven, const Report& report) {
  RunResult event = event_driven;
  RunResult clocked = Translate(report, event);
  SortSlices(event);
  SortSlices(clocked);
  if (event == clocked) return "";
  Lines lines;
  CompareSlices(event, clocked, lines);
  const auto rows = event.Rows();
  const auto clocked_rows = clocked.Rows();
  if (rows.size() != clocked_rows.size()) lines.Add("different paths");
  for (size_t i = 0; i < std::min(rows.size(), clocked_rows.size()); ++i) {
    lines.Compare(rows[i].first, rows[i].second, clocked_rows[i].second);
  }
  lines.Compare("ports", event.ports.size(), clocked.ports.size());
  for (size_t i = 0; i < std::min(event.ports.size(), clocked.ports.size()); ++i) {
    const PortReport& a = event.ports[i];
    const PortReport& b = clocked.ports[i];
    lines.Compare(absl::StrCat("port ", i), a.name, b.name);
    lines.Compare(a.name + " rate", a.rate, b.rate);
    lines.Compare(a.name + " bursts", a.bursts, b.bursts);
    lines.Compare(a.name + " payload", a.payload, b.payload);
    lines.Compare(a.name + " moved", a.moved, b.moved);
    lines.Compare(a.name + " busy", a.busy, b.busy);
  }
  for (size_t i = 0; i < std::min(event.cores.size(), clocked.cores.size()); ++i) {
    if (event.cores[i] == clocked.cores[i]) continue;
    lines.Add(absl::StrCat("counters of core ", i, " of the card"));
  }
  if (event.dram_banks != clocked.dram_banks) lines.Add("commands by bank");
  if (event.gmem_buckets != clocked.gmem_buckets) lines.Add("GMEM bytes by time");
  if (lines.text().empty()) lines.Add("reports differ");
  return lines.text();
}

namespace {

// What a run for timing alone reports in another way than `event`, the run with values; empty if nothing.
std::string TimingDifference(const isa::Program& program,
                             const std::vector<simulator::Argument>& arguments, RunOptions options,
                             const absl::StatusOr<RunResult>& event) {
  if (LoadsRegisters(isa::DianNao(), program) >= 0) return "";
  options.timing_only = true;
  std::deque<ir::Tensor> shapes;
  std::vector<simulator::Argument> without_values = arguments;
  for (simulator::Argument& argument : without_values) {
    if (argument.tensor == nullptr) continue;
    argument.tensor =
        &shapes.emplace_back(ShapeOnly(argument.tensor->type, argument.tensor->shape));
  }
  const auto timed = simulator::Run(isa::DianNao(), program, without_values, options);
  if (timed.status() != event.status()) {
    return absl::StrCat("with values ", event.status().ToString(), "\n  timing alone ",
                        timed.status().ToString(), "\n");
  }
  if (!timed.ok() || *timed == *event) return "";
  return absl::StrCat("with values ", event->cycles, " cycles, timing alone ", timed->cycles,
                      ", or other counters\n");
}

}  // namespace

Comparison Compare(const isa::Machine& machine, const isa::Program& program,
                   const std::vector<simulator::Argument>& arguments, int64_t max_cycles) {
  std::vector<Argument> sizes;
  bool has_values = true;
  for (const simulator::Argument& argument : arguments) {
    int64_t bytes = 0;
    if (argument.tensor != nullptr) {
      bytes = argument.tensor->element_count() * ir::ByteSize(argument.tensor->type);
      has_values &= static_cast<int64_t>(argument.tensor->bytes.size()) == bytes;
    }
    sizes.push_back({.bytes = bytes, .value = argument.value});
  }
  const auto clocked = Run(isa::DianNao(), program, sizes, machine, max_cycles);
  RunOptions options;
  options.machine = &machine;
  options.check_hazards = false;
  options.max_cycles = max_cycles;
  options.trace.enabled = true;
  options.trace.limit = int64_t{1} << 40;
  options.trace.gmem_bucket = Report::kGmemBucket;
  options.timing_only = !has_values;
  auto event = simulator::Run(isa::DianNao(), program, arguments, options);
  Comparison comparison;
  if (has_values) comparison.difference = TimingDifference(program, arguments, options, event);
  if (clocked.ok()) comparison.issued = clocked->issued;
  if (event.ok() && clocked.ok()) {
    if (comparison.difference.empty()) comparison.difference = Difference(*event, *clocked);
    comparison.result = *std::move(event);
    return comparison;
  }
  comparison.error = event.status();
  if (KindOf(event.status()) != KindOf(clocked.status())) {
    comparison.difference =
        absl::StrCat(event.status().ToString(), "\n  clocked ", clocked.status().ToString(), "\n");
  }
  return comparison;
}

}  // namespace polynao::simulator::reference
