// Streams of requests that are made anew from a line of text, to compare models of a DRAM channel. README.md says how
// each is made and driven.
#ifndef SIMULATOR_DRAM_VALIDATION_STREAMS_H_
#define SIMULATOR_DRAM_VALIDATION_STREAMS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "simulator/dram/request.h"
#include "simulator/dram/timing.h"

namespace polynao::simulator {

struct Stream {
  // Address and direction of request 0, 1, 2, ...; each has 64 bytes.
  std::function<DramRequest(int64_t index)> request;
  int64_t gap = 0;  // request i is not given before clock gap x i; 0: as soon as it is taken
};

// A stream by its pattern and parameters: "streams_read", "streams=4 distance=4194304". Errors: an unknown pattern; a
// parameter that is missing, unknown or no positive number.
absl::StatusOr<Stream> MakeStream(std::string_view pattern, const std::string& parameters);

struct StreamResult {
  int64_t clocks = 0;  // the clock of the RD or WR with which 99 of 100 requests are served
  double mean_read_latency = 0;  // clocks from giving a read to the arrival of its data
  DramCounters counters;         // of all requests
};

// Gives the first `requests` requests to a channel, in order: each as soon as the queue of the one before has taken it.
StreamResult RunStream(const DramTiming& timing, const Stream& stream, int64_t requests);

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_VALIDATION_STREAMS_H_
