#include "cases/machines.h"

#include <map>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "simulator/configs/configs_text.h"

namespace polynao::cases {

namespace {

struct ConfigFile {
  std::string name;
  isa::ParameterFile parsed;
};

absl::StatusOr<ConfigFile> ReadConfig(std::string_view text, std::string name) {
  ASSIGN_OR_RETURN(isa::ParameterFile parsed, isa::ReadMachineFile(text, name));
  return ConfigFile{.name = std::move(name), .parsed = std::move(parsed)};
}

// Those of this program, each read once: suites and sweeps make thousands of machines of one file.
const std::map<std::string_view, absl::StatusOr<ConfigFile>>& OwnConfigs() {
  static const auto* configs = [] {
    auto* result = new std::map<std::string_view, absl::StatusOr<ConfigFile>>();
    for (const simulator::ConfigText& config : simulator::ConfigTexts()) {
      result->emplace(config.name, ReadConfig(config.text, StrCat(config.name, ".toml")));
    }
    return result;
  }();
  return *configs;
}

absl::StatusOr<ConfigFile> FindConfig(const std::string& config) {
  const auto own = OwnConfigs().find(config);
  if (own != OwnConfigs().end()) return own->second;
  if (config.find('/') == std::string::npos && config.find('.') == std::string::npos) {
    std::string names;
    for (const simulator::ConfigText& text : simulator::ConfigTexts()) {
      StrAppend(&names, names.empty() ? "" : ", ", text.name);
    }
    return InvalidInput("no config is named '", config, "'; there are: ", names,
                        ", or give the path of a .toml file");
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(config));
  return ReadConfig(text, config);
}

}  // namespace

absl::StatusOr<isa::Machine> LoadMachine(const std::string& config,
                                         const std::vector<std::string>& overrides) {
  ASSIGN_OR_RETURN(const ConfigFile file, FindConfig(config));
  return isa::MakeMachine(file.parsed, file.name, overrides);
}

absl::StatusOr<std::vector<isa::MachineParameter>> LoadParameters(const std::string& config) {
  ASSIGN_OR_RETURN(ConfigFile file, FindConfig(config));
  return std::move(file.parsed.parameters);
}

}  // namespace polynao::cases
