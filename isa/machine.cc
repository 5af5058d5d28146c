#include "isa/machine.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "isa/dram_presets.h"

namespace polynao::isa {

// Declared for others in machine_rows.h, whose target depends on this one.
absl::Span<const ParameterRow> MachineRows();

namespace {

constexpr int64_t kMaxCycles = 1'000'000;
constexpr int64_t kLargestType = 8;  // bytes

// Every parameter a machine file states, in the order of the documentation.
constexpr ParameterRow kSchema[] = {
    {"card.clusters", "", 1, 64, "clusters"},
    {"card.clock_mhz", "MHz", 1, 100'000, "clock; turns cycles into time"},
    {"card.supply_mv", "mV", 500, 1300,
     "supply, for energy alone; not stated: the least that the clock needs", false, true},
    {"card.launch", "cycles", 0, 1'000'000'000, "host's launch cost, reported apart"},
    {"cluster.cores", "", 1, 16, "cores in a cluster, without the memory core"},
    {"cluster.smem_kib", "KiB", 1, 1 << 20, "SMEM"},
    {"cluster.smem_edram", "", 0, 1, "1: SMEM is embedded DRAM, for energy and area alone", false,
     true},
    {"cluster.smem_reserved_kib", "KiB", 0, 1 << 20, "SMEM that programs may not use"},
    {"cluster.link_bytes", "B/cycle", 1, 1 << 16, "link to GMEM, each direction"},
    {"cluster.store_segments", "", 0, 4096,
     "segments of a cluster's stores in flight; 0: any number"},
    {"core.nmem_kib", "KiB", 1, 1 << 20, "NMEM"},
    {"core.nmem_reserved_kib", "KiB", 0, 1 << 20, "NMEM that programs may not use"},
    {"core.wmem_kib", "KiB", 1, 1 << 20, "WMEM, all banks together"},
    {"core.wmem_edram", "", 0, 1, "1: WMEM is embedded DRAM, for energy and area alone", false,
     true},
    {"core.queue_depth", "", 1, 4096, "instructions that wait in one queue"},
    {"core.nmem_line", "B", 0, 1 << 16,
     "line of NMEM and WMEM, one a cycle at a DMA's port; 0: no lines"},
    {"core.nmem_ports", "", 1, 2, "2: DMAs and computing do not disturb each other in NMEM"},
    {"core.wmem_ports", "", 1, 2, "2: DMAs and the tensor unit do not disturb each other in WMEM"},
    {"gmem.mib", "MiB", 1, 1 << 20, "GMEM"},
    {"gmem.channels", "", 1, 64, "channels"},
    {"gmem.channel_bytes_per_kilocycle", "B/1000 cycles", 1, 1 << 26, "rate of one channel"},
    {"gmem.interleave", "B", 64, 1 << 24, "consecutive bytes on one channel"},
    {"gmem.channel_hash", "", 0, 1, "1: all address bits above the interleave choose the channel"},
    {"gmem.granule", "B", 1, 4096, "smallest access"},
    {"gmem.latency", "cycles", 0, kMaxCycles, "between channel and cluster link"},
    {"gmem.dram", "", 0, 0, "\"flat\", or the preset of its channels", true},
    {"gmem.cache_reads", "", 0, 1, "loads look into the last-level cache"},
    {"gmem.cache_kib", "KiB", 0, 1 << 20, "last-level cache, of all channels together; 0: none"},
    {"gmem.cache_bytes", "B/cycle", 1, 1 << 16, "rate of one channel's slice of the cache"},
    {"gmem.cache_latency", "cycles", 0, kMaxCycles, "between cache and cluster link"},
    {"scalar.issue", "cycles", 1, 1000, "from issue until an instruction is in its queue"},
    {"scalar.simple", "cycles", 1, 1000, "moves, integer arithmetic, branches"},
    {"scalar.div", "cycles", 1, 1000, "integer division"},
    {"scalar.nmem", "cycles", 1, 1000, "scalar access to NMEM"},
    {"scalar.dependent", "cycles", 0, 1000,
     "from the end of an instruction until its result can be read"},
    {"vector.start", "cycles", 0, kMaxCycles, "start of an instruction"},
    {"vector.bytes", "B/cycle", 1, 1 << 16, "bytes of one operand a cycle"},
    {"vector.slow", "", 1, 1024, "how much slower division, exp, log, ... are"},
    {"tensor.start", "cycles", 0, kMaxCycles, "start of an instruction"},
    {"tensor.macs_i8", "MAC/cycle", 0, 1 << 24, "i8 operands; 0: not supported"},
    {"tensor.macs_i16", "MAC/cycle", 0, 1 << 24, "i16 operands"},
    {"tensor.macs_f16", "MAC/cycle", 0, 1 << 24, "f16 operands"},
    {"tensor.macs_f32", "MAC/cycle", 0, 1 << 24, "f32 operands"},
    {"tensor.read_bytes", "B/cycle", 1, 1 << 16, "inputs and sums that it reads from NMEM"},
    {"tensor.write_bytes", "B/cycle", 1, 1 << 16, "sums that it writes to NMEM"},
    {"io_dma.start", "cycles", 0, kMaxCycles, "start of an instruction"},
    {"io_dma.transfers", "", 1, 64, "transfers of a queue in flight"},
    {"io_dma.port_bytes", "B/cycle", 1, 1 << 16, "a core's port to the cluster link"},
    {"io_dma.memory_core_port_bytes", "B/cycle", 1, 1 << 16, "the memory core's port"},
    {"io_dma.burst", "B", 1, 1 << 20, "largest burst; bursts do not cross multiples of it"},
    {"io_dma.outstanding", "", 1, 4096, "bursts in flight"},
    {"io_dma.strided_reads", "", 1, 4096, "segments in flight of a strided load"},
    {"io_dma.strided_writes", "", 1, 4096, "segments in flight of a strided store"},
    {"move_dma.start", "cycles", 0, kMaxCycles, "start of an instruction"},
    {"move_dma.transfers", "", 1, 64, "transfers of a queue in flight"},
    {"move_dma.port_bytes", "B/cycle", 1, 1 << 16, "a core's port to SMEM"},
    {"move_dma.outstanding", "", 1, 4096, "bursts in flight"},
    {"smem.bytes", "B/cycle", 1, 1 << 16, "SMEM's port, shared by the cluster"},
    {"smem.granule", "B", 1, 4096, "smallest access"},
    {"smem.burst", "B", 1, 1 << 20, "largest burst"},
    {"smem.latency", "cycles", 0, kMaxCycles, "between SMEM and a core's port"},
    {"sync.drain", "cycles", 0, kMaxCycles, "added to waiting for queues"},
    {"sync.cluster", "cycles", 0, kMaxCycles, "from the last arrival at a cluster barrier"},
    {"sync.global", "cycles", 0, kMaxCycles, "from the last arrival at a global barrier"},
};

thread_local ParameterReads* parameter_reads = nullptr;

void NoteRead(std::string_view dotted_name) {
  if (parameter_reads != nullptr) parameter_reads->Note(dotted_name);
}

// Megabits that the DRAM's data bus moves in 1000 seconds, and bytes that the DRAM of all channels holds.
__int128 DramRate(const Machine& m) {
  return static_cast<__int128>(m.Get("dram.clock_mhz")) * m.Get("dram.beats_per_clock") *
         m.Get("dram.bus_bits") * 1000;
}
__int128 DramCapacity(const Machine& m) {
  return static_cast<__int128>(m.Get("dram.ranks")) * m.Get("dram.bank_groups") *
         m.Get("dram.banks") * m.Get("dram.rows") * m.Get("dram.row_bytes") *
         m.Get("gmem.channels");
}

// The rate of a channel of DRAM, in bytes in 1000 cycles. Rounded up, so that a bound that is computed from it remains
// one.
int64_t DramChannelRate(const Machine& m) {
  const __int128 bits_a_cycle = static_cast<__int128>(m.Get("card.clock_mhz")) * 8;
  return static_cast<int64_t>((DramRate(m) + bits_a_cycle - 1) / bits_a_cycle);
}

// The DRAM's data bus moves what a channel is said to move, and its rows hold GMEM.
absl::Status CheckDram(const Machine& m, std::string_view place) {
  const int64_t rate = m.Get("gmem.channel_bytes_per_kilocycle");
  if (rate != DramChannelRate(m)) {
    return InvalidInput(std::string(place), ": gmem.channel_bytes_per_kilocycle (", rate,
                        ") at card.clock_mhz (", m.Get("card.clock_mhz"),
                        ") must be the rate of gmem.dram, rounded up: ", DramChannelRate(m),
                        ", from dram.clock_mhz (", m.Get("dram.clock_mhz"),
                        ") x dram.beats_per_clock (", m.Get("dram.beats_per_clock"),
                        ") x dram.bus_bits (", m.Get("dram.bus_bits"), ") / 8, ",
                        static_cast<int64_t>(DramRate(m) / 8 / 1000), " MB/s");
  }
  const __int128 capacity = DramCapacity(m);
  if ((static_cast<__int128>(m.Get("gmem.mib")) << 20) > capacity) {
    return InvalidInput(std::string(place), ": gmem.mib (", m.Get("gmem.mib"),
                        ") must be at most what the DRAM of gmem.channels (",
                        m.Get("gmem.channels"), ") holds, ", static_cast<int64_t>(capacity >> 20),
                        " MiB");
  }
  if (m.caches_reads()) {
    return InvalidInput(std::string(place),
                        ": loads cannot look into a cache before DRAM: with gmem.dram (",
                        m.GetText("gmem.dram"), ") gmem.cache_reads or gmem.cache_kib must be 0");
  }
  return absl::OkStatus();
}

// Relations between parameters.
absl::Status CheckConsistent(const Machine& m, std::string_view place) {
  const auto smaller = [&](const char* a, const char* b) -> absl::Status {
    if (m.Get(a) < m.Get(b)) return absl::OkStatus();
    return InvalidInput(std::string(place), ": ", a, " (", m.Get(a), ") must be less than ", b,
                        " (", m.Get(b), ")");
  };
  const auto divides = [&](const char* a, const char* b) -> absl::Status {
    if (m.Get(b) % m.Get(a) == 0) return absl::OkStatus();
    return InvalidInput(std::string(place), ": ", b, " (", m.Get(b), ") must be a multiple of ", a,
                        " (", m.Get(a), ")");
  };
  RETURN_IF_ERROR(smaller("core.nmem_reserved_kib", "core.nmem_kib"));
  RETURN_IF_ERROR(smaller("cluster.smem_reserved_kib", "cluster.smem_kib"));
  if (m.Get("io_dma.burst") % kLargestType != 0) {
    return InvalidInput(std::string(place), ": io_dma.burst (", m.Get("io_dma.burst"),
                        ") must be a multiple of ", kLargestType, ", the size of the largest type");
  }
  RETURN_IF_ERROR(divides("gmem.granule", "io_dma.burst"));
  RETURN_IF_ERROR(divides("io_dma.burst", "gmem.interleave"));
  RETURN_IF_ERROR(divides("smem.granule", "smem.burst"));
  if (const int64_t cache = m.Get("gmem.cache_kib") * 1024; cache > 0) {
    // A line is a burst; each channel has at least one, and says of each granule whether it holds.
    constexpr int64_t kMaxGranules = 64;
    const int64_t line = m.Get("io_dma.burst");
    if (cache / m.Get("gmem.channels") < line) {
      return InvalidInput(std::string(place), ": gmem.cache_kib (", m.Get("gmem.cache_kib"),
                          ") must be 0 or hold a line of io_dma.burst (", line,
                          ") bytes for each of gmem.channels (", m.Get("gmem.channels"), ")");
    }
    if (line / m.Get("gmem.granule") > kMaxGranules) {
      return InvalidInput(std::string(place), ": with a cache io_dma.burst (", line,
                          ") must be at most ", kMaxGranules, " times gmem.granule (",
                          m.Get("gmem.granule"), ")");
    }
  }
  return m.has_dram() ? CheckDram(m, place) : absl::OkStatus();
}

// A value that replaces a file's.
struct Override {
  const ParameterRow* row;
  std::string place;
  int64_t value;
  std::string text;
};

absl::StatusOr<Override> ParseOverride(const std::string& override) {
  const size_t equals = override.find('=');
  Override result{nullptr, absl::StrCat("override \"", override, "\""), 0, ""};
  const std::string name = override.substr(0, equals);
  result.row = FindParameter(MachineRows(), name);
  const bool is_text = result.row != nullptr && result.row->is_text;
  if (equals != std::string::npos) result.text = override.substr(equals + 1);
  if (equals == std::string::npos || (!is_text && !absl::SimpleAtoi(result.text, &result.value))) {
    return InvalidInput(result.place, ": expected NAME=", is_text ? "TEXT" : "INTEGER");
  }
  if (result.row == nullptr) return InvalidInput(result.place, ": there is no parameter ", name);
  if (!is_text) RETURN_IF_ERROR(CheckRange(*result.row, result.place, result.value));
  return result;
}

bool IsOfDram(std::string_view name) { return name.starts_with("dram."); }

void SetParameter(Machine& machine, const MachineParameter& parameter, bool is_text) {
  if (is_text) {
    machine.SetText(parameter.name, parameter.text);
  } else {
    machine.Set(parameter.name, parameter.value);
  }
}

// The machine of a file with another gmem.dram than it states, if `dram` is not empty.
absl::StatusOr<Machine> Resolve(const ParameterFile& file, std::string_view place,
                                const std::string& dram) {
  Machine machine;
  machine.name = file.name;
  for (const MachineParameter& parameter : file.parameters) {
    if (IsOfDram(parameter.name)) continue;
    SetParameter(machine, parameter, FindParameter(MachineRows(), parameter.name)->is_text);
  }
  if (!dram.empty()) machine.SetText("gmem.dram", dram);
  if (!machine.has_dram()) return machine;
  absl::StatusOr<ParameterFile> preset = ReadDramPreset(machine.GetText("gmem.dram"));
  if (!preset.ok()) {
    return WithContext(absl::StrCat(std::string(place), ": gmem.dram"), preset.status());
  }
  for (const ParameterFile* source : {static_cast<const ParameterFile*>(&*preset), &file}) {
    for (const MachineParameter& parameter : source->parameters) {
      if (!IsOfDram(parameter.name)) continue;
      SetParameter(machine, parameter, FindParameter(MachineRows(), parameter.name)->is_text);
    }
  }
  return machine;
}

// What follows from the DRAM where overrides change it but do not give it: the rate of a channel, no more GMEM than
// there are rows, and no less time between two ACTs of a bank than a row is open and closed.
void FollowDram(Machine& m, absl::Span<const Override> overrides) {
  const auto given = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(overrides.begin(), overrides.end(), [&](const Override& o) {
      return std::find(names.begin(), names.end(), o.row->name) != names.end();
    });
  };
  if (!m.has_dram()) return;
  if (!given({"gmem.channel_bytes_per_kilocycle"}) &&
      given({"gmem.dram", "card.clock_mhz", "dram.clock_mhz", "dram.beats_per_clock",
             "dram.bus_bits"})) {
    m.Set("gmem.channel_bytes_per_kilocycle", DramChannelRate(m));
  }
  if (!given({"gmem.mib"})) {
    m.Set("gmem.mib",
          static_cast<int64_t>(std::min<__int128>(m.Get("gmem.mib"), DramCapacity(m) >> 20)));
  }
  if (!given({"dram.trc"}) && given({"dram.tras", "dram.trp"})) {
    m.Set("dram.trc", std::max(m.Get("dram.trc"), m.Get("dram.tras") + m.Get("dram.trp")));
  }
}

}  // namespace

absl::Span<const ParameterRow> MachineRows() {
  static const auto* rows = [] {
    auto* result = new std::vector<ParameterRow>(std::begin(kSchema), std::end(kSchema));
    for (ParameterRow row : DramRows()) {
      row.is_optional = true;
      result->push_back(row);
    }
    return result;
  }();
  return *rows;
}

ParameterReads::ParameterReads() : outer_(parameter_reads) { parameter_reads = this; }
ParameterReads::~ParameterReads() {
  parameter_reads = outer_;
  if (outer_ != nullptr) outer_->names_.merge(names_);
}

void ParameterReads::Note(std::string_view dotted_name) {
  if (!names_.contains(dotted_name)) names_.emplace(dotted_name);
}

std::map<std::string, std::string> ParameterReads::Values(const Machine& machine) const {
  std::map<std::string, std::string> values;
  for (const std::string& name : names_) values[name] = machine.Text(name);
  return values;
}

const int64_t* Machine::Find(std::string_view dotted_name) const {
  NoteRead(dotted_name);
  const auto found = parameters_.find(dotted_name);
  return found == parameters_.end() ? nullptr : &found->second;
}

int64_t Machine::Get(std::string_view dotted_name) const {
  const int64_t* found = Find(dotted_name);
  POLYNAO_CHECK(found != nullptr) << "no machine parameter " << dotted_name;
  return *found;
}

const std::string& Machine::GetText(std::string_view dotted_name) const {
  NoteRead(dotted_name);
  const auto found = texts_.find(dotted_name);
  POLYNAO_CHECK(found != texts_.end()) << "no machine parameter " << dotted_name;
  return found->second;
}

std::string Machine::Text(std::string_view dotted_name) const {
  if (const auto number = parameters_.find(dotted_name); number != parameters_.end()) {
    return absl::StrCat(number->second);
  }
  const auto text = texts_.find(dotted_name);
  return text == texts_.end() ? "none" : text->second;
}

const MachineParameters& Machine::parameters() const {
  for (const auto& [dotted_name, value] : parameters_) NoteRead(dotted_name);
  return parameters_;
}

const MachineTexts& Machine::texts() const {
  for (const auto& [dotted_name, text] : texts_) NoteRead(dotted_name);
  return texts_;
}

void Machine::Set(std::string_view dotted_name, int64_t value) {
  parameters_.insert_or_assign(std::string(dotted_name), value);
}

void Machine::SetText(std::string_view dotted_name, std::string text) {
  texts_.insert_or_assign(std::string(dotted_name), std::move(text));
}

bool Machine::has_dram() const {
  NoteRead("gmem.dram");
  const auto found = texts_.find("gmem.dram");
  return found != texts_.end() && found->second != "flat";
}

bool Machine::caches_reads() const {
  // Machines that tests make up may lack parameters.
  const int64_t* kib = Find("gmem.cache_kib");
  const int64_t* reads = Find("gmem.cache_reads");
  return kib != nullptr && *kib > 0 && (reads == nullptr || *reads > 0);
}

double Machine::gmem_bytes_per_cycle() const {
  const double rate =
      static_cast<double>(Get("gmem.channels") * Get("gmem.channel_bytes_per_kilocycle")) / 1000;
  if (!has_dram() || Get("dram.trefi") == 0) return rate;
  return rate *
         (1 - static_cast<double>(Get("dram.trfc")) / static_cast<double>(Get("dram.trefi")));
}

double Machine::store_segments_per_core() const {
  const double own = static_cast<double>(Get("io_dma.strided_writes"));
  const int64_t of_cluster = Get("cluster.store_segments");
  if (of_cluster == 0) return own;
  return std::min(own, static_cast<double>(of_cluster) / static_cast<double>(cores_per_cluster()));
}

absl::StatusOr<ParameterFile> ReadMachineFile(std::string_view toml_text, std::string_view file) {
  return ReadParameterFile(toml_text, file, MachineRows());
}

absl::StatusOr<Machine> ParseMachine(std::string_view toml_text, std::string_view file,
                                     const std::vector<std::string>& overrides) {
  ASSIGN_OR_RETURN(const ParameterFile parsed, ReadMachineFile(toml_text, file));
  return MakeMachine(parsed, file, overrides);
}

absl::StatusOr<Machine> MakeMachine(const ParameterFile& parsed, std::string_view file,
                                    const std::vector<std::string>& overrides) {
  ASSIGN_OR_RETURN(Machine machine, Resolve(parsed, file, ""));
  RETURN_IF_ERROR(CheckConsistent(machine, file));
  if (overrides.empty()) return machine;
  std::vector<Override> values;
  for (const std::string& override : overrides) {
    ASSIGN_OR_RETURN(Override value, ParseOverride(override));
    values.push_back(std::move(value));
    if (std::string_view(values.back().row->name) != "gmem.dram") continue;
    ASSIGN_OR_RETURN(machine, Resolve(parsed, values.back().place, values.back().text));
  }
  for (const Override& value : values) {
    const std::string name = value.row->name;
    if (IsOfDram(name) && !machine.has_dram()) {
      return InvalidInput(value.place, ": gmem.dram is \"flat\", so there is no ", name);
    }
    if (value.row->is_text) {
      machine.SetText(name, value.text);
    } else {
      machine.Set(name, value.value);
    }
  }
  FollowDram(machine, values);
  RETURN_IF_ERROR(CheckConsistent(machine, "overrides"));
  return machine;
}

}  // namespace polynao::isa
