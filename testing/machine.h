// The machines of simulator/configs, for tests. The test needs `data = ["//simulator/configs"]`.
#ifndef TESTING_MACHINE_H_
#define TESTING_MACHINE_H_

#include <string>
#include <vector>

#include "isa/machine.h"

namespace polynao {

// The machine of simulator/configs/NAME.toml with overrides; a failed check if it is not valid.
isa::Machine TestMachine(const std::string& name, const std::vector<std::string>& overrides = {});

// mlu270 with flat GMEM channels 200 cycles away that take turns of 16 KiB, a cache for loads, and any number of stores
// in flight: the machine of docs/timing.md's examples, whose closed forms are whole numbers.
isa::Machine FlatMachine(const std::vector<std::string>& overrides = {});

}  // namespace polynao

#endif  // TESTING_MACHINE_H_
