// Random programs on random machines for comparing the two models. A case is kept as data, not as text, so that it can be shrunk.
#ifndef SIMULATOR_REFERENCE_TESTING_RANDOM_CASE_H_
#define SIMULATOR_REFERENCE_TESTING_RANDOM_CASE_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/machine.h"
#include "isa/program.h"

namespace polynao::simulator::reference {

// One instruction with its operands set up, perhaps in a loop.
struct Op {
  struct Arg {
    int64_t value = 0;
    bool is_gmem = false;    // an offset in the program's tensor
    bool is_loaded = false;  // instead of a value: the register that loads write
  };
  std::string mnemonic;
  std::vector<Arg> args = {};  // in registers
  std::string before = "";     // operands before these, as text: "r42, "
  int64_t repeat = 1;
  int64_t step = 0;  // added to offsets in the tensor after each repetition
};

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
  std::vector<PhaseEnd> ends;          // between the phases
  std::vector<CoreOps> cores;
};

// Bytes of the one tensor that all programs have.
inline constexpr int64_t kTensorBytes = 1 << 17;

// The same seed gives the same case.
RandomCase MakeRandomCase(uint64_t seed);

// Errors: the overrides contradict one another.
absl::StatusOr<isa::Machine> MachineOf(const RandomCase& c);
// As assembly for this machine.
std::string ProgramText(const RandomCase& c, const isa::Machine& machine);

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_TESTING_RANDOM_CASE_H_
