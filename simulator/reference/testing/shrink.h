// Makes a case on which the models differ as small as it gets.
#ifndef SIMULATOR_REFERENCE_TESTING_SHRINK_H_
#define SIMULATOR_REFERENCE_TESTING_SHRINK_H_

#include <functional>

#include "simulator/reference/testing/random_case.h"

namespace polynao::simulator::reference {

// Leaves out cores, barriers, instructions and overrides and makes numbers smaller, as long as `fails` holds. It holds
// for `c`. Calls `fails` some thousand times at most.
RandomCase Shrink(RandomCase c, const std::function<bool(const RandomCase&)>& fails);

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_TESTING_SHRINK_H_
