// The results that are kept in benchmarks/results, as the tables of documents read them.
#ifndef BENCHMARKS_TABLES_RESULT_FILES_H_
#define BENCHMARKS_TABLES_RESULT_FILES_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace polynao::benchmarks {

// One result of `nao bench SUITE --json=FILE`. A field that is missing or has another type is the first error, which
// Status() keeps; the reader then goes on with an empty value, so that a table's code stays a list of its cells.
class ResultFile {
 public:
  ResultFile(std::string name, nlohmann::ordered_json json)
      : name_(std::move(name)), json_(std::move(json)) {}

  const std::string& name() const { return name_; }
  const nlohmann::ordered_json& json() const { return json_; }
  absl::Status Status() const { return status_; }

  // The number, text or list at a path of keys: Number(summary, {"classes", "conv", "cases"}).
  double Number(const nlohmann::ordered_json& from, const std::vector<std::string>& path);
  std::string Text(const nlohmann::ordered_json& from, const std::vector<std::string>& path);
  const nlohmann::ordered_json& List(const nlohmann::ordered_json& from,
                                     const std::vector<std::string>& path);
  // The list `rows` of the file.
  const nlohmann::ordered_json& Rows() { return List(json_, {"rows"}); }
  // The first of `rows` of which these fields have these texts; null if there is none.
  static const nlohmann::ordered_json* Find(
      const nlohmann::ordered_json& rows,
      const std::vector<std::pair<std::string, std::string>>& fields);

  // Parameters of the simulated machine by name, numbers as text.
  std::map<std::string, std::string> Machine() const;
  // When, by which commit and on which processor it was taken, as far as the file says so.
  std::string Origin() const;

 private:
  const nlohmann::ordered_json* At(const nlohmann::ordered_json& from,
                                   const std::vector<std::string>& path, const char* expected);

  std::string name_;
  nlohmann::ordered_json json_;
  absl::Status status_;
};

// The parameters of which `other` has another value than `base`: "gmem.dram=flat, gmem.cache_reads=1". Parameters that
// only one of the machines has do not count: they belong to a part that the other one is built without.
std::string MachineDifference(const ResultFile& base, const ResultFile& other);

// A folder of results. It notes which files were read, so that a table can name them.
class ResultFolder {
 public:
  explicit ResultFolder(std::string path) : path_(std::move(path)) {}

  // "resnet50.json". A list is an object with `rows` alone. Errors: kNotFound without such a file; a text that is no
  // JSON object and no list.
  absl::StatusOr<ResultFile> Read(const std::string& name);
  // The lines of a table in text, cell by cell: separated by commas in *.csv, by blanks in other files. Lines that
  // begin with "#" are left out; the first of them says where the table comes from. Errors: kNotFound; a line with
  // another number of cells than the first one.
  absl::StatusOr<std::vector<std::map<std::string, std::string>>> ReadCells(
      const std::string& name);
  bool Has(const std::string& name) const;
  // The results of STEM.json and of each STEM-*.json of another machine, with what sets it apart ("" for the first), by
  // name.
  absl::StatusOr<std::vector<std::pair<std::string, ResultFile>>> Machines(const std::string& stem);

  // The files that were read since the last call, with their origins.
  std::vector<std::pair<std::string, std::string>> TakeRead();

 private:
  std::string path_;
  std::vector<std::pair<std::string, std::string>> read_;
};

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_TABLES_RESULT_FILES_H_
