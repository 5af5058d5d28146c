// Runs a program on the event-driven simulator and on the clocked model and compares all that they report.
#ifndef SIMULATOR_REFERENCE_TESTING_COMPARE_H_
#define SIMULATOR_REFERENCE_TESTING_COMPARE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "isa/machine.h"
#include "isa/program.h"
#include "simulator/reference/report.h"
#include "simulator/report.h"
#include "simulator/simulator.h"

namespace polynao::simulator::reference {

struct Comparison {
  // Empty if both models agree, and the event-driven one with itself where it computes no values
  // (RunOptions::timing_only): cycles, every counter, every port, and the begin and end of every instruction and wait;
  // or the kind of error that stopped both. Else a line for each difference, up to some number.
  std::string difference;
  absl::Status error;  // that stopped the event-driven simulator
  RunResult result;    // of the event-driven simulator, if it is not stopped
  std::vector<int64_t>
      issued;  // by pc: how often the clocked model issued it, if it is not stopped
};

// A line for each difference between the two reports, up to some number; empty if they are equal.
std::string Difference(const RunResult& event, const Report& clocked);

// Hazards are not checked: they change no cycle. With a tensor of a shape alone (ShapeOnly) the event-driven simulator
// computes no values at all.
Comparison Compare(const isa::Machine& machine, const isa::Program& program,
                   const std::vector<simulator::Argument>& arguments,
                   int64_t max_cycles = int64_t{10'000'000'000});

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_TESTING_COMPARE_H_
