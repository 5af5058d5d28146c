#include "testing/machine.h"

#include <fstream>
#include <sstream>

#include "base/check.h"

namespace polynao {

isa::Machine TestMachine(const std::string& name, const std::vector<std::string>& overrides) {
  const std::string path = "simulator/configs/" + name + ".toml";
  std::ifstream in(path);
  POLYNAO_CHECK(in) << path;
  std::ostringstream text;
  text << in.rdbuf();
  absl::StatusOr<isa::Machine> machine = isa::ParseMachine(text.str(), path, overrides);
  POLYNAO_CHECK(machine.ok()) << machine.status();
  return *std::move(machine);
}

}  // namespace polynao
