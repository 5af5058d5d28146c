#include "isa/dram_presets.h"

#include "base/status.h"
#include "isa/dram_parameters.h"

namespace polynao::isa {
namespace {

constexpr ParameterRow kRows[] = {
#define POLYNAO_DRAM_ROW(name, min, max, unit, meaning) {"dram." #name, unit, min, max, meaning},
    POLYNAO_DRAM_PARAMETERS(POLYNAO_DRAM_ROW)
#undef POLYNAO_DRAM_ROW
        {"dram.map", "", 0, 0, "fields of an address, from the most significant bits down", true},
};

}  // namespace

absl::Span<const ParameterRow> DramRows() { return kRows; }

absl::StatusOr<ParameterFile> ReadDramPreset(std::string_view name) {
  std::string names;
  for (const DramPresetText& preset : DramPresetTexts()) {
    if (preset.name == name) {
      return ReadParameterFile(preset.text, StrCat(name, ".toml"), kRows);
    }
    StrAppend(&names, names.empty() ? "" : ", ", preset.name);
  }
  return InvalidInput("there is no DRAM preset \"", name, "\"; there are ", names);
}

}  // namespace polynao::isa
