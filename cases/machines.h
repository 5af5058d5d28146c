// Machines by name.
#ifndef CASES_MACHINES_H_
#define CASES_MACHINES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/machine.h"

namespace polynao::cases {

// The machine of a configuration: a name in simulator/configs or the path of a .toml file.
absl::StatusOr<isa::Machine> LoadMachine(const std::string& config,
                                         const std::vector<std::string>& overrides);

// Its parameters with their sources, in the order of the file.
absl::StatusOr<std::vector<isa::MachineParameter>> LoadParameters(const std::string& config);

}  // namespace polynao::cases

#endif  // CASES_MACHINES_H_
