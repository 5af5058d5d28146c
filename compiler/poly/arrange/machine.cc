#include "compiler/poly/arrange/machine.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
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

}  // namespace

std::string CpuFileText(std::string_view name, std::string_view when, const CpuMachine& machine,
                        const CpuRates& rates) {
  const auto in_kilocycle = [&](double bytes) {
    return std::max<int64_t>(std::llround(bytes / rates.clock_hz * 1000), 1);
  };
  const std::map<std::string_view, int64_t> values = {
      {"cpu.l1_bytes", machine.near_bytes},
      {"cpu.l1_ways", machine.near_ways},
      {"cpu.l2_bytes", machine.cache_bytes},
      {"cpu.clock_mhz", std::max<int64_t>(std::llround(rates.clock_hz / 1e6), 1)},
      {"cpu.threads", rates.threads},
      {"cpu.memory_of_one", in_kilocycle(rates.bytes_of_one)},
      {"cpu.memory_of_all", in_kilocycle(rates.bytes_of_all)},
      {"cpu.start", std::max<int64_t>(std::llround(rates.start_seconds * rates.clock_hz), 1)}};
  std::string quoted;
  for (const char c : name) {
    if (c >= ' ' && c != '"' && c != '\\') quoted += c;
  }
  std::string text = StrCat("name = \"", quoted.empty() ? "processor" : quoted, "\"\n\n[cpu]\n");
  for (const isa::ParameterRow& row : kRows) {
    const std::string_view key = std::string_view(row.name).substr(4);
    const bool is_cache = key.starts_with("l1") || key.starts_with("l2");
    StrAppend(&text, "# ", row.meaning, row.unit[0] != 0 ? StrCat(", ", row.unit) : "", "\n", key,
              " = { value = ", values.at(row.name), ", source = \"sourced: ",
              is_cache ? "the operating system" : StrCat("nao calibrate, ", when), "\" }\n");
  }
  return text;
}

absl::StatusOr<CpuMachine> WithCpuFile(CpuMachine machine, std::string_view text,
                                       std::string_view file) {
  ASSIGN_OR_RETURN(const isa::ParameterFile parameters, isa::ReadParameterFile(text, file, kRows));
  std::map<std::string_view, int64_t> values;
  for (const isa::MachineParameter& parameter : parameters.parameters)
    values[parameter.name] = parameter.value;
  machine.near_bytes = values["cpu.l1_bytes"];
  machine.near_ways = static_cast<int>(values["cpu.l1_ways"]);
  machine.cache_bytes = values["cpu.l2_bytes"];
  const auto one = static_cast<double>(values["cpu.memory_of_one"]);
  const auto all = static_cast<double>(values["cpu.memory_of_all"]);
  machine.cycles_per_byte = 1000 / one;
  const auto others = static_cast<double>(values["cpu.threads"] - 1);
  const double more = others > 0 ? std::max(all / one - 1, 0.0) / others : 0;
  machine.memory_scaling = 1 + more * std::min<double>(machine.cores - 1, others);
  machine.parallel_cycles = static_cast<double>(values["cpu.start"]);
  return machine;
}

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
