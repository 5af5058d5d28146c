// Reads files of parameters, each with its source: machine files and presets of DRAM.
#ifndef ISA_PARAMETER_FILE_H_
#define ISA_PARAMETER_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace polynao::isa {

// Describes a parameter by its dotted name.
struct ParameterRow {
  const char* name;
  const char* unit;
  int64_t min;
  int64_t max;
  const char* meaning;
  bool is_text = false;      // its value is a string; min and max mean nothing
  bool is_optional = false;  // a file need not state it
};

// One parameter as a file states it.
struct MachineParameter {
  std::string name;
  std::string unit;
  std::string meaning;
  int64_t value = 0;
  std::string text;    // the value of a parameter that is text
  std::string source;  // "sourced", "derived" or "assumed", then the reference
};

struct ParameterFile {
  std::string name;
  std::vector<MachineParameter> parameters;  // in file order
};

// Null if no row has that name.
const ParameterRow* FindParameter(absl::Span<const ParameterRow> rows, std::string_view name);

// An error, with `place` in front, if the value is outside the row's range.
absl::Status CheckRange(const ParameterRow& row, std::string_view place, int64_t value);

// Reads a file that states its name and every parameter of `rows`:
//
//   name = "mlu270"
//   [core]
//   nmem_kib = { value = 512, source = "sourced: mlu-ops v0.4.0 build.sh" }
//
// Errors name file and line, the parameter, what is allowed and what came.
absl::StatusOr<ParameterFile> ReadParameterFile(std::string_view text, std::string_view file,
                                                absl::Span<const ParameterRow> rows);

}  // namespace polynao::isa

#endif  // ISA_PARAMETER_FILE_H_
