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

isa::Machine FlatMachine(const std::vector<std::string>& overrides) {
  std::vector<std::string> all = {"gmem.dram=flat",        "gmem.latency=200",
                                  "gmem.cache_reads=1",    "cluster.store_segments=0",
                                  "gmem.interleave=16384", "gmem.channel_hash=0"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return TestMachine("mlu270", all);
}

}  // namespace polynao
