// Rows of the suite licm511 in a file that grows, so that a run that was stopped goes on.
#ifndef TOOLS_DRIVER_LICM_ROWS_H_
#define TOOLS_DRIVER_LICM_ROWS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/licm_result.h"
#include "nlohmann/json.hpp"

namespace polynao::driver {

// Lines of JSON: what all rows have in common (target, machine, commit, ...), then one row a line.
class LicmRowsFile {
 public:
  // Reads `path`, or begins it. Errors: a file whose rows are not of `run`, or can not be read; a line
  // that a stopped run left incomplete is passed over.
  static absl::StatusOr<LicmRowsFile> Open(const std::string& path,
                                           const nlohmann::ordered_json& run);

  // Those that ran, each case once; cases that failed are to run again.
  const std::vector<benchmarks::LicmRow>& rows() const { return rows_; }
  absl::Status Append(const benchmarks::LicmRow& row);

 private:
  LicmRowsFile() = default;
  absl::Status AppendLine(const nlohmann::ordered_json& line) const;

  std::string path_;
  std::string target_;
  std::vector<benchmarks::LicmRow> rows_;
};

}  // namespace polynao::driver

#endif  // TOOLS_DRIVER_LICM_ROWS_H_
