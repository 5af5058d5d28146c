// Other programs: finding and running them, and a place for their files.
#ifndef BASE_PROCESS_H_
#define BASE_PROCESS_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace polynao {

// A new directory in $TMPDIR or /tmp; the destructor removes it with its contents.
class TemporaryDirectory {
 public:
  // `prefix` begins its name. Errors: it cannot be made.
  static absl::StatusOr<TemporaryDirectory> Create(std::string_view prefix);
  ~TemporaryDirectory();
  TemporaryDirectory(TemporaryDirectory&& other) : path_(std::exchange(other.path_, "")) {}
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;

  std::string File(std::string_view name) const;

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// The first file of that name in the directories of $PATH that may be executed.
std::optional<std::string> FindOnPath(std::string_view program);

// Runs a program to its end and returns what it printed, to stdout and stderr together. Errors: it
// cannot be started, or ends with another status than 0; then the message has its output.
absl::StatusOr<std::string> RunProgram(std::vector<std::string> command);

}  // namespace polynao

#endif  // BASE_PROCESS_H_
