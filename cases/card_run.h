// A program that was simulated, and what its cycles are compared with.
#ifndef CASES_CARD_RUN_H_
#define CASES_CARD_RUN_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "isa/bound.h"
#include "isa/machine.h"
#include "nlohmann/json_fwd.hpp"
#include "simulator/energy/energy.h"
#include "simulator/energy/table.h"
#include "simulator/report.h"

namespace polynao::cases {

// What no program does in less.
struct CardBounds {
  int64_t cycles = 0;
  std::string by = {};  // isa::Bound::by
  // DRAM needs this many cycles for the bytes of `cycles`, in the best order, with refreshes (simulator/dram/bound.h);
  // 0 if GMEM is no DRAM.
  int64_t dram_cycles = 0;
  // isa::ReachOf, and no less than the others; no bound, but what could be expected at best.
  int64_t reach = 0;
};

// Of `work`, of whose bytes in GMEM `written` are stored.
absl::StatusOr<CardBounds> CardBoundsOf(const isa::Machine& machine, const isa::Work& work,
                                        int64_t written);

// The energy table of that name (simulator/energy/table.h); none of "".
absl::StatusOr<std::optional<simulator::EnergyTable>> EnergyTableOf(const isa::Machine& machine,
                                                                    const std::string& name);

// Adds cycles, time_ns, launch_cycles, bounds and what is in reach, efficiency (the larger bound / cycles), bytes by
// path, instructions, all counters, and the machine.
void AddCardRun(const simulator::RunResult& run, const isa::Machine& machine,
                const CardBounds& bounds, double simulate_ms,
                const std::optional<simulator::EnergyReport>& energy, nlohmann::ordered_json& json);

}  // namespace polynao::cases

#endif  // CASES_CARD_RUN_H_
