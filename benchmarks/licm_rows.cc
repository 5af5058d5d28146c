#include "benchmarks/licm_rows.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "nlohmann/json.hpp"

namespace polynao::benchmarks {

using Json = nlohmann::ordered_json;

absl::StatusOr<LicmRowsFile> LicmRowsFile::Open(const std::string& path, const Json& run) {
  LicmRowsFile file;
  file.path_ = path;
  file.target_ = run["target"].get<std::string>();
  std::ifstream stream(path);
  std::string line;
  if (!stream || !std::getline(stream, line)) {
    RETURN_IF_ERROR(file.AppendLine(run));
    return file;
  }
  if (const Json found = Json::parse(line, nullptr, /*allow_exceptions=*/false); found != run) {
    return InvalidInput(path, ": expected rows of ", run.dump(), ", found '", line, "'");
  }
  bool is_whole = true;
  for (int number = 2; std::getline(stream, line); ++number) {
    is_whole = !stream.eof();
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) continue;
    absl::StatusOr<LicmRow> row = RowFromJson(json);
    if (!row.ok()) return WithContext(StrCat(path, ":", number), row.status());
    const auto same = [&](const LicmRow& other) { return other.Name() == row->Name(); };
    if (row->error.empty() && std::none_of(file.rows_.begin(), file.rows_.end(), same)) {
      file.rows_.push_back(*std::move(row));
    }
  }
  // The next row must not join a line that has no end.
  if (!is_whole) std::ofstream(path, std::ios::app) << "\n";
  return file;
}

absl::Status LicmRowsFile::Append(const LicmRow& row) {
  return AppendLine(RowToJson(row, target_));
}

absl::Status LicmRowsFile::AppendLine(const Json& line) const {
  std::ofstream stream(path_, std::ios::app);
  stream << line.dump() << std::endl;
  if (stream) return absl::OkStatus();
  return InvalidInput("cannot write ", path_);
}

}  // namespace polynao::benchmarks
