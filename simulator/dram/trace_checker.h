// Checks a trace of DRAM commands against the rules, whoever wrote it.
#ifndef SIMULATOR_DRAM_TRACE_CHECKER_H_
#define SIMULATOR_DRAM_TRACE_CHECKER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/dram/request.h"
#include "simulator/dram/timing.h"

namespace polynao::simulator {

struct DramViolation {
  std::string rule;  // the parameter that is broken ("trcd"), or "bus", "state", "refresh"
  size_t command;    // in the trace
  std::string what;  // for people
};

// The violations of a trace whose run ended in clock `end`, at most `limit` of them. Compares each command with
// every one before it that a rule can reach. A command may break several rules.
std::vector<DramViolation> CheckDramTrace(const DramTiming& timing,
                                          const std::vector<DramCommand>& trace, int64_t end,
                                          size_t limit = 20);

}  // namespace polynao::simulator

#endif  // SIMULATOR_DRAM_TRACE_CHECKER_H_
