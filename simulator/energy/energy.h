// Energy, power and area of a run: what its instructions did, times an energy table. docs/energy.md states every formula.
#ifndef SIMULATOR_ENERGY_ENERGY_H_
#define SIMULATOR_ENERGY_ENERGY_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/machine.h"
#include "simulator/energy/table.h"
#include "simulator/report.h"

namespace polynao::simulator {

// (component, value), in a fixed order: tensor, vector, scalar, dma, nmem, wmem, smem, cache, link, dram, leakage.
using ByComponent = std::vector<std::pair<std::string, double>>;

// The sum over components.
double Total(const ByComponent& components);
// The component's value; 0 if it is not there.
double ValueOf(const ByComponent& components, std::string_view name);

struct EnergyReport {
  EnergyTable table;
  ByComponent energy_pj;
  ByComponent area_mm2;
  double seconds = 0;           // from the first instruction to the last that completed
  double average_power_mw = 0;  // total energy / seconds; DRAM included
  double chip_power_mw = 0;     // without DRAM, which is another chip
  double peak_power_mw = 0;     // PeakPower
  double energy_delay_pj_s = 0;
};

// Error: the run did something for which the table has no row, such as vector operations in f64.
absl::StatusOr<EnergyReport> EnergyOf(const RunResult& result, const isa::Machine& machine,
                                      const EnergyTable& table);

// mm2 of the chip: all components but DRAM.
ByComponent AreaOf(const isa::Machine& machine, const EnergyTable& table);

// mW by component while all tensor units run at their full rate, of the type that takes most, with operands from NMEM
// and WMEM and no other traffic. What published power figures are compared with.
ByComponent PeakPower(const isa::Machine& machine, const EnergyTable& table);

}  // namespace polynao::simulator

#endif  // SIMULATOR_ENERGY_ENERGY_H_
