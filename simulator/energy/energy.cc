#include "simulator/energy/energy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "isa/granularity.h"
#include "simulator/energy/sram.h"

namespace polynao::simulator {
namespace {

using isa::Space;
using isa::Unit;

// An operand, another one and a result at once: what the vector unit needs of NMEM each cycle.
constexpr double kVectorOperands = 3;
// Units and DMAs reach NMEM at the same time; WMEM and SMEM have one port.
constexpr int kNmemPorts = 2;

constexpr ir::Type kMacTypes[] = {ir::Type::kI8, ir::Type::kI16, ir::Type::kF16, ir::Type::kF32};

std::string MacRow(ir::Type type, std::string_view unit) {
  return absl::StrCat("tensor.mac_", std::string(ir::TypeName(type)), "_", std::string(unit));
}

double MacRate(const isa::Machine& machine, ir::Type type) {
  return static_cast<double>(
      machine.Get(absl::StrCat("tensor.macs_", std::string(ir::TypeName(type)))));
}

// Parameters that only energy and area depend on; a file need not state them.
bool IsSet(const isa::Machine& machine, std::string_view name) {
  const int64_t* const found = machine.Find(name);
  return found != nullptr && *found != 0;
}

double Kib(const isa::Machine& machine, std::string_view name) {
  return static_cast<double>(machine.Get(name)) * 1024;
}

// Every multiply-accumulate reads a weight of its own.
double WmemPort(const isa::Machine& machine) {
  double bytes = 8;
  for (ir::Type type : kMacTypes) {
    bytes = std::max(bytes, MacRate(machine, type) * ir::ByteSize(type));
  }
  return bytes;
}

struct Memories {
  MemoryFigures nmem, wmem, smem, cache;  // of one core, cluster, card
};

Memories MemoriesOf(const isa::Machine& machine, const EnergyTable& table) {
  const auto get = [&](std::string_view name) { return static_cast<double>(machine.Get(name)); };
  Memories memories;
  memories.nmem = FiguresOf({.bytes = Kib(machine, "core.nmem_kib"),
                             .port_bytes = kVectorOperands * get("vector.bytes"),
                             .ports = kNmemPorts},
                            table);
  memories.wmem = FiguresOf({.bytes = Kib(machine, "core.wmem_kib"),
                             .port_bytes = WmemPort(machine),
                             .is_edram = IsSet(machine, "core.wmem_edram")},
                            table);
  memories.smem = FiguresOf({.bytes = Kib(machine, "cluster.smem_kib"),
                             .port_bytes = get("smem.bytes"),
                             .is_edram = IsSet(machine, "cluster.smem_edram")},
                            table);
  if (machine.Get("gmem.cache_kib") > 0) {
    const double channels = get("gmem.channels");
    memories.cache = FiguresOf(
        {.bytes = Kib(machine, "gmem.cache_kib") / channels, .port_bytes = get("gmem.cache_bytes")},
        table);
    memories.cache.um2 *= channels;
    memories.cache.static_uw *= channels;
  }
  return memories;
}

// Microwatts: leakage of laid-out logic and of memories.
double StaticPower(const isa::Machine& machine, const EnergyTable& table) {
  const Memories memories = MemoriesOf(machine, table);
  const ByComponent area = AreaOf(machine, table);
  double logic = 0;
  for (const char* name : {"tensor", "vector", "scalar", "dma"}) logic += ValueOf(area, name);
  return logic * table.Get("logic.leakage_uw_per_mm2") +
         static_cast<double>(machine.cores()) *
             (memories.nmem.static_uw + memories.wmem.static_uw) +
         static_cast<double>(machine.clusters()) * memories.smem.static_uw +
         memories.cache.static_uw;
}

// fJ of what DRAM did. Where the run counts no commands, of the bytes that crossed its pins.
double DramEnergy(const RunResult& result, const EnergyTable& table) {
  int64_t acts = 0, reads = 0, writes = 0, refreshes = 0;
  for (const DramCounters& channel : result.dram) {
    acts += channel.activates;
    reads += channel.reads;
    writes += channel.writes;
    refreshes += channel.refreshes;
  }
  if (result.dram.empty()) {
    const double bits = 8 * static_cast<double>(result.gmem_read_moved + result.gmem_written_moved);
    return bits * table.Get("dram.flat_fj_per_bit");
  }
  const double bits = static_cast<double>(reads + writes) * table.Get("dram.burst_bits");
  return static_cast<double>(acts) * table.Get("dram.act_fj") +
         static_cast<double>(reads) * table.Get("dram.rd_fj") +
         static_cast<double>(writes) * table.Get("dram.wr_fj") +
         static_cast<double>(refreshes) * table.Get("dram.ref_fj") +
         bits * table.Get("dram.io_fj_per_bit");
}

// fJ of one unit's operations: `counts` times the rows "PREFIX_TYPE_fj".
absl::Status AddOperations(const isa::ActionCounts::ByType<int64_t>& counts,
                           std::string_view prefix, const EnergyTable& table, double* fj) {
  for (size_t t = 0; t < counts.size(); ++t) {
    if (counts[t] == 0) continue;
    const std::string row =
        absl::StrCat(std::string(prefix), "_", std::string(ir::TypeName(ir::Type(t))), "_fj");
    if (!table.Has(row)) {
      return InvalidInput("energy table ", table.name(), " has no row ", row,
                          ": expected one, the run did ", counts[t]);
    }
    *fj += static_cast<double>(counts[t]) * table.Get(row);
  }
  return absl::OkStatus();
}

}  // namespace

double Total(const ByComponent& components) {
  double sum = 0;
  for (const auto& [name, value] : components) sum += value;
  return sum;
}

double ValueOf(const ByComponent& components, std::string_view name) {
  for (const auto& [each, value] : components) {
    if (each == name) return value;
  }
  return 0;
}

ByComponent AreaOf(const isa::Machine& machine, const EnergyTable& table) {
  const Memories memories = MemoriesOf(machine, table);
  const double cores = static_cast<double>(machine.cores());
  const double clusters = static_cast<double>(machine.clusters());
  const double mm2 = 1e-6;
  const double laid_out = mm2 * 1000 / table.Get("logic.density_permille");
  // Multipliers of one type serve the others where they can, so the largest need decides.
  double tensor = 0;
  for (ir::Type type : kMacTypes) {
    tensor = std::max(tensor, MacRate(machine, type) * table.Get(MacRow(type, "um2")));
  }
  const double lanes =
      static_cast<double>(machine.Get("vector.bytes")) * table.Get("vector.lane_um2");
  // A memory core has a scalar unit and DMAs too.
  const double issuers = cores + clusters;
  return {{"tensor", cores * tensor * laid_out},
          {"vector", cores * lanes * laid_out},
          {"scalar", issuers * table.Get("scalar.core_um2") * laid_out},
          {"dma", issuers * 2 * table.Get("dma.um2") * laid_out},
          {"nmem", cores * memories.nmem.um2 * mm2},
          {"wmem", cores * memories.wmem.um2 * mm2},
          {"smem", clusters * memories.smem.um2 * mm2},
          {"cache", memories.cache.um2 * mm2}};
}

ByComponent PeakPower(const isa::Machine& machine, const EnergyTable& table) {
  const Memories memories = MemoriesOf(machine, table);
  // fJ a cycle and core, times MHz, is 10^-9 W.
  const double mw = static_cast<double>(machine.cores()) * machine.clock_ghz() * 1e3 * 1e-6;
  ByComponent most = {{"tensor", 0}, {"nmem", 0}, {"wmem", 0}};
  for (ir::Type type : kMacTypes) {
    const double rate = MacRate(machine, type);
    const double bytes = rate * ir::ByteSize(type);
    const ByComponent power = {
        {"tensor", mw * rate * table.Get(MacRow(type, "fj"))},
        {"nmem", mw * bytes / isa::kTensorLanes * memories.nmem.read_fj_per_byte},
        {"wmem", mw * bytes * memories.wmem.read_fj_per_byte}};
    if (Total(power) > Total(most)) most = power;
  }
  most.push_back({"leakage", StaticPower(machine, table) / 1000});
  return most;
}

absl::StatusOr<EnergyReport> EnergyOf(const RunResult& result, const isa::Machine& machine,
                                      const EnergyTable& table) {
  const Memories memories = MemoriesOf(machine, table);
  const isa::ActionCounts& actions = result.actions;
  double tensor = 0, vector = 0, scalar = 0;  // fJ
  RETURN_IF_ERROR(AddOperations(actions.macs, "tensor.mac", table, &tensor));
  RETURN_IF_ERROR(AddOperations(actions.element_ops, "vector.op", table, &vector));
  RETURN_IF_ERROR(AddOperations(actions.slow_ops, "vector.slow", table, &vector));
  // Every instruction is fetched, decoded and issued by a scalar unit.
  scalar = static_cast<double>(result.instruction_count()) * table.Get("scalar.instruction_fj");

  const auto memory = [&](Space space, const MemoryFigures& figures) {
    double fj = 0;
    for (const isa::ActionCounts::Bytes& bytes : actions.bytes[static_cast<size_t>(space)]) {
      fj += static_cast<double>(bytes.read) * figures.read_fj_per_byte +
            static_cast<double>(bytes.written) * figures.write_fj_per_byte;
    }
    return fj;
  };
  // What the cache did not have, a channel brings and the cache keeps.
  double cache = 0;
  if (machine.Get("gmem.cache_kib") > 0) {
    cache = static_cast<double>(result.gmem_read_cached) * memories.cache.read_fj_per_byte +
            static_cast<double>(result.gmem_read_moved) * memories.cache.write_fj_per_byte;
  }
  const double crossed = static_cast<double>(result.gmem_read + result.gmem_written);

  EnergyReport report;
  report.table = table;
  const double clock_hz = static_cast<double>(machine.Get("card.clock_mhz")) * 1e6;
  report.seconds = static_cast<double>(result.end_cycle) / clock_hz;
  const double channels_uw =
      static_cast<double>(machine.Get("gmem.channels")) * table.Get("dram.static_uw");
  const double pj = 1e-3;
  const double uw_to_pj = report.seconds * 1e6;  // 1 uW for 1 s is 10^6 pJ
  report.energy_pj = {{"tensor", tensor * pj},
                      {"vector", vector * pj},
                      {"scalar", scalar * pj},
                      {"nmem", memory(Space::kNmem, memories.nmem) * pj},
                      {"wmem", memory(Space::kWmem, memories.wmem) * pj},
                      {"smem", memory(Space::kSmem, memories.smem) * pj},
                      {"cache", cache * pj},
                      {"link", crossed * table.Get("link.fj_per_byte") * pj},
                      {"leakage", StaticPower(machine, table) * uw_to_pj},
                      {"dram", DramEnergy(result, table) * pj + channels_uw * uw_to_pj}};
  report.area_mm2 = AreaOf(machine, table);
  const double total = Total(report.energy_pj);
  if (report.seconds > 0) {
    report.average_power_mw = total * 1e-9 / report.seconds;
    report.chip_power_mw = (total - ValueOf(report.energy_pj, "dram")) * 1e-9 / report.seconds;
  }
  report.peak_power_mw = Total(PeakPower(machine, table));
  report.energy_delay_pj_s = total * report.seconds;
  return report;
}

}  // namespace polynao::simulator
