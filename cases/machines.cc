#include "cases/machines.h"

#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "simulator/configs/configs_text.h"

namespace polynao::cases {

namespace {

struct ConfigFile {
  std::string text, name;
};

absl::StatusOr<ConfigFile> FindConfig(const std::string& config) {
  std::string names;
  for (const simulator::ConfigText& text : simulator::ConfigTexts()) {
    if (text.name == config) {
      return ConfigFile{.text = std::string(text.text), .name = StrCat(text.name, ".toml")};
    }
    StrAppend(&names, names.empty() ? "" : ", ", text.name);
  }
  if (config.find('/') == std::string::npos && config.find('.') == std::string::npos) {
    return InvalidInput("no config is named '", config, "'; there are: ", names,
                        ", or give the path of a .toml file");
  }
  ASSIGN_OR_RETURN(std::string text, ReadFile(config));
  return ConfigFile{.text = std::move(text), .name = config};
}

}  // namespace

absl::StatusOr<isa::Machine> LoadMachine(const std::string& config,
                                         const std::vector<std::string>& overrides) {
  ASSIGN_OR_RETURN(const ConfigFile file, FindConfig(config));
  return isa::ParseMachine(file.text, file.name, overrides);
}

absl::StatusOr<std::vector<isa::MachineParameter>> LoadParameters(const std::string& config) {
  ASSIGN_OR_RETURN(const ConfigFile file, FindConfig(config));
  return isa::ListParameters(file.text, file.name);
}

}  // namespace polynao::cases
