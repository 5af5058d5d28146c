#include "isa/dram_presets.h"

#include <map>

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
  // Read once: every machine and every simulation asks.
  static const auto* files = [] {
    auto* result = new std::map<std::string_view, absl::StatusOr<ParameterFile>>();
    for (const DramPresetText& preset : DramPresetTexts()) {
      result->emplace(preset.name,
                      ReadParameterFile(preset.text, StrCat(preset.name, ".toml"), kRows));
    }
    return result;
  }();
  if (const auto found = files->find(name); found != files->end()) return found->second;
  std::string names;
  for (const DramPresetText& preset : DramPresetTexts()) {
    StrAppend(&names, names.empty() ? "" : ", ", preset.name);
  }
  return InvalidInput("there is no DRAM preset \"", name, "\"; there are ", names);
}

}  // namespace polynao::isa
