#include "cases/machines.h"

#include "base/files.h"
#include "base/status.h"
#include "simulator/configs/configs_text.h"

namespace polynao::cases {

absl::StatusOr<isa::Machine> LoadMachine(const std::string& config,
                                         const std::vector<std::string>& overrides) {
  std::string names;
  for (const simulator::ConfigText& text : simulator::ConfigTexts()) {
    if (text.name == config) {
      return isa::ParseMachine(text.text, StrCat(text.name, ".toml"), overrides);
    }
    StrAppend(&names, names.empty() ? "" : ", ", text.name);
  }
  if (config.find('/') == std::string::npos && config.find('.') == std::string::npos) {
    return InvalidInput("no config is named '", config, "'; there are: ", names,
                        ", or give the path of a .toml file");
  }
  ASSIGN_OR_RETURN(std::string text, ReadFile(config));
  return isa::ParseMachine(text, config, overrides);
}

absl::StatusOr<Target> MakeTarget(const std::string& name, const isa::Machine* machine) {
  std::string names;
  for (std::string_view known : TargetNames()) {
    if (known == name) {
      Target target;
      target.name = name;
      if (name == "diannao") {
        target.instructions = &isa::DianNao();
        target.machine = machine;
      }
      return target;
    }
    StrAppend(&names, names.empty() ? "" : ", ", known);
  }
  return InvalidInput("no target is named '", name, "'; there are: ", names);
}

}  // namespace polynao::cases
