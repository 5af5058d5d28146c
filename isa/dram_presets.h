// Presets of DRAM channels by name, put into the program when it is built.
#ifndef ISA_DRAM_PRESETS_H_
#define ISA_DRAM_PRESETS_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "isa/parameter_file.h"

namespace polynao::isa {

struct DramPresetText {
  std::string_view name;  // "ddr4_3200"
  std::string_view text;
};

// simulator/dram/presets/*.toml, by name.
const std::vector<DramPresetText>& DramPresetTexts();

// "dram.trcd" and so on: the numbers of dram_parameters.h, and dram.map.
absl::Span<const ParameterRow> DramRows();

// Reads a preset by name. Errors: no such preset (names the ones there are).
absl::StatusOr<ParameterFile> ReadDramPreset(std::string_view name);

}  // namespace polynao::isa

#endif  // ISA_DRAM_PRESETS_H_
