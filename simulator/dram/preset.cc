#include "simulator/dram/preset.h"

#include "absl/strings/numbers.h"
#include "base/check.h"
#include "base/status.h"
#include "isa/dram_presets.h"
#include "simulator/dram/address_map.h"

namespace polynao::simulator {
namespace {

int64_t& Field(DramTiming& timing, std::string_view name) {
  for (const DramField& field : DramFields()) {
    if (name == field.name) return timing.*field.field;
  }
  POLYNAO_UNREACHABLE(name);
}

absl::Status Apply(const std::string& override, DramTiming& timing) {
  const std::string place = StrCat("override \"", override, "\"");
  const size_t equals = override.find('=');
  if (equals == std::string::npos) return InvalidInput(place, ": expected NAME=VALUE");
  const std::string name = override.substr(0, equals), value = override.substr(equals + 1);
  const isa::ParameterRow* row = isa::FindParameter(isa::DramRows(), StrCat("dram.", name));
  if (row == nullptr) return InvalidInput(place, ": there is no parameter dram.", name);
  if (row->is_text) {
    timing.map = value;
    return absl::OkStatus();
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number)) {
    return InvalidInput(place, ": expected NAME=INTEGER");
  }
  RETURN_IF_ERROR(isa::CheckRange(*row, place, number));
  Field(timing, name) = number;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DramTiming> ParseDram(std::string_view text, std::string_view file,
                                     const std::vector<std::string>& overrides) {
  ASSIGN_OR_RETURN(const isa::ParameterFile parsed,
                   isa::ReadParameterFile(text, file, isa::DramRows()));
  DramTiming timing;
  for (const isa::MachineParameter& parameter : parsed.parameters) {
    if (parameter.name == "dram.map") {
      timing.map = parameter.text;
    } else {
      Field(timing, std::string_view(parameter.name).substr(5)) = parameter.value;
    }
  }
  std::string place(file);
  for (const std::string& override : overrides) {
    RETURN_IF_ERROR(Apply(override, timing));
    place = "overrides";
  }
  RETURN_IF_ERROR(ValidateDram(timing, place));
  RETURN_IF_ERROR(AddressMap::Make(timing, place).status());
  return timing;
}

absl::StatusOr<DramTiming> DramPreset(std::string_view name,
                                      const std::vector<std::string>& overrides) {
  RETURN_IF_ERROR(isa::ReadDramPreset(name).status());
  for (const isa::DramPresetText& preset : isa::DramPresetTexts()) {
    if (preset.name == name) return ParseDram(preset.text, StrCat(name, ".toml"), overrides);
  }
  POLYNAO_UNREACHABLE(name);
}

absl::StatusOr<DramTiming> DramOf(const isa::Machine& machine) {
  DramTiming timing;
  for (const DramField& field : DramFields()) {
    timing.*field.field = machine.Get(StrCat("dram.", field.name));
  }
  timing.map = machine.GetText("dram.map");
  const std::string place = StrCat("machine ", machine.name);
  RETURN_IF_ERROR(ValidateDram(timing, place));
  RETURN_IF_ERROR(AddressMap::Make(timing, place).status());
  return timing;
}

}  // namespace polynao::simulator
