// For tests of the DRAM model: presets, random timings and random traffic.
#ifndef SIMULATOR_DRAM_TESTING_H_
#define SIMULATOR_DRAM_TESTING_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "simulator/dram/request.h"
#include "simulator/dram/timing.h"

namespace polynao::simulator {

// A preset with overrides ("trcd=30"); a failed check if that is not valid.
DramTiming TestDram(const std::string& preset, const std::vector<std::string>& overrides = {});

// A valid timing with small random numbers.
DramTiming RandomDram(std::mt19937_64& random);

// Describes what random traffic is like; it is itself chosen at random.
struct TrafficShape {
  int64_t span = 0;       // addresses are less
  int64_t max_bytes = 0;  // of a request
  int write_percent = 0;
  int stream_percent = 0;  // chance to go on behind the request before
  int64_t max_wait = 0;    // clocks between two requests
};
TrafficShape RandomShape(const DramTiming& timing, std::mt19937_64& random);
std::vector<DramRequest> RandomTraffic(const TrafficShape& shape, int64_t count,
                                       std::mt19937_64& random);

// The numbers, for messages of failures: "trcd=30 trp=7 ...".
std::string DescribeDram(const DramTiming& timing);

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_TESTING_H_
