// Programs of the card against each other, their reference, and recorded runs of a GPU: the command `nao compare`,
// which nao_comparison_test runs.
#ifndef CASES_COMPARE_PROGRAMS_H_
#define CASES_COMPARE_PROGRAMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cases/program_file.h"
#include "isa/machine.h"
#include "isa/program.h"

namespace polynao::cases {

// A program with what it was made from.
struct ProgramOnDisk {
  ProgramFile file;
  isa::Program program;
};
// NAME.bin beside NAME.json. Errors: a file that cannot be read; a program that was not made, with the reason.
absl::StatusOr<ProgramOnDisk> LoadProgram(const std::string& json_path);

struct ComparisonSettings {
  isa::Machine machine;
  uint64_t seed = 1;
  std::string compiled;             // NAME.json
  std::vector<std::string> others;  // NAME.json of hand-written programs
  // Values that all programs must have: the operator's reference, or what the interpreter makes of this .nir file.
  bool reference = false;
  std::string source;
  // Lines that gpu_runner wrote (docs/cuda.md).
  std::string gpu_results;
  // Limits. Without max_error, values must agree as the operator asks, and bit for bit where there is no operator.
  std::optional<double> max_error;
  // Time of every other / time of the compiled program, in cycles, or for a GPU in time.
  std::optional<double> min_speedup;
  std::optional<int64_t> max_cycles;
};

struct ComparisonRow {
  std::string name;  // "compiled", "library", "reference", "gpu"
  std::optional<int64_t> cycles;
  std::optional<double> microseconds;
  std::optional<double> speedup;  // of the compiled program over this
  std::optional<double>
      max_error;  // of the compiled program: against the others; of others: against the reference
  std::vector<std::string> wrong;  // what exceeds a limit
};

struct Comparison {
  std::string title;  // "conv2d 56x56x64,64x3x3x64 on mlu270"
  std::vector<ComparisonRow> rows;
  bool ok() const;
  // A table, and below it a line for each thing that is wrong.
  std::string Text() const;
};

// Errors: files that do not fit each other (another computation, another machine), programs that the simulator stops,
// limits that nothing can be held against.
absl::StatusOr<Comparison> ComparePrograms(const ComparisonSettings& settings);

}  // namespace polynao::cases

#endif  // CASES_COMPARE_PROGRAMS_H_
