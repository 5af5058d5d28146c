// Simulates one program on random inputs: `nao sim`, and nao_sim, a small program without a compiler in it that starts
// quickly.
#ifndef TOOLS_SIMULATE_SIMULATE_H_
#define TOOLS_SIMULATE_SIMULATE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "isa/program.h"

namespace CLI {
class App;
}  // namespace CLI

namespace polynao::simulate {

struct Flags {
  std::string file;
  std::string config = "mlu270";
  std::vector<std::string> overrides;
  std::vector<std::string> arguments;  // "n=100", "A=5x7"
  std::string made_from;               // NAME.json, which has arguments
  uint64_t seed = 1;
  bool any_machine = false;
  bool no_hazards = false;
  bool timing_only = false;  // simulator::RunOptions
  std::string trace;
  std::string timeline;
  std::string report;
  std::string energy;
  bool json = false;
  std::string output;  // where the JSON goes; empty: stdout
};

// A program, or assembly in a file whose name ends in .nasm.
absl::StatusOr<isa::Program> LoadProgram(const std::string& file);

// "n=100" by name. Errors: no '=', or a name twice.
absl::StatusOr<std::map<std::string, std::string>> ParseArguments(
    const std::vector<std::string>& arguments);

// What a register holds for a scalar that `text` gives; of a float, its bits.
absl::StatusOr<int64_t> ScalarValue(const isa::ProgramParam& param, const std::string& text);

// Adds PROGRAM and all options.
void AddOptions(CLI::App& command, Flags& flags);

// Simulates and prints or writes what the flags ask for. The JSON is canonical: sorted keys, no times of this machine,
// no paths, so that it is the same wherever it is made. Errors: what is wrong with files, flags or the program; nothing
// is written then.
absl::Status Simulate(const Flags& flags);

}  // namespace polynao::simulate

#endif  // TOOLS_SIMULATE_SIMULATE_H_
