#include "simulator/report.h"

#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace polynao::simulator {
namespace {

// Writer and Reader walk the same fields in the same order (Fields, below).
class Writer {
 public:
  template <typename T>
    requires std::is_trivially_copyable_v<T>
  void operator()(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void operator()(const std::string& value) {
    (*this)(value.size());
    bytes_ += value;
  }
  template <typename A, typename B>
  void operator()(const std::pair<A, B>& value) {
    (*this)(value.first);
    (*this)(value.second);
  }
  void operator()(const PortReport& value);
  template <typename T>
  void operator()(const std::vector<T>& values) {
    (*this)(values.size());
    for (const T& value : values) (*this)(value);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
    requires std::is_trivially_copyable_v<T>
  void operator()(T& value) {
    if (rest_.size() < sizeof(T)) {
      ok_ = false;
      rest_ = {};
      return;
    }
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
  }
  void operator()(std::string& value) {
    size_t size = 0;
    (*this)(size);
    if (size > rest_.size()) {
      ok_ = false;
      return;
    }
    value = std::string(rest_.substr(0, size));
    rest_.remove_prefix(size);
  }
  template <typename A, typename B>
  void operator()(std::pair<A, B>& value) {
    (*this)(value.first);
    (*this)(value.second);
  }
  void operator()(PortReport& value);
  template <typename T>
  void operator()(std::vector<T>& values) {
    size_t size = 0;
    (*this)(size);
    // Each element takes at least a byte.
    if (size > rest_.size()) {
      ok_ = false;
      return;
    }
    values.resize(size);
    for (T& value : values) (*this)(value);
  }
  bool ok() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

template <typename Archive, typename Port>
void PortFields(Archive& archive, Port& port) {
  archive(port.name);
  archive(port.rate);
  archive(port.bursts);
  archive(port.payload);
  archive(port.moved);
  archive(port.busy);
}

void Writer::operator()(const PortReport& value) { PortFields(*this, value); }
void Reader::operator()(PortReport& value) { PortFields(*this, value); }

template <typename Archive, typename Result>
void Fields(Archive& archive, Result& result) {
  archive(result.machine);
  archive(result.program);
  archive(result.cycles);
  archive(result.end_cycle);
  archive(result.launch_cycles);
  archive(result.cores);
  archive(result.ports);
  archive(result.path_bytes);
  archive(result.gmem_read);
  archive(result.gmem_read_moved);
  archive(result.gmem_read_cached);
  archive(result.gmem_written);
  archive(result.gmem_written_moved);
  archive(result.dram);
  archive(result.dram_banks);
  archive(result.actions);
  archive(result.unwritten);
  archive(result.activity.bucket);
  archive(result.activity.bytes);
  archive(result.activity.activates);
  archive(result.slices);
  archive(result.slices_complete);
  archive(result.instructions);
  archive(result.gmem_bucket);
  archive(result.gmem_buckets);
}

}  // namespace

std::string_view CycleClassName(CycleClass cycle_class) {
  switch (cycle_class) {
    case CycleClass::kCompute:
      return "compute";
    case CycleClass::kDramRows:
      return "dram_rows";
    case CycleClass::kLoad:
      return "load";
    case CycleClass::kStore:
      return "store";
    case CycleClass::kMove:
      return "move";
    case CycleClass::kBarrier:
      return "barrier";
    case CycleClass::kScalar:
      return "scalar";
    case CycleClass::kIdle:
      return "idle";
  }
  return "";
}

int64_t RunResult::instruction_count() const {
  int64_t count = 0;
  for (const CoreReport& core : cores) {
    for (const UnitReport& unit : core.units) count += unit.instructions;
  }
  return count;
}

std::vector<std::pair<std::string, int64_t>> RunResult::Rows() const {
  std::vector<std::pair<std::string, int64_t>> rows = {
      {"cycles", cycles},
      {"end_cycle", end_cycle},
      {"launch_cycles", launch_cycles},
      {"instructions", instruction_count()},
      {"bytes.gmem.read", gmem_read},
      {"bytes.gmem.read_moved", gmem_read_moved},
      {"bytes.gmem.read_cached", gmem_read_cached},
      {"bytes.gmem.written", gmem_written},
      {"bytes.gmem.written_moved", gmem_written_moved},
  };
  for (int from = 0; from < isa::kSpaceCount; ++from) {
    for (int to = 0; to < isa::kSpaceCount; ++to) {
      const int64_t bytes = path_bytes[static_cast<size_t>(from)][static_cast<size_t>(to)];
      if (bytes == 0) continue;
      rows.push_back({absl::StrCat("bytes.", std::string(isa::SpaceName(isa::Space(from))), "_to_",
                                   std::string(isa::SpaceName(isa::Space(to)))),
                      bytes});
    }
  }
  for (int u = 0; u < kUnitCount; ++u) {
    const std::string unit(isa::UnitName(isa::Unit(u)));
    UnitReport sum;
    for (const CoreReport& core : cores) {
      sum.instructions += core.units[static_cast<size_t>(u)].instructions;
      sum.busy += core.units[static_cast<size_t>(u)].busy;
    }
    rows.push_back({unit + ".instructions", sum.instructions});
    rows.push_back({unit + ".busy", sum.busy});
  }
  for (int q = 0; q < isa::kQueueCount; ++q) {
    int64_t sum = 0;
    for (const CoreReport& core : cores) sum += core.queue_full[static_cast<size_t>(q)];
    rows.push_back(
        {absl::StrCat("wait.queue_full.", std::string(isa::QueueName(isa::Queue(q)))), sum});
  }
  int64_t sync = 0, barrier = 0, completion = 0, dependent = 0;
  for (const CoreReport& core : cores) {
    sync += core.sync_wait;
    barrier += core.barrier_wait;
    completion += core.completion_wait;
    dependent += core.dependent_wait;
  }
  rows.push_back({"wait.sync", sync});
  rows.push_back({"wait.barrier", barrier});
  rows.push_back({"wait.completion", completion});
  rows.push_back({"wait.dependent", dependent});
  const std::pair<const char*, int64_t DramCounters::*> counters[] = {
      {"dram.activates", &DramCounters::activates},
      {"dram.precharges", &DramCounters::precharges},
      {"dram.precharge_alls", &DramCounters::precharge_alls},
      {"dram.reads", &DramCounters::reads},
      {"dram.writes", &DramCounters::writes},
      {"dram.refreshes", &DramCounters::refreshes},
      {"dram.hits", &DramCounters::hits},
      {"dram.misses", &DramCounters::misses},
      {"dram.conflicts", &DramCounters::conflicts},
      {"dram.forwarded", &DramCounters::forwarded},
      {"dram.merged", &DramCounters::merged},
      {"dram.drains", &DramCounters::drains}};
  for (const auto& [name, counter] : counters) {
    if (dram.empty()) break;
    int64_t sum = 0;
    for (const DramCounters& channel : dram) sum += channel.*counter;
    rows.push_back({name, sum});
  }
  for (const auto& [name, value] : actions.Rows()) {
    rows.push_back({absl::StrCat("actions.", name), value});
  }
  for (const auto& [tensor, bytes] : unwritten) {
    rows.push_back({absl::StrCat("unwritten.", tensor), bytes});
  }
  return rows;
}

std::string SerializeResult(const RunResult& result) {
  Writer writer;
  Fields(writer, result);
  return writer.Take();
}

absl::StatusOr<RunResult> ParseResult(std::string_view bytes) {
  RunResult result;
  Reader reader(bytes);
  Fields(reader, result);
  if (!reader.ok()) return absl::InternalError("the simulation's result is damaged");
  return result;
}

}  // namespace polynao::simulator
