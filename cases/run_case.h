// One operator case, compiled or hand-written, run on a target and, unless told otherwise, compared with its reference.
#ifndef CASES_RUN_CASE_H_
#define CASES_RUN_CASE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/instruction_set.h"
#include "isa/machine.h"
#include "kernels/operators.h"
#include "nlohmann/json_fwd.hpp"
#include "simulator/energy/energy.h"
#include "simulator/report.h"
#include "simulator/simulator.h"

namespace polynao::cases {

struct CaseSettings {
  std::string target = "diannao";
  std::string impl = "compiled";       // or "library", "expert"
  std::string config = "mlu270";       // a name in simulator/configs, or a path
  std::vector<std::string> overrides;  // "core.nmem_kib=256"
  // The card's instructions; null: the built-in table.
  std::shared_ptr<const isa::InstructionSet> instructions = nullptr;
  uint64_t seed = 1;
  simulator::TraceOptions trace;
  // Records what a page shows beyond counters (simulator/profile.h).
  bool profile = false;
  bool check_hazards = true;
  // Compute the reference and compare all values with it. For large convolutions on the card this is most of the time.
  bool check_values = true;
  // Cycles and counters alone (simulator::RunOptions::timing_only): no value is computed, so none is checked. For
  // diannao alone.
  bool timing_only = false;
  // An energy table (simulator/energy/table.h); empty: none. For diannao alone.
  std::string energy;
  // Passes that the compiler leaves out, by name.
  std::vector<std::string> without;
};

struct CaseReport {
  kernels::OperatorCase operator_case;
  CaseSettings settings;
  // No value is known to differ from the reference by more than the operator's tolerance; without settings.check_values
  // none is known at all.
  bool ok = false;
  // Of isa::Program: then values agree within a tolerance.
  bool is_reassociated = false;
  double max_abs_error = 0;
  double max_rel_error = 0;
  std::string difference;  // if not ok: where it is greatest, "Y[17] is 0.5, expected 0.25"
  int64_t bound_cycles = 0;
  std::string bound_by;  // isa::Bound::by
  // DRAM needs this many cycles for the bytes of bound_cycles, in the best order, with refreshes
  // (simulator/dram/bound.h); 0 if GMEM is no DRAM.
  int64_t dram_bound_cycles = 0;
  int64_t reach_cycles = 0;  // CardBounds::reach
  // The host did this before the program started; its time is not in the cycles. Empty if it did
  // nothing.
  std::string host_step;
  // On the card: stores that no instruction took, which the scalar unit executes element by element.
  int64_t scalar_stores = 0;
  double compile_ms = 0;
  // DianNao.
  std::optional<isa::Machine> machine;
  std::optional<simulator::RunResult> simulated;
  double simulate_ms = 0;
  std::optional<simulator::EnergyReport> energy;  // if a table was asked for
  // CPU and C: median of several runs. CUDA has none: the shim executes, it does not measure.
  std::optional<double> time_ns;
  bool by_shim = false;

  double efficiency() const;  // the larger bound / cycles; 0 if nothing was simulated
  // The object that `nao run --json` prints.
  nlohmann::ordered_json ToJson() const;
};

// Runs a case. Errors: what is wrong with the case or the settings, and what stopped the run;
// values that differ from the reference are no error here but `ok == false`. NotFound: there is no
// such operator, or no such implementation of it.
absl::StatusOr<CaseReport> RunCase(const kernels::OperatorCase& c, const CaseSettings& settings);

}  // namespace polynao::cases

#endif  // CASES_RUN_CASE_H_
