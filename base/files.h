// Reading and writing whole files.
#ifndef BASE_FILES_H_
#define BASE_FILES_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace polynao {

absl::StatusOr<std::string> ReadFile(const std::string& path);

// Writes the whole file or, on an error, leaves the old one: the text goes to a temporary file beside it, which is
// then renamed. Devices and pipes (/dev/null) are written to directly.
absl::Status WriteFile(const std::string& path, std::string_view contents);

// Makes the directory if it does not exist, and those above it.
absl::Status MakeDirectory(const std::string& path);

}  // namespace polynao

#endif  // BASE_FILES_H_
