// The texts of simulator/configs/*.toml, put into the program when it is built.
#ifndef SIMULATOR_CONFIGS_CONFIGS_TEXT_H_
#define SIMULATOR_CONFIGS_CONFIGS_TEXT_H_

#include <string_view>
#include <vector>

namespace polynao::simulator {

struct ConfigText {
  std::string_view name;  // "mlu270"
  std::string_view text;
};

// By name.
const std::vector<ConfigText>& ConfigTexts();

}  // namespace polynao::simulator

#endif  // SIMULATOR_CONFIGS_CONFIGS_TEXT_H_
