#include "cases/card_run.h"

#include <algorithm>

#include "base/status.h"
#include "base/text.h"
#include "nlohmann/json.hpp"
#include "simulator/dram/bound.h"
#include "simulator/dram/preset.h"
#include "simulator/energy/energy_json.h"
#include "simulator/page/run_json.h"

namespace polynao::cases {

absl::StatusOr<CardBounds> CardBoundsOf(const isa::Machine& machine, const isa::Work& work,
                                        int64_t written) {
  ASSIGN_OR_RETURN(const isa::Bound bound, isa::BoundOf(machine, work));
  CardBounds bounds = {.cycles = bound.cycles, .by = std::string(bound.by)};
  if (machine.has_dram()) {
    ASSIGN_OR_RETURN(const simulator::DramTiming timing, simulator::DramOf(machine));
    bounds.dram_cycles = simulator::DramBoundCycles(timing, machine.Get("card.clock_mhz"),
                                                    machine.Get("gmem.channels"),
                                                    work.gmem_bytes - written, written);
  }
  ASSIGN_OR_RETURN(const int64_t reach, isa::ReachOf(machine, work));
  bounds.reach = std::max(reach, bounds.dram_cycles);
  return bounds;
}

absl::StatusOr<std::optional<simulator::EnergyTable>> EnergyTableOf(const isa::Machine& machine,
                                                                    const std::string& name) {
  if (name.empty()) return std::nullopt;
  return simulator::LoadEnergyTable(name, machine.GetText("gmem.dram"));
}

void AddCardRun(const simulator::RunResult& run, const isa::Machine& machine,
                const CardBounds& bounds, double simulate_ms,
                const std::optional<simulator::EnergyReport>& energy,
                nlohmann::ordered_json& json) {
  json["cycles"] = run.cycles;
  json["time_ns"] = static_cast<double>(run.cycles) / machine.clock_ghz();
  json["launch_cycles"] = run.launch_cycles;
  json["bound_cycles"] = bounds.cycles;
  json["bound_by"] = bounds.by;
  json["reach_cycles"] = bounds.reach;
  if (machine.has_dram()) json["dram_bound_cycles"] = bounds.dram_cycles;
  const auto bound = static_cast<double>(std::max(bounds.cycles, bounds.dram_cycles));
  json["efficiency"] = run.cycles == 0 ? 0 : bound / static_cast<double>(run.cycles);
  nlohmann::ordered_json bytes = nlohmann::ordered_json::object();
  for (int from = 0; from < isa::kSpaceCount; ++from) {
    for (int to = 0; to < isa::kSpaceCount; ++to) {
      if (const int64_t count = run.path_bytes[from][to]) {
        bytes[StrCat(isa::SpaceName(static_cast<isa::Space>(from)), "_",
                     isa::SpaceName(static_cast<isa::Space>(to)))] = count;
      }
    }
  }
  bytes["gmem_moved"] = run.gmem_read_moved + run.gmem_written_moved;
  json["bytes"] = bytes;
  json["instructions"] = run.instruction_count();
  json["simulate_ms"] = simulate_ms;
  simulator::AddRun(run, machine, json);
  json["config"] = machine.name;
  json["machine"] = machine.parameters();
  for (const auto& [name, text] : machine.texts()) json["machine"][name] = text;
  if (energy) simulator::AddEnergy(*energy, json);
}

}  // namespace polynao::cases
