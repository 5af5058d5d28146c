// Presets of DRAM channels by name: simulator/dram/presets/*.toml, put into the program when it is built.
#ifndef SIMULATOR_DRAM_PRESET_H_
#define SIMULATOR_DRAM_PRESET_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/parameter_file.h"
#include "simulator/dram/timing.h"

namespace polynao::simulator {

struct DramPresetText {
  std::string_view name;  // "ddr4_3200"
  std::string_view text;
};

// By name.
const std::vector<DramPresetText>& DramPresetTexts();

// Reads a preset: its name, and under [dram] every parameter of isa/dram_parameters.h and `map`, each with its
// source, as machine files state theirs (isa/parameter_file.h). `overrides` are "trcd=30" or "map=row bank column".
// Errors name file and line, or the override; those of ValidateDram and AddressMap::Make too.
absl::StatusOr<DramTiming> ParseDram(std::string_view text, std::string_view file,
                                     const std::vector<std::string>& overrides = {});

// A preset by name. Errors: those of ParseDram; no such preset (names the ones there are).
absl::StatusOr<DramTiming> DramPreset(std::string_view name,
                                      const std::vector<std::string>& overrides = {});

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_PRESET_H_
