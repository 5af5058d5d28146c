// Energy, power and area of a run: what its instructions did, times an energy table. docs/energy.md states every
// formula.
#ifndef SIMULATOR_ENERGY_ENERGY_H_
#define SIMULATOR_ENERGY_ENERGY_H_

#include "absl/status/statusor.h"
#include "isa/machine.h"
#include "simulator/energy/components.h"
#include "simulator/energy/table.h"
#include "simulator/report.h"

namespace polynao::simulator {

struct EnergyReport {
  EnergyTable table;
  ByComponent energy_pj;
  ByComponent area_mm2;
  ByComponent
      static_mw;  // leakage of the chip's parts, at the supply; dram: standby, all rows open
  OperatingPoint point;
  double seconds = 0;           // from the first instruction to the last that completed
  double average_power_mw = 0;  // total energy / seconds; DRAM included
  double chip_power_mw = 0;     // without DRAM, which is another chip
  double peak_power_mw = 0;     // PeakPower
  double energy_delay_pj_s = 0;
};

// Errors: the run did something for which the table has no row, such as vector operations in f64; those of
// OperatingPointOf.
absl::StatusOr<EnergyReport> EnergyOf(const RunResult& result, const isa::Machine& machine,
                                      const EnergyTable& table);

// Leakage of the chip's parts at the machine's supply, and "dram", standby with all rows open. Errors: those of
// OperatingPointOf.
absl::StatusOr<ByComponent> StaticPowerOf(const isa::Machine& machine, const EnergyTable& table);

// mW by component while all tensor units run at their full rate, of the type that takes most, with operands from NMEM
// and WMEM and no other traffic, and the chip's leakage. What published power figures are compared with. Errors: those
// of OperatingPointOf.
absl::StatusOr<ByComponent> PeakPower(const isa::Machine& machine, const EnergyTable& table);

}  // namespace polynao::simulator

#endif  // SIMULATOR_ENERGY_ENERGY_H_
