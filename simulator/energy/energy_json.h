// Energy reports as JSON and as text, for `nao run` and `nao sim`.
#ifndef SIMULATOR_ENERGY_ENERGY_JSON_H_
#define SIMULATOR_ENERGY_ENERGY_JSON_H_

#include <string>

#include "nlohmann/json_fwd.hpp"
#include "simulator/energy/energy.h"

namespace polynao::simulator {

// Adds energy_pj, area_mm2 (by component, with their totals), average_power_mw, chip_power_mw, peak_power_mw,
// energy_delay_pj_s, and energy_table with every row's value, unit and source.
void AddEnergy(const EnergyReport& report, nlohmann::ordered_json& json);

// A table of components: energy, share of it, area.
std::string EnergyText(const EnergyReport& report);

}  // namespace polynao::simulator

#endif  // SIMULATOR_ENERGY_ENERGY_JSON_H_
