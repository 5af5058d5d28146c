// Random programs on random machines for comparing the two models. A case is kept as data, not as text, so that it can
// be shrunk.
#ifndef SIMULATOR_REFERENCE_TESTING_RANDOM_CASE_H_
#define SIMULATOR_REFERENCE_TESTING_RANDOM_CASE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/machine.h"
#include "simulator/reference/testing/random_op.h"

namespace polynao::simulator::reference {

struct CoreOps {
  int64_t cluster = 0;
  int64_t core = 0;
  bool is_memory_core = false;
  std::vector<std::vector<Op>> phases;  // between the barriers
};

struct PhaseEnd {
  bool is_global = false;
  uint64_t clusters = 0;  // a bit for each cluster that has a barrier of its own here
};

struct RandomCase {
  std::string machine;                 // in simulator/configs
  std::vector<std::string> overrides;  // "gmem.channels=3"
  // Bytes of the one tensor that all programs have. A large one has a shape alone, and the program loads no registers.
  int64_t tensor_bytes = 0;
  bool has_values = true;
  std::vector<PhaseEnd> ends;  // between the phases
  std::vector<CoreOps> cores;
};

// The same seed gives the same case. Three kinds: instructions of all sorts at the same addresses; the same spread over
// a tensor that fills GMEM; 1 to 64 streams of loads and stores a distance apart. Of each row of the instruction table
// that can be drawn (CanBeDrawn), some consecutive seeds have one.
RandomCase MakeRandomCase(uint64_t seed);

// Errors: the overrides contradict one another.
absl::StatusOr<isa::Machine> MachineOf(const RandomCase& c);
// As assembly for this machine.
std::string ProgramText(const RandomCase& c, const isa::Machine& machine);

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_TESTING_RANDOM_CASE_H_
