#include "benchmarks/dense_result.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/dense_cases.h"
#include "benchmarks/fusion_result.h"
#include "nlohmann/json.hpp"

namespace polynao::benchmarks {

using Json = nlohmann::ordered_json;

namespace {

bool IsOurs(const std::string& implementation) { return implementation.starts_with("nao-"); }

}  // namespace

double FigureOf(const ComparisonEntry& entry, const std::string& name) {
  for (const auto& [figure, value] : entry.figures) {
    if (figure == name) return value;
  }
  return 0;
}

std::vector<ClassSpeedup> ClassSpeedups(const Comparison& result) {
  std::vector<std::string> classes;
  for (const ComparisonRow& row : result.rows) {
    const std::string name = DenseClass(row.kernel);
    if (std::find(classes.begin(), classes.end(), name) == classes.end()) classes.push_back(name);
  }
  std::vector<ClassSpeedup> all;
  for (const std::string& name : classes) {
    for (const ComparisonImplementation& ours : result.implementations) {
      const auto [implementation, threads] = SplitThreads(ours.name);
      if (!IsOurs(implementation)) continue;
      for (const ComparisonImplementation& other : result.implementations) {
        const auto [over, other_threads] = SplitThreads(other.name);
        if (IsOurs(over) || other_threads != threads) continue;
        ClassSpeedup speedup{
            .name = name, .threads = threads, .implementation = implementation, .over = over};
        double logarithms = 0;
        for (const ComparisonRow& row : result.rows) {
          if (DenseClass(row.kernel) != name) continue;
          const std::optional<double> one = row.Speedup(ours.name, other.name);
          if (!one) continue;
          logarithms += std::log(*one);
          if (speedup.layers++ == 0 || *one < speedup.least) {
            speedup.least = *one;
            speedup.least_kernel = row.kernel;
          }
        }
        if (speedup.layers == 0) continue;
        speedup.mean = std::exp(logarithms / speedup.layers);
        all.push_back(std::move(speedup));
      }
    }
  }
  return all;
}

Json DenseToJson(const Comparison& result) {
  Json json = ToJson(result);
  json["classes"] = Json::array();
  for (const ClassSpeedup& one : ClassSpeedups(result)) {
    json["classes"].push_back({{"class", one.name},
                               {"threads", one.threads},
                               {"implementation", one.implementation},
                               {"over", one.over},
                               {"geomean", one.mean},
                               {"least", one.least},
                               {"least_kernel", one.least_kernel},
                               {"layers", one.layers}});
  }
  return json;
}

absl::StatusOr<Comparison> DenseFromJson(const Json& json) {
  ASSIGN_OR_RETURN(Comparison result, ComparisonFromJson(json, kDenseSuite));
  result.title = kDenseTitle;
  return result;
}

std::string DenseText(const Comparison& result) {
  std::string text;
  for (const ComparisonRow& row : result.rows) {
    StrAppend(&text, row.kernel, "\n");
    for (const ComparisonEntry& entry : row.entries) {
      const auto [name, threads] = SplitThreads(entry.implementation);
      absl::StrAppendFormat(&text, "  %-16s %d thread%s ", name, threads, threads == 1 ? " " : "s");
      if (!entry.ran()) {
        StrAppend(&text,
                  !entry.skipped.empty() ? "skipped: " + entry.skipped
                  : !entry.error.empty() ? "FAILED: " + entry.error
                                         : "VALUES DIFFER: " + entry.difference,
                  "\n");
        continue;
      }
      absl::StrAppendFormat(&text, "%9.3f ms", entry.time_ns / 1e6);
      if (IsOurs(name)) {
        const double arithmetic = FigureOf(entry, "mac_ms"), memory = FigureOf(entry, "memory_ms");
        absl::StrAppendFormat(&text, ", %.2f of the bound by %s, compiled in %.0f ms",
                              std::max(arithmetic, memory) / (entry.time_ns / 1e6),
                              arithmetic >= memory ? "arithmetic" : "memory", entry.compile_ms);
      }
      StrAppend(&text, "\n");
    }
  }
  StrAppend(&text, "\nspeed-ups on as many threads, geometric mean (least):\n");
  for (const ClassSpeedup& one : ClassSpeedups(result)) {
    absl::StrAppendFormat(&text, "  %-24s %d thread%s %-12s over %-15s %.3f (%.3f), %d layer%s\n",
                          one.name, one.threads, one.threads == 1 ? " " : "s", one.implementation,
                          one.over, one.mean, one.least, one.layers, one.layers == 1 ? "" : "s");
  }
  for (const ComparisonImplementation& one : result.implementations) {
    if (!one.missing.empty()) StrAppend(&text, one.name, " is left out: ", one.missing, "\n");
  }
  return text;
}

}  // namespace polynao::benchmarks
