#include "benchmarks/tables/result_files.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"

namespace polynao::benchmarks {
namespace {

using nlohmann::ordered_json;

std::string TextOf(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

const ordered_json* ResultFile::At(const ordered_json& from, const std::vector<std::string>& path,
                                   const char* expected) {
  const ordered_json* at = &from;
  for (const std::string& key : path) {
    const auto member = at->is_object() ? at->find(key) : at->end();
    if (!at->is_object() || member == at->end()) {
      status_.Update(InvalidInput(name_, ": expected ", expected, " at '", absl::StrJoin(path, "."),
                                  "', found none"));
      return nullptr;
    }
    at = &*member;
  }
  return at;
}

double ResultFile::Number(const ordered_json& from, const std::vector<std::string>& path) {
  const ordered_json* at = At(from, path, "a number");
  if (at == nullptr) return 0;
  if (at->is_number()) return at->get<double>();
  status_.Update(InvalidInput(name_, ": expected a number at '", absl::StrJoin(path, "."),
                              "', found ", at->dump()));
  return 0;
}

std::string ResultFile::Text(const ordered_json& from, const std::vector<std::string>& path) {
  const ordered_json* at = At(from, path, "a text");
  return at == nullptr ? "" : TextOf(*at);
}

const ordered_json& ResultFile::List(const ordered_json& from,
                                     const std::vector<std::string>& path) {
  static const auto* none = new ordered_json(ordered_json::array());
  const ordered_json* at = At(from, path, "a list");
  if (at != nullptr && at->is_array()) return *at;
  if (at != nullptr) {
    status_.Update(InvalidInput(name_, ": expected a list at '", absl::StrJoin(path, "."), "'"));
  }
  return *none;
}

const ordered_json* ResultFile::Find(
    const ordered_json& rows, const std::vector<std::pair<std::string, std::string>>& fields) {
  for (const ordered_json& row : rows) {
    const bool fits = std::all_of(fields.begin(), fields.end(), [&](const auto& field) {
      return row.contains(field.first) && TextOf(row[field.first]) == field.second;
    });
    if (fits) return &row;
  }
  return nullptr;
}

std::map<std::string, std::string> ResultFile::Machine() const {
  std::map<std::string, std::string> parameters;
  const auto machine = json_.find("machine");
  if (machine == json_.end() || !machine->is_object()) return parameters;
  const ordered_json& of = machine->contains("parameters") ? (*machine)["parameters"] : *machine;
  for (const auto& [name, value] : of.items()) parameters[name] = TextOf(value);
  return parameters;
}

std::string ResultFile::Origin() const {
  std::vector<std::string> parts;
  const auto add = [&](const char* before, const char* key) {
    const auto member = json_.find(key);
    if (member == json_.end() || !member->is_string() || member->empty()) return;
    const std::string text = member->get<std::string>();
    if (!text.empty()) parts.push_back(before + text);
  };
  add("", "date");
  add("commit ", "commit");
  add("", "machine");  // of times; a simulated machine is an object
  if (parts.empty()) return "";
  parts[0] = parts[0].substr(0, parts[0].find('T'));  // the day is enough
  return absl::StrJoin(parts, ", ");
}

std::string MachineDifference(const ResultFile& base, const ResultFile& other) {
  const std::map<std::string, std::string> from = base.Machine();
  std::vector<std::string> parts;
  for (const auto& [name, value] : other.Machine()) {
    const auto old = from.find(name);
    if (old != from.end() && old->second != value) parts.push_back(StrCat(name, "=", value));
  }
  return absl::StrJoin(parts, ", ");
}

bool ResultFolder::Has(const std::string& name) const {
  return std::filesystem::exists(StrCat(path_, "/", name));
}

absl::StatusOr<ResultFile> ResultFolder::Read(const std::string& name) {
  if (!Has(name)) return absl::NotFoundError(name);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(StrCat(path_, "/", name)));
  ordered_json json = ordered_json::parse(text, nullptr, false);
  if (json.is_array()) json = {{"rows", std::move(json)}};
  if (!json.is_object()) return InvalidInput(name, ": expected a JSON object or a list");
  ResultFile file(name, std::move(json));
  read_.emplace_back(name, file.Origin());
  return file;
}

absl::StatusOr<std::vector<std::map<std::string, std::string>>> ResultFolder::ReadCells(
    const std::string& name) {
  if (!Has(name)) return absl::NotFoundError(name);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(StrCat(path_, "/", name)));
  std::vector<std::string> header;
  std::vector<std::map<std::string, std::string>> rows;
  std::string origin;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    if (absl::StartsWith(line, "#")) {
      if (origin.empty()) origin = std::string(line.substr(2));
      continue;
    }
    std::vector<std::string> cells = absl::StrSplit(line, ',');
    if (!absl::EndsWith(name, ".csv")) cells = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (header.empty()) {
      header = cells;
      continue;
    }
    if (cells.size() != header.size()) {
      return InvalidInput(name, ": expected ", header.size(), " cells, found '", std::string(line),
                          "'");
    }
    std::map<std::string, std::string>& row = rows.emplace_back();
    for (size_t i = 0; i < cells.size(); ++i) row[header[i]] = cells[i];
  }
  read_.emplace_back(name, origin);
  return rows;
}

absl::StatusOr<std::vector<std::pair<std::string, ResultFile>>> ResultFolder::Machines(
    const std::string& stem) {
  std::vector<std::pair<std::string, ResultFile>> machines;
  ASSIGN_OR_RETURN(ResultFile base, Read(stem + ".json"));
  machines.emplace_back("", base);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, stem + "-") && absl::EndsWith(name, ".json")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const size_t read = read_.size();
    ASSIGN_OR_RETURN(ResultFile file, Read(name));
    const std::string difference = MachineDifference(base, file);
    if (difference.empty()) {
      read_.resize(read);
    } else {
      machines.emplace_back(difference, std::move(file));
    }
  }
  return machines;
}

std::vector<std::pair<std::string, std::string>> ResultFolder::TakeRead() {
  return std::exchange(read_, {});
}

}  // namespace polynao::benchmarks
