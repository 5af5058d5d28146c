// Lists what a card is made of, as a machine's parameters say: area, leakage and energies per access of its parts, from
// an energy table. docs/energy.md states every formula; axes.h says which parameters have no price.
#ifndef SIMULATOR_ENERGY_COMPONENTS_H_
#define SIMULATOR_ENERGY_COMPONENTS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/machine.h"
#include "simulator/energy/sram.h"
#include "simulator/energy/table.h"

namespace polynao::simulator {

// (component, value), in a fixed order: tensor, vector, scalar, queue, dma, nmem, wmem, smem, cache, link, controller,
// phy, dram, leakage. Not every list has all of them.
using ByComponent = std::vector<std::pair<std::string, double>>;

// The sum over components.
double Total(const ByComponent& components);
// The component's value; 0 if it is not there.
double ValueOf(const ByComponent& components, std::string_view name);

// The supply of a machine's clock, and what it makes of a table's energies and leakage. Area does not change: it is the
// same circuit.
struct OperatingPoint {
  double volts = 0;
  double energy = 1;   // (V / V of the table)^2
  double leakage = 1;  // (V / V of the table)^3
};

// card.supply_mv, or the least supply with which card.clock_mhz is met by logic that meets technology.clock_mhz at
// technology.supply_mv (SupplyFor). Error: a clock that no supply, or not that supply, meets.
absl::StatusOr<OperatingPoint> OperatingPointOf(const isa::Machine& machine,
                                                const EnergyTable& table);

// Of a table's DRAM rows, which are those of its preset, to the machine's channels.
struct DramScale {
  double rate = 1;       // bytes a second of a channel
  double bus = 1;        // bits of the data bus, so devices of a rank
  double ranks = 1;      // of a channel; not relative
  double burst = 1;      // bits of one RD or WR
  double row = 1;        // bytes of a row
  double rank_size = 1;  // bytes of a rank
};

struct Components {
  MemoryFigures nmem, wmem, smem;  // of one core, core, cluster
  MemoryFigures cache;             // of all channels; without energies if there is none
  double tag_lookup_fj = 0;        // of the cache
  double link_fj_per_byte = 0;
  double dma_fj_per_byte = 0;
  DramScale dram;
  ByComponent area_mm2;
  ByComponent static_mw;  // at the table's supply
};

Components ComponentsOf(const isa::Machine& machine, const EnergyTable& table);

// mm2 of the chip: all components but DRAM.
ByComponent AreaOf(const isa::Machine& machine, const EnergyTable& table);

// mW of DRAM while nothing is asked of it: all rows of all channels' ranks open, or none. 0 if GMEM is flat, whose
// energy for a bit is all there is.
struct DramStandby {
  double active_mw = 0;
  double precharged_mw = 0;
};
DramStandby DramStandbyOf(const isa::Machine& machine, const EnergyTable& table);

}  // namespace polynao::simulator

#endif  // SIMULATOR_ENERGY_COMPONENTS_H_
