// Random variations of the machine files, for random cases.
#ifndef SIMULATOR_REFERENCE_TESTING_RANDOM_MACHINE_H_
#define SIMULATOR_REFERENCE_TESTING_RANDOM_MACHINE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/machine.h"
#include "simulator/reference/testing/random.h"

namespace polynao::simulator::reference {

// The names of the files in simulator/configs, in alphabetical order.
const std::vector<std::string>& MachineNames();

// simulator/configs/NAME.toml with overrides. Errors: the overrides contradict one another.
absl::StatusOr<isa::Machine> MachineOf(const std::string& name,
                                       const std::vector<std::string>& overrides);

// Overrides of the file: none; or each parameter of isa/machine_rows.h drawn or left, but those that are energy's alone
// (IsOfEnergyAlone). GMEM is the file's, of flat channels with or without a cache, or of DRAM: a preset, one that is
// changed, or small random numbers. The machine that they give is valid.
std::vector<std::string> RandomOverrides(Random& random, const std::string& name);

// Neither model reads it.
bool IsOfEnergyAlone(std::string_view parameter);

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_TESTING_RANDOM_MACHINE_H_
