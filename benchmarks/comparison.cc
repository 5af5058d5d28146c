#include "benchmarks/comparison.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/json_reader.h"
#include "nlohmann/json.hpp"

namespace polynao::benchmarks {

using Json = nlohmann::ordered_json;

namespace {

constexpr char kFailed[] = "FAILED: ";
constexpr char kDiffer[] = "VALUES DIFFER: ";

// What stands in the place of a time.
std::string Reason(const ComparisonEntry& entry) {
  if (!entry.error.empty()) return kFailed + entry.error;
  if (!entry.difference.empty()) return kDiffer + entry.difference;
  return entry.skipped;
}

std::string SpeedupText(const ComparisonRow& row, const std::string& implementation,
                        const std::string& baseline) {
  const std::optional<double> speedup = row.Speedup(implementation, baseline);
  if (speedup) return absl::StrFormat("%.2f", *speedup);
  const ComparisonEntry* entry = row.Find(implementation);
  if (entry == nullptr || entry->ran() || !entry->skipped.empty()) return "-";
  return entry->error.empty() ? "DIFFERS" : "FAILED";
}

Json EntryJson(const ComparisonEntry& entry) {
  Json json;
  json["implementation"] = entry.implementation;
  json["state"] = entry.ran()              ? "agrees"
                  : !entry.skipped.empty() ? "skipped"
                  : !entry.error.empty()   ? "failed"
                                           : "differs";
  if (!entry.ran()) {
    json["reason"] = Reason(entry);
    return json;
  }
  json["time_ns"] = entry.time_ns;
  json["least_ns"] = entry.least_ns;
  json["runs"] = entry.runs;
  json["compile_ms"] = entry.compile_ms;
  json["schedule_ms"] = entry.schedule_ms;
  for (const auto& [name, value] : entry.figures) json["figures"][name] = value;
  if (!entry.notes.empty()) json["notes"] = entry.notes;
  return json;
}

ComparisonEntry EntryFromJson(const Json& json, absl::Status& status) {
  ComparisonEntry entry;
  JsonReader reader(json, status);
  reader.Read("implementation", entry.implementation);
  std::string state;
  reader.Read("state", state);
  if (state != "agrees") {
    std::string reason;
    absl::Status no_reason;
    JsonReader(json, no_reason).Read("reason", reason);
    if (state == "skipped" && !reason.empty()) {
      entry.skipped = reason;
    } else if (state == "failed" && reason.starts_with(kFailed)) {
      entry.error = reason.substr(std::size(kFailed) - 1);
    } else if (state == "differs" && reason.starts_with(kDiffer)) {
      entry.difference = reason.substr(std::size(kDiffer) - 1);
    } else if (status.ok()) {
      status = InvalidInput("expected an entry, found ", json.dump());
    }
    return entry;
  }
  reader.Read("time_ns", entry.time_ns);
  reader.Read("least_ns", entry.least_ns);
  reader.Read("runs", entry.runs);
  reader.Read("compile_ms", entry.compile_ms);
  reader.Read("schedule_ms", entry.schedule_ms);
  if (reader.Has("figures")) {
    const Json figures = reader.Object("figures");
    JsonReader values(figures, status);
    for (const auto& [name, value] : figures.items()) {
      values.Read(name, entry.figures.emplace_back(name, 0).second);
    }
  }
  if (reader.Has("notes")) {
    for (const Json& note : reader.List("notes")) {
      entry.notes.push_back(note.is_string() ? note.get<std::string>() : note.dump());
    }
  }
  return entry;
}

ComparisonRow RowFromJson(const Json& json, absl::Status& status) {
  ComparisonRow row;
  JsonReader reader(json, status);
  reader.Read("kernel", row.kernel);
  const Json sizes = reader.Object("sizes");
  JsonReader values(sizes, status);
  for (const auto& [name, value] : sizes.items()) {
    values.Read(name, row.sizes.emplace_back(name, 0).second);
  }
  for (const Json& entry : reader.List("entries")) {
    row.entries.push_back(EntryFromJson(entry, status));
  }
  return row;
}

// "gcc -O3 (1 thread), nao-auto (2 threads)".
std::string ImplementationsText(const std::vector<ComparisonImplementation>& implementations) {
  return absl::StrJoin(implementations, ", ", [](std::string* text, const auto& i) {
    StrAppend(text, i.name, " (", i.command, ", ", i.threads, " thread", i.threads == 1 ? "" : "s",
              i.missing.empty() ? "" : ", " + i.missing, ")");
  });
}

}  // namespace

const ComparisonEntry* ComparisonRow::Find(const std::string& implementation) const {
  for (const ComparisonEntry& entry : entries) {
    if (entry.implementation == implementation) return &entry;
  }
  return nullptr;
}

std::optional<double> ComparisonRow::Speedup(const std::string& implementation,
                                             const std::string& baseline) const {
  const ComparisonEntry* ours = Find(implementation);
  const ComparisonEntry* other = Find(baseline);
  if (ours == nullptr || other == nullptr || !ours->ran() || !other->ran()) return std::nullopt;
  if (ours->time_ns <= 0) return std::nullopt;
  return other->time_ns / ours->time_ns;
}

bool Comparison::ok() const {
  bool some = false;
  for (const ComparisonRow& row : rows) {
    for (const ComparisonEntry& entry : row.entries) {
      if (!entry.error.empty() || !entry.difference.empty()) return false;
      some |= entry.ran();
    }
  }
  return some;
}

const std::string& Comparison::BaselineOf(const std::string& implementation) const {
  for (const ComparisonImplementation& one : implementations) {
    if (one.name == implementation && !one.baseline.empty()) return one.baseline;
  }
  return baseline;
}

std::pair<double, int> Comparison::GeometricMean(const std::string& implementation) const {
  return GeometricMean(implementation, BaselineOf(implementation));
}

std::pair<double, int> Comparison::GeometricMean(const std::string& implementation,
                                                 const std::string& over) const {
  double logarithms = 0;
  int count = 0;
  for (const ComparisonRow& row : rows) {
    const std::optional<double> speedup = row.Speedup(implementation, over);
    if (!speedup) continue;
    logarithms += std::log(*speedup);
    ++count;
  }
  return {count == 0 ? 1 : std::exp(logarithms / count), count};
}

Json ToJson(const Comparison& result) {
  Json json;
  json["suite"] = result.suite;
  json["size"] = result.size;
  json["machine"] = result.machine;
  json["date"] = result.date;
  json["commit"] = result.commit;
  json["filter"] = result.filter;
  json["seed"] = result.seed;
  json["wall_seconds"] = result.wall_seconds;
  json["ok"] = result.ok();
  json["baseline"] = result.baseline;
  json["implementations"] = Json::array();
  for (const ComparisonImplementation& implementation : result.implementations) {
    Json entry = {{"name", implementation.name},
                  {"command", implementation.command},
                  {"threads", implementation.threads}};
    if (!implementation.missing.empty()) entry["missing"] = implementation.missing;
    if (!implementation.baseline.empty()) entry["baseline"] = implementation.baseline;
    json["implementations"].push_back(entry);
  }
  json["rows"] = Json::array();
  for (const ComparisonRow& row : result.rows) {
    Json entry;
    entry["kernel"] = row.kernel;
    for (const auto& [name, value] : row.sizes) entry["sizes"][name] = value;
    entry["entries"] = Json::array();
    for (const ComparisonEntry& e : row.entries) {
      Json one = EntryJson(e);
      const std::optional<double> speedup =
          row.Speedup(e.implementation, result.BaselineOf(e.implementation));
      if (speedup) one["speedup"] = *speedup;
      entry["entries"].push_back(one);
    }
    json["rows"].push_back(entry);
  }
  json["summary"] = Json::array();
  for (const ComparisonImplementation& implementation : result.implementations) {
    const auto [mean, kernels] = result.GeometricMean(implementation.name);
    if (kernels == 0) continue;
    json["summary"].push_back(
        {{"implementation", implementation.name}, {"geomean", mean}, {"kernels", kernels}});
  }
  return json;
}

absl::StatusOr<Comparison> ComparisonFromJson(const Json& json, const std::string& suite) {
  if (!json.is_object() || json.value("suite", Json()) != suite) {
    return InvalidInput("expected a result of ", suite, ", found ", json.dump().substr(0, 60));
  }
  Comparison result;
  result.suite = suite;
  absl::Status status;
  JsonReader reader(json, status);
  reader.Read("size", result.size);
  reader.Read("machine", result.machine);
  reader.Read("date", result.date);
  reader.Read("commit", result.commit);
  reader.Read("filter", result.filter);
  reader.Read("seed", result.seed);
  reader.Read("wall_seconds", result.wall_seconds);
  reader.Read("baseline", result.baseline);
  for (const Json& one : reader.List("implementations")) {
    ComparisonImplementation& implementation = result.implementations.emplace_back();
    JsonReader members(one, status);
    members.Read("name", implementation.name);
    members.Read("command", implementation.command);
    members.Read("threads", implementation.threads);
    if (members.Has("missing")) members.Read("missing", implementation.missing);
    if (members.Has("baseline")) members.Read("baseline", implementation.baseline);
  }
  for (const Json& row : reader.List("rows")) result.rows.push_back(RowFromJson(row, status));
  RETURN_IF_ERROR(status);
  return result;
}

absl::Status CheckSameRun(const Comparison& known, const Comparison& now) {
  const auto check = [](std::string_view what, const auto& expected, const auto& found) {
    if (expected == found) return absl::OkStatus();
    return InvalidInput("expected rows of ", what, " '", expected, "', found '", found, "'");
  };
  RETURN_IF_ERROR(check("size", now.size, known.size));
  RETURN_IF_ERROR(check("seed", now.seed, known.seed));
  RETURN_IF_ERROR(check("machine", now.machine, known.machine));
  RETURN_IF_ERROR(check("commit", now.commit, known.commit));
  if (now.implementations == known.implementations) return absl::OkStatus();
  return check("implementations", ImplementationsText(now.implementations),
               ImplementationsText(known.implementations));
}

std::string RowsText(const Comparison& result) {
  std::string text = absl::StrFormat("%-16s %12s", "kernel", StrCat(result.baseline, " ms"));
  for (const ComparisonImplementation& implementation : result.implementations) {
    absl::StrAppendFormat(&text, " %14s", implementation.name);
  }
  StrAppend(&text, "  compile ms\n");
  for (const ComparisonRow& row : result.rows) {
    const ComparisonEntry* baseline = row.Find(result.baseline);
    absl::StrAppendFormat(&text, "%-16s %12s", row.kernel,
                          baseline != nullptr && baseline->ran()
                              ? absl::StrFormat("%.3f", baseline->time_ns / 1e6)
                              : "-");
    for (const ComparisonImplementation& implementation : result.implementations) {
      absl::StrAppendFormat(
          &text, " %14s",
          SpeedupText(row, implementation.name, result.BaselineOf(implementation.name)));
    }
    std::vector<std::string> compile;
    for (const ComparisonEntry& entry : row.entries) {
      if (!entry.implementation.starts_with("nao-") || !entry.ran()) continue;
      compile.push_back(absl::StrFormat("%.0f", entry.compile_ms));
    }
    StrAppend(&text, "  ", absl::StrJoin(compile, " "), "\n");
  }
  return text;
}

std::string SummaryText(const Comparison& result) {
  std::string text = StrCat(result.suite, " ", result.size, ", ", result.machine, ", ", result.date,
                            "; speed-up over ", result.baseline, ":\n");
  for (const ComparisonImplementation& implementation : result.implementations) {
    const auto [mean, kernels] = result.GeometricMean(implementation.name);
    if (kernels == 0) {
      absl::StrAppendFormat(
          &text, "%-16s none: %s\n", implementation.name,
          implementation.missing.empty() ? "no kernel ran" : implementation.missing);
      continue;
    }
    absl::StrAppendFormat(&text, "%-16s %.3f, geometric mean of %d kernels; %s, %d thread%s\n",
                          implementation.name, mean, kernels, implementation.command,
                          implementation.threads, implementation.threads == 1 ? "" : "s");
  }
  for (const ComparisonRow& row : result.rows) {
    for (const ComparisonEntry& entry : row.entries) {
      if (entry.error.empty() && entry.difference.empty()) continue;
      StrAppend(&text, row.kernel, ", ", entry.implementation, ": ", Reason(entry), "\n");
    }
  }
  return text;
}

}  // namespace polynao::benchmarks
