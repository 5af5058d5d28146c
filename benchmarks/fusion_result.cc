#include "benchmarks/fusion_result.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/json_reader.h"
#include "nlohmann/json.hpp"

namespace polynao::benchmarks {

using Json = nlohmann::ordered_json;

namespace {

// Geometric means of an implementation over this one are part of the summary.
bool IsReference(const std::string& name) {
  return name == "halide-hand" || name == "gcc" || name == "clang";
}

struct Mean {
  std::string implementation;
  int threads = 1;
  std::string over;
  double mean = 1;
  int pipelines = 0;
};

std::vector<Mean> Means(const Comparison& result) {
  std::vector<Mean> means;
  for (const ComparisonImplementation& implementation : result.implementations) {
    const auto [name, threads] = SplitThreads(implementation.name);
    for (const ComparisonImplementation& other : result.implementations) {
      const auto [over, other_threads] = SplitThreads(other.name);
      if (over == name || other_threads != threads || !IsReference(over)) continue;
      const auto [mean, pipelines] = result.GeometricMean(implementation.name, other.name);
      if (pipelines > 0) means.push_back({name, threads, over, mean, pipelines});
    }
  }
  return means;
}

}  // namespace

std::string WithThreads(const std::string& implementation, int threads) {
  return StrCat(implementation, "/", threads);
}

std::pair<std::string, int> SplitThreads(const std::string& name) {
  const size_t slash = name.rfind('/');
  int threads = 1;
  if (slash == std::string::npos) return {name, threads};
  std::from_chars(name.data() + slash + 1, name.data() + name.size(), threads);
  return {name.substr(0, slash), threads};
}

Json FusionToJson(const Comparison& result) {
  Json json = ToJson(result);
  Json rows = Json::array();
  for (const Json& row : json["rows"]) {
    for (const Json& entry : row["entries"]) {
      const auto [name, threads] = SplitThreads(entry["implementation"]);
      Json flat;
      flat["pipeline"] = row["kernel"];
      flat["sizes"] = row["sizes"];
      flat["implementation"] = name;
      flat["threads"] = threads;
      flat["ok"] = entry["state"] == "skipped" ? Json() : Json(entry["state"] == "agrees");
      if (entry.contains("time_ns")) {
        flat["time_ms"] = entry["time_ns"].get<double>() / 1e6;
      }
      for (const auto& [key, value] : entry.items()) {
        if (key != "implementation") flat[key] = value;
      }
      rows.push_back(std::move(flat));
    }
  }
  json["rows"] = std::move(rows);
  json["summary"] = Json::array();
  for (const Mean& mean : Means(result)) {
    json["summary"].push_back({{"implementation", mean.implementation},
                               {"threads", mean.threads},
                               {"over", mean.over},
                               {"geomean", mean.mean},
                               {"pipelines", mean.pipelines}});
  }
  return json;
}

absl::StatusOr<Comparison> FusionFromJson(const Json& json) {
  if (!json.is_object()) return InvalidInput("expected an object");
  absl::Status status;
  Json nested = json;
  Json rows = Json::array();
  for (const Json& flat : JsonReader(json, status).List("rows")) {
    JsonReader reader(flat, status);
    std::string pipeline, name;
    int threads = 1;
    reader.Read("pipeline", pipeline);
    reader.Read("implementation", name);
    reader.Read("threads", threads);
    RETURN_IF_ERROR(status);
    if (rows.empty() || rows.back()["kernel"] != pipeline) {
      rows.push_back(
          {{"kernel", pipeline}, {"sizes", reader.Object("sizes")}, {"entries", Json::array()}});
    }
    Json entry = flat;
    entry["implementation"] = WithThreads(name, threads);
    rows.back()["entries"].push_back(std::move(entry));
  }
  nested["rows"] = std::move(rows);
  RETURN_IF_ERROR(status);
  ASSIGN_OR_RETURN(Comparison result, ComparisonFromJson(nested, kFusionSuite));
  result.title = kFusionTitle;
  return result;
}

std::string FusionText(const Comparison& result) {
  std::string text;
  for (const ComparisonRow& row : result.rows) {
    std::string sizes;
    for (const auto& [name, value] : row.sizes) StrAppend(&sizes, sizes.empty() ? "" : "x", value);
    absl::StrAppendFormat(&text, "%s %s\n", row.kernel, sizes);
    for (const ComparisonEntry& entry : row.entries) {
      const auto [name, threads] = SplitThreads(entry.implementation);
      absl::StrAppendFormat(&text, "  %-18s %d thread%s ", name, threads, threads == 1 ? " " : "s");
      if (!entry.ran()) {
        StrAppend(&text,
                  !entry.skipped.empty() ? "skipped: " + entry.skipped
                  : !entry.error.empty() ? "FAILED: " + entry.error
                                         : "VALUES DIFFER: " + entry.difference,
                  "\n");
        continue;
      }
      const std::optional<double> speedup =
          row.Speedup(entry.implementation, result.BaselineOf(entry.implementation));
      absl::StrAppendFormat(&text, "%9.3f ms, %7s times %s, compiled in %.0f ms\n",
                            entry.time_ns / 1e6, speedup ? absl::StrFormat("%.3f", *speedup) : "-",
                            SplitThreads(result.BaselineOf(entry.implementation)).first,
                            entry.compile_ms);
      std::map<std::string, double> figures(entry.figures.begin(), entry.figures.end());
      if (figures.contains("bytes_after") && figures.contains("redundancy")) {
        constexpr double kMiB = 1024 * 1024;
        absl::StrAppendFormat(
            &text, "  %31s%.0f group%s, %.4f times the instances, %.1f of %.1f MiB\n", "",
            figures["groups"], figures["groups"] == 1 ? "" : "s", figures["redundancy"],
            figures["bytes_after"] / kMiB, figures["bytes_before"] / kMiB);
      }
    }
  }
  StrAppend(&text, "\ngeometric means of speed-ups on as many threads:\n");
  for (const Mean& mean : Means(result)) {
    absl::StrAppendFormat(&text, "  %-18s %d thread%s over %-12s %.3f (%d)\n", mean.implementation,
                          mean.threads, mean.threads == 1 ? " " : "s", mean.over, mean.mean,
                          mean.pipelines);
  }
  return text;
}

}  // namespace polynao::benchmarks
