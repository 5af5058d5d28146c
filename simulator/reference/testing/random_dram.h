// Machines whose GMEM channels are DRAM, for random cases.
#ifndef SIMULATOR_REFERENCE_TESTING_RANDOM_DRAM_H_
#define SIMULATOR_REFERENCE_TESTING_RANDOM_DRAM_H_

#include <string>
#include <vector>

#include "simulator/reference/testing/random.h"

namespace polynao::simulator::reference {

// Overrides that give a machine random DRAM: a preset, or small numbers for everything; the clocks of card and DRAM,
// the rate of the channels that follows from them, and no cache of reads.
std::vector<std::string> RandomDramOverrides(Random& random);

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_TESTING_RANDOM_DRAM_H_
