// Prints our clocks beside those of DRAMsim3 and Ramulator for the streams of public_simulators.csv, without and with a
// bank hash.
//
//   bazel run //simulator/dram/validation:compare [-- NAME=VALUE...]      other numbers of ddr4_3200: write_low=16

#include <iostream>
#include <string>
#include <vector>

#include "simulator/dram/validation/public_simulators.h"

int main(int argc, char** argv) {
  const std::vector<std::string> overrides(argv + 1, argv + argc);
  for (const bool hash : {false, true}) {
    const auto streams = polynao::simulator::CompareWithPublicSimulators(hash, overrides);
    if (!streams.ok()) {
      std::cerr << "compare: " << streams.status().message() << "\n";
      return 1;
    }
    std::cout << (hash ? "\nhash=1\n" : "hash=0\n") << polynao::simulator::ComparedText(*streams);
  }
  return 0;
}
