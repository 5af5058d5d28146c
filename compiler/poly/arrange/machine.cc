#include "compiler/poly/arrange/machine.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "isa/parameter_file.h"
#include "isa/processor/processor.h"

namespace polynao::poly {
namespace {

constexpr int64_t kMost = int64_t{1} << 40;
constexpr isa::ParameterRow kRows[] = {
    {"cpu.l1_bytes", "bytes", 1024, kMost, "the nearest cache of a core"},
    {"cpu.l1_ways", "", 2, 1024, "lines of it that one address may be in"},
    {"cpu.l2_bytes", "bytes", 1024, kMost, "the next cache, which is still one core's"},
    {"cpu.clock_mhz", "MHz", 1, 100000, "the clock while it was measured"},
    {"cpu.threads", "", 1, 4096, "cores that were measured together"},
    {"cpu.memory_of_one", "bytes / 1000 cycles", 1, 1000000, "what one core reads from memory"},
    {"cpu.memory_of_all", "bytes / 1000 cycles", 1, 100000000, "what all of them read together"},
    {"cpu.start", "cycles", 1, 100000000, "a parallel loop's start, and the wait for its end"},
};

// Rates of one core, which a file need not state. Numbers of a file are so many thousandths.
constexpr double kThousandths = 1000;
struct CoreRow {
  const char* name;
  const char* unit;
  const char* meaning;
  double CoreRates::* rate;
};
constexpr CoreRow kCoreRows[] = {
    {"core.operation", "cycles / 1000", "from one multiply-add of f32 vectors to the next",
     &CoreRates::operation},
    {"core.latency", "cycles / 1000", "until its result is there", &CoreRates::latency},
    {"core.load", "cycles / 1000", "from one load of a vector to the next", &CoreRates::load},
    {"core.store", "cycles / 1000", "from one store of a vector to the next", &CoreRates::store},
    {"core.next_bytes", "bytes / 1000 cycles", "what the second cache delivers",
     &CoreRates::next_bytes},
};
// Rows of isa/processor have names of their own: "instruction.vpdpbusd.512".
constexpr std::string_view kInstruction = "instruction.";

const std::vector<isa::ParameterRow>& Rows() {
  static const auto* rows = [] {
    auto* all = new std::vector<isa::ParameterRow>(std::begin(kRows), std::end(kRows));
    const auto add = [&](const char* name, const char* unit, const char* meaning) {
      all->push_back({name, unit, 1, 1000000, meaning, false, true});
    };
    for (const CoreRow& row : kCoreRows) add(row.name, row.unit, row.meaning);
    static std::deque<std::string> names;
    for (const isa::ProcessorInstruction& row : isa::ProcessorInstructions()) {
      names.push_back(StrCat(kInstruction, row.name));
      add(names.back().c_str(), "cycles / 1000", "from one instruction to the next");
    }
    return all;
  }();
  return *rows;
}

// "[cpu]" and `start = { value = 1, source = ".." }` of "cpu.start".
void AppendRow(std::string& text, const isa::ParameterRow& row, int64_t value,
               std::string_view source) {
  const std::string_view name = row.name;
  const std::string_view group = name.substr(0, name.find('.')),
                         key = name.substr(group.size() + 1);
  const std::string header = StrCat("\n[", group, "]\n");
  if (text.find(header) == std::string::npos) text += header;
  const bool is_quoted = key.find('.') != std::string_view::npos;
  StrAppend(&text, "# ", row.meaning, row.unit[0] != 0 ? StrCat(", ", row.unit) : "", "\n",
            is_quoted ? StrCat("\"", key, "\"") : std::string(key), " = { value = ", value,
            ", source = \"sourced: ", source, "\" }\n");
}

}  // namespace

double CoreRates::CyclesOf(const isa::ProcessorInstruction& row) const {
  const auto measured = instructions.find(row.name);
  if (measured != instructions.end()) return measured->second;
  return row.cycles > 0 ? row.cycles : operation;
}

bool CpuMachine::Collide(int64_t distance, int64_t lines) const {
  constexpr int64_t kMostWays = 4;  // of those that an address may be in: a part
  const int64_t period = near_bytes / near_ways;
  const int64_t places = period / std::gcd(distance, period);
  return lines * kMostWays > places * near_ways;
}

std::string CpuFileText(std::string_view name, std::string_view when, const CpuMachine& machine,
                        const CpuRates& rates) {
  const auto rounded = [](double value) { return std::max<int64_t>(std::llround(value), 1); };
  const auto in_kilocycle = [&](double bytes) {
    return rounded(bytes / rates.clock_hz * kThousandths);
  };
  std::map<std::string_view, int64_t> values = {
      {"cpu.l1_bytes", machine.near_bytes},
      {"cpu.l1_ways", machine.near_ways},
      {"cpu.l2_bytes", machine.cache_bytes},
      {"cpu.clock_mhz", rounded(rates.clock_hz / 1e6)},
      {"cpu.threads", rates.threads},
      {"cpu.memory_of_one", in_kilocycle(rates.bytes_of_one)},
      {"cpu.memory_of_all", in_kilocycle(rates.bytes_of_all)},
      {"cpu.start", rounded(rates.start_seconds * rates.clock_hz)}};
  for (const CoreRow& row : kCoreRows)
    values[row.name] = rounded(rates.core.*row.rate * kThousandths);
  std::string quoted;
  for (const char c : name) {
    if (c >= ' ' && c != '"' && c != '\\') quoted += c;
  }
  std::string text = StrCat("name = \"", quoted.empty() ? "processor" : quoted, "\"\n");
  const std::string measured = StrCat("nao calibrate, ", when);
  for (const isa::ParameterRow& row : Rows()) {
    const std::string_view key = row.name;
    if (key.starts_with(kInstruction)) {
      const auto it = rates.core.instructions.find(key.substr(kInstruction.size()));
      if (it == rates.core.instructions.end()) continue;
      values[key] = rounded(it->second * kThousandths);
    }
    const bool is_cache = key.starts_with("cpu.l1") || key.starts_with("cpu.l2");
    AppendRow(text, row, values.at(key), is_cache ? "the operating system" : measured);
  }
  return text;
}

absl::StatusOr<CpuMachine> WithCpuFile(CpuMachine machine, std::string_view text,
                                       std::string_view file) {
  ASSIGN_OR_RETURN(const isa::ParameterFile parameters, isa::ReadParameterFile(text, file, Rows()));
  std::map<std::string_view, int64_t> values;
  for (const isa::MachineParameter& parameter : parameters.parameters) {
    values[parameter.name] = parameter.value;
    if (parameter.name.starts_with(kInstruction)) {
      machine.rates.instructions[parameter.name.substr(kInstruction.size())] =
          static_cast<double>(parameter.value) / kThousandths;
    }
  }
  for (const CoreRow& row : kCoreRows) {
    const auto stated = values.find(row.name);
    if (stated != values.end())
      machine.rates.*row.rate = static_cast<double>(stated->second) / kThousandths;
  }
  machine.near_bytes = values["cpu.l1_bytes"];
  machine.near_ways = static_cast<int>(values["cpu.l1_ways"]);
  machine.cache_bytes = values["cpu.l2_bytes"];
  const auto one = static_cast<double>(values["cpu.memory_of_one"]);
  const auto all = static_cast<double>(values["cpu.memory_of_all"]);
  machine.cycles_per_byte = kThousandths / one;
  const auto others = static_cast<double>(values["cpu.threads"] - 1);
  const double more = others > 0 ? std::max(all / one - 1, 0.0) / others : 0;
  machine.memory_scaling = 1 + more * std::min<double>(machine.cores - 1, others);
  machine.parallel_cycles = static_cast<double>(values["cpu.start"]);
  return machine;
}

#if defined(__x86_64__)
namespace {

// Vectors of 512 bits that the core works on in two halves: Zen 4 (AMD, Software Optimization Guide for the Zen 4
// Microarchitecture, 57647, section 2.11; `nao calibrate` measures the same there).
CoreRates HalfVectorRates() {
  CoreRates rates = {.operation = 1, .load = 1, .store = 2};
  for (const isa::ProcessorInstruction& row : isa::ProcessorInstructions()) {
    const bool is_whole = row.lanes * ir::ByteSize(row.sums->type) == 64;
    if (!row.IsTile() && is_whole) rates.instructions[row.name] = rates.operation;
  }
  return rates;
}

}  // namespace
#endif

absl::StatusOr<CpuMachine> HostMachine(int cores, bool has_tiles) {
  CpuMachine machine;
  machine.cores = cores;
  machine.memory_scaling = std::min(1 + 0.4 * (cores - 1), 8.0);
#ifdef _SC_LEVEL1_DCACHE_SIZE
  if (const long bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE); bytes > 0) machine.near_bytes = bytes;
#endif
#ifdef _SC_LEVEL1_DCACHE_ASSOC
  if (const long ways = sysconf(_SC_LEVEL1_DCACHE_ASSOC); ways > 1)
    machine.near_ways = static_cast<int>(ways);
#endif
#ifdef _SC_LEVEL2_CACHE_SIZE
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) machine.cache_bytes = bytes;
#endif
#if defined(__x86_64__)
  // Vectors of 512 bits only where they do not lower the clock: from Ice Lake and Zen 4 on (avx512vbmi2).
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi2")) {
    machine.vector_bytes = 64;
    machine.vector_registers = 32;
    // Of family 19h: Zen 3 has no such vectors.
    if (__builtin_cpu_is("amdfam19h")) machine.rates = HalfVectorRates();
  } else if (!__builtin_cpu_supports("avx")) {
    machine.vector_bytes = 16;
  }
  for (const isa::ProcessorInstruction& row : isa::ProcessorInstructions()) {
    if ((row.IsTile() || !row.IsExact()) && !has_tiles) continue;
    const bool is_new =
        std::count(machine.features.begin(), machine.features.end(), row.feature) == 0;
    if (is_new && isa::HostHas(row.feature)) machine.features.push_back(row.feature);
  }
#else
  machine.vector_bytes = 16;
  machine.vector_registers = 32;
#endif
  const char* file = std::getenv("POLYNAO_CPU");
  if (file == nullptr || *file == 0) return machine;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  return WithCpuFile(std::move(machine), text, file);
}

}  // namespace polynao::poly
