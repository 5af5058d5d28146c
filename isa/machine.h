// The parameters of an accelerator card: what the compiler schedules for and the simulator runs.
// Read from simulator/configs/*.toml, where each value stands with its source.
#ifndef ISA_MACHINE_H_
#define ISA_MACHINE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/instruction_set.h"

namespace polynao::isa {

// A validated machine description. Times are cycles, sizes bytes, rates bytes or operations a
// cycle. Every parameter is reachable by its dotted name in the file ("core.nmem_kib"); the fields
// below are the ones code uses.
struct Machine {
  std::string name;  // "mlu270"
  // Every parameter by dotted name, resolved (defaults and --set applied), for results and @cost.
  MachineParameters parameters;

  int64_t Get(std::string_view dotted_name) const;  // the parameter must exist
  double clock_ghz = 1.0;

  int64_t clusters() const { return Get("card.clusters"); }
  int64_t cores_per_cluster() const { return Get("cluster.cores"); }
  int64_t cores() const { return clusters() * cores_per_cluster(); }
  int64_t nmem_bytes() const { return Get("core.nmem_kib") * 1024; }
  int64_t wmem_bytes() const { return Get("core.wmem_kib") * 1024; }
  int64_t smem_bytes() const { return Get("cluster.smem_kib") * 1024; }
};

// One parameter of the schema: name, what it means, allowed range, where its default comes from.
struct MachineParameter {
  std::string name;
  std::string unit;
  int64_t value;
  std::string source;  // "sourced", "derived" or "assumed", then the reference
};

// Parses a machine file and applies overrides ("core.nmem_kib=256"). Errors name file and line, the
// parameter, what is allowed and what came; contradictions too (NMEM smaller than what is reserved,
// a DMA burst larger than the channel interleave, ...).
absl::StatusOr<Machine> ParseMachine(std::string_view toml_text, std::string_view file,
                                     const std::vector<std::string>& overrides = {});

// The parameters with unit, value and source, in file order, for `nao list configs` and docs.
absl::StatusOr<std::vector<MachineParameter>> ListParameters(std::string_view toml_text,
                                                             std::string_view file);

}  // namespace polynao::isa

#endif  // ISA_MACHINE_H_
