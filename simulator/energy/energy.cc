#include "simulator/energy/energy.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "isa/granularity.h"
#include "simulator/energy/sram.h"

namespace polynao::simulator {
namespace {

using isa::Space;
using isa::Unit;

constexpr ir::Type kMacTypes[] = {ir::Type::kI8, ir::Type::kI16, ir::Type::kF16, ir::Type::kF32};

std::string MacRow(ir::Type type, std::string_view unit) {
  return absl::StrCat("tensor.mac_", std::string(ir::TypeName(type)), "_", std::string(unit));
}

double MacRate(const isa::Machine& machine, ir::Type type) {
  return static_cast<double>(
      machine.Get(absl::StrCat("tensor.macs_", std::string(ir::TypeName(type)))));
}

// fJ of what DRAM did. Where the run counts no commands, of the bytes that crossed its pins.
double DramEnergy(const RunResult& result, const DramScale& scale, const EnergyTable& table) {
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
  const double bursts = static_cast<double>(reads + writes) * scale.burst;
  return static_cast<double>(acts) * scale.row * table.Get("dram.act_fj") +
         static_cast<double>(reads) * scale.burst * table.Get("dram.rd_fj") +
         static_cast<double>(writes) * scale.burst * table.Get("dram.wr_fj") +
         static_cast<double>(refreshes) * scale.rank_size * table.Get("dram.ref_fj") +
         bursts * table.Get("dram.burst_bits") * table.Get("dram.io_fj_per_bit");
}

// mW of DRAM over a run. A channel of which a row was opened has some open nearly all of the time, as none is closed
// before it must be; the others have none.
double StandbyOf(const RunResult& result, const isa::Machine& machine, const EnergyTable& table) {
  if (result.dram.empty()) return 0;
  const DramStandby standby = DramStandbyOf(machine, table);
  double opened = 0;
  for (const DramCounters& channel : result.dram) opened += channel.activates > 0 ? 1 : 0;
  const double part = opened / static_cast<double>(result.dram.size());
  return part * standby.active_mw + (1 - part) * standby.precharged_mw;
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

absl::StatusOr<ByComponent> StaticPowerOf(const isa::Machine& machine, const EnergyTable& table) {
  ASSIGN_OR_RETURN(const OperatingPoint point, OperatingPointOf(machine, table));
  ByComponent power = ComponentsOf(machine, table).static_mw;
  for (auto& [name, mw] : power) mw *= point.leakage;
  power.emplace_back("dram", DramStandbyOf(machine, table).active_mw);
  return power;
}

absl::StatusOr<ByComponent> PeakPower(const isa::Machine& machine, const EnergyTable& table) {
  const Components memories = ComponentsOf(machine, table);
  ASSIGN_OR_RETURN(const OperatingPoint point, OperatingPointOf(machine, table));
  // fJ a cycle and core, times MHz, is 10^-9 W.
  const double mw =
      static_cast<double>(machine.cores()) * machine.clock_ghz() * 1e3 * 1e-6 * point.energy;
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
  most.emplace_back("leakage", Total(memories.static_mw) * point.leakage);
  return most;
}

absl::StatusOr<EnergyReport> EnergyOf(const RunResult& result, const isa::Machine& machine,
                                      const EnergyTable& table) {
  const Components memories = ComponentsOf(machine, table);
  ASSIGN_OR_RETURN(const OperatingPoint point, OperatingPointOf(machine, table));
  ASSIGN_OR_RETURN(ByComponent static_mw, StaticPowerOf(machine, table));
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
  if (machine.caches_reads()) {
    const double cached = static_cast<double>(result.gmem_read_cached);
    const double brought = static_cast<double>(result.gmem_read_moved);
    const double burst = static_cast<double>(machine.Get("io_dma.burst"));
    cache = cached * memories.cache.read_fj_per_byte + brought * memories.cache.write_fj_per_byte +
            (cached + brought) / burst * memories.tag_lookup_fj;
  }
  const double crossed = static_cast<double>(result.gmem_read + result.gmem_written);
  // What a DMA reads, it writes: each byte passes its buffer once.
  double moved = 0;
  for (const auto& units : actions.bytes) {
    for (Unit unit : {Unit::kIoDma, Unit::kMoveDma}) {
      moved += static_cast<double>(units[static_cast<size_t>(unit)].read);
    }
  }

  EnergyReport report;
  report.table = table;
  const double clock_hz = static_cast<double>(machine.Get("card.clock_mhz")) * 1e6;
  report.seconds = static_cast<double>(result.end_cycle) / clock_hz;
  const double pj = 1e-3 * point.energy;
  const double mw_to_pj = report.seconds * 1e9;  // 1 mW for 1 s is 10^9 pJ
  const double leakage_mw = Total(static_mw) - ValueOf(static_mw, "dram");
  report.energy_pj = {{"tensor", tensor * pj},
                      {"vector", vector * pj},
                      {"scalar", scalar * pj},
                      {"dma", moved * memories.dma_fj_per_byte * pj},
                      {"nmem", memory(Space::kNmem, memories.nmem) * pj},
                      {"wmem", memory(Space::kWmem, memories.wmem) * pj},
                      {"smem", memory(Space::kSmem, memories.smem) * pj},
                      {"cache", cache * pj},
                      {"link", crossed * memories.link_fj_per_byte * pj},
                      {"leakage", leakage_mw * mw_to_pj},
                      // Another chip, with a supply of its own.
                      {"dram", DramEnergy(result, memories.dram, table) * 1e-3 +
                                   StandbyOf(result, machine, table) * mw_to_pj}};
  report.area_mm2 = memories.area_mm2;
  report.static_mw = std::move(static_mw);
  report.point = point;
  const double total = Total(report.energy_pj);
  if (report.seconds > 0) {
    report.average_power_mw = total * 1e-9 / report.seconds;
    report.chip_power_mw = (total - ValueOf(report.energy_pj, "dram")) * 1e-9 / report.seconds;
  }
  ASSIGN_OR_RETURN(const ByComponent peak, PeakPower(machine, table));
  report.peak_power_mw = Total(peak);
  report.energy_delay_pj_s = total * report.seconds;
  return report;
}

}  // namespace polynao::simulator
