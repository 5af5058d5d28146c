// A file of rows of the suite licm511. It grows with every case, so that a stopped run can be resumed.
#ifndef BENCHMARKS_LICM_ROWS_H_
#define BENCHMARKS_LICM_ROWS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/licm_result.h"
#include "nlohmann/json_fwd.hpp"

namespace polynao::benchmarks {

// Lines of JSON: the fields that all rows share (target, machine, commit, ...), then one row a line.
class LicmRowsFile {
 public:
  // Reads `path`, or begins it. A last line that a stopped run left incomplete is ignored. Errors: a
  // file that cannot be read, or whose rows are of another run than `run`.
  static absl::StatusOr<LicmRowsFile> Open(const std::string& path,
                                           const nlohmann::ordered_json& run);

  // The cases that ran without an error, each once.
  const std::vector<LicmRow>& rows() const { return rows_; }
  absl::Status Append(const LicmRow& row);

 private:
  LicmRowsFile() = default;
  absl::Status AppendLine(const nlohmann::ordered_json& line) const;

  std::string path_;
  std::string target_;
  std::vector<LicmRow> rows_;
};

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_LICM_ROWS_H_
