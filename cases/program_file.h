// Says from what a program was made. This is the file NAME.json beside NAME.bin that `nao compile --name=NAME` writes.
#ifndef CASES_PROGRAM_FILE_H_
#define CASES_PROGRAM_FILE_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cases/build.h"
#include "kernels/operators.h"

namespace polynao::cases {

struct ProgramFile {
  std::string name;
  // The program computes this case; a function or assembly file names none.
  std::optional<kernels::OperatorCase> operator_case = {};
  // "compiled", "library", "expert", or "assembly" for a program of the user's own.
  std::string impl = "compiled";
  // These are values for `nao sim --arg`: shapes of tensors that the program leaves open, and scalars.
  std::map<std::string, std::string> arguments = {};
  // Of a function whose loops became instructions: values of its scalars, which the program has no longer.
  std::map<std::string, std::string> scalars = {};
  // Why there is no program; the file beside is empty.
  std::string error = {};
};

// One canonical JSON object: sorted keys, no paths, a newline at the end.
std::string ProgramFileText(const ProgramFile& file);
// Errors begin with `path` and name the member, what is expected and what came.
absl::StatusOr<ProgramFile> ParseProgramFile(std::string_view text, std::string_view path);

// The arguments of a program for tensors like those of `specs`, in their order, and for its scalars.
std::map<std::string, std::string> ArgumentsOf(const BuiltProgram& built,
                                               absl::Span<const kernels::TensorSpec> specs);

}  // namespace polynao::cases

#endif  // CASES_PROGRAM_FILE_H_
