// The timing of a DRAM channel from a preset (isa/dram_presets.h) or a machine.
#ifndef SIMULATOR_DRAM_PRESET_H_
#define SIMULATOR_DRAM_PRESET_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/machine.h"
#include "simulator/dram/timing.h"

namespace polynao::simulator {

// Reads a preset: its name, and under [dram] every parameter of isa/dram_parameters.h and `map`, each with its
// source, as machine files state theirs (isa/parameter_file.h). `overrides` are "trcd=30" or "map=row bank column".
// Errors name file and line, or the override; those of ValidateDram and AddressMap::Make too.
absl::StatusOr<DramTiming> ParseDram(std::string_view text, std::string_view file,
                                     const std::vector<std::string>& overrides = {});

// A preset by name. Errors: those of ParseDram; no such preset (names the ones there are).
absl::StatusOr<DramTiming> DramPreset(std::string_view name,
                                      const std::vector<std::string>& overrides = {});

// The DRAM channels of a machine whose gmem.dram is no "flat". Errors, with "machine NAME" in front: those of
// ValidateDram and AddressMap::Make.
absl::StatusOr<DramTiming> DramOf(const isa::Machine& machine);

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_PRESET_H_
