#include "benchmarks/polybench_result.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "benchmarks/html.h"
#include "benchmarks/page.h"

namespace polynao::benchmarks {
namespace {

constexpr const char* kColors[] = {"#8a93a0", "#c9ced6", "#e8b03a", "#c46a5a",
                                   "#9a6fb0", "#2f6db3", "#4d9a63"};

std::string SizesText(const PolyBenchRow& row) {
  return absl::StrJoin(row.sizes, " ", absl::PairFormatter("="));
}

// What stands in the place of a time.
std::string Reason(const PolyBenchEntry& entry) {
  if (!entry.error.empty()) return "FAILED: " + entry.error;
  if (!entry.difference.empty()) return "VALUES DIFFER: " + entry.difference;
  return entry.skipped;
}

std::string SpeedupText(const PolyBenchRow& row, const std::string& implementation,
                        const std::string& baseline) {
  const std::optional<double> speedup = row.Speedup(implementation, baseline);
  if (speedup) return absl::StrFormat("%.2f", *speedup);
  const PolyBenchEntry* entry = row.Find(implementation);
  if (entry == nullptr || entry->ran() || !entry->skipped.empty()) return "-";
  return entry->error.empty() ? "DIFFERS" : "FAILED";
}

nlohmann::ordered_json EntryJson(const PolyBenchEntry& entry) {
  nlohmann::ordered_json json;
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
  if (!entry.notes.empty()) json["notes"] = entry.notes;
  return json;
}

}  // namespace

const PolyBenchEntry* PolyBenchRow::Find(const std::string& implementation) const {
  for (const PolyBenchEntry& entry : entries) {
    if (entry.implementation == implementation) return &entry;
  }
  return nullptr;
}

std::optional<double> PolyBenchRow::Speedup(const std::string& implementation,
                                            const std::string& baseline) const {
  const PolyBenchEntry* ours = Find(implementation);
  const PolyBenchEntry* other = Find(baseline);
  if (ours == nullptr || other == nullptr || !ours->ran() || !other->ran()) return std::nullopt;
  if (ours->time_ns <= 0) return std::nullopt;
  return other->time_ns / ours->time_ns;
}

bool PolyBenchResult::ok() const {
  bool some = false;
  for (const PolyBenchRow& row : rows) {
    for (const PolyBenchEntry& entry : row.entries) {
      if (!entry.error.empty() || !entry.difference.empty()) return false;
      some |= entry.ran();
    }
  }
  return some;
}

std::pair<double, int> PolyBenchResult::GeometricMean(const std::string& implementation) const {
  double logarithms = 0;
  int count = 0;
  for (const PolyBenchRow& row : rows) {
    const std::optional<double> speedup = row.Speedup(implementation, baseline);
    if (!speedup) continue;
    logarithms += std::log(*speedup);
    ++count;
  }
  return {count == 0 ? 1 : std::exp(logarithms / count), count};
}

nlohmann::ordered_json ToJson(const PolyBenchResult& result) {
  nlohmann::ordered_json json;
  json["suite"] = "polybench";
  json["size"] = result.size;
  json["machine"] = result.machine;
  json["date"] = result.date;
  json["commit"] = result.commit;
  json["filter"] = result.filter;
  json["seed"] = result.seed;
  json["wall_seconds"] = result.wall_seconds;
  json["ok"] = result.ok();
  json["baseline"] = result.baseline;
  json["implementations"] = nlohmann::ordered_json::array();
  for (const PolyBenchImplementation& implementation : result.implementations) {
    nlohmann::ordered_json entry = {{"name", implementation.name},
                                    {"command", implementation.command},
                                    {"threads", implementation.threads}};
    if (!implementation.missing.empty()) entry["missing"] = implementation.missing;
    json["implementations"].push_back(entry);
  }
  json["rows"] = nlohmann::ordered_json::array();
  for (const PolyBenchRow& row : result.rows) {
    nlohmann::ordered_json entry;
    entry["kernel"] = row.kernel;
    for (const auto& [name, value] : row.sizes) entry["sizes"][name] = value;
    entry["entries"] = nlohmann::ordered_json::array();
    for (const PolyBenchEntry& e : row.entries) {
      nlohmann::ordered_json one = EntryJson(e);
      const std::optional<double> speedup = row.Speedup(e.implementation, result.baseline);
      if (speedup) one["speedup"] = *speedup;
      entry["entries"].push_back(one);
    }
    json["rows"].push_back(entry);
  }
  json["summary"] = nlohmann::ordered_json::array();
  for (const PolyBenchImplementation& implementation : result.implementations) {
    const auto [mean, kernels] = result.GeometricMean(implementation.name);
    if (kernels == 0) continue;
    json["summary"].push_back(
        {{"implementation", implementation.name}, {"geomean", mean}, {"kernels", kernels}});
  }
  return json;
}

std::string RowsText(const PolyBenchResult& result) {
  std::string text = absl::StrFormat("%-16s %12s", "kernel", StrCat(result.baseline, " ms"));
  for (const PolyBenchImplementation& implementation : result.implementations) {
    absl::StrAppendFormat(&text, " %14s", implementation.name);
  }
  StrAppend(&text, "  compile ms\n");
  for (const PolyBenchRow& row : result.rows) {
    const PolyBenchEntry* baseline = row.Find(result.baseline);
    absl::StrAppendFormat(&text, "%-16s %12s", row.kernel,
                          baseline != nullptr && baseline->ran()
                              ? absl::StrFormat("%.3f", baseline->time_ns / 1e6)
                              : "-");
    for (const PolyBenchImplementation& implementation : result.implementations) {
      absl::StrAppendFormat(&text, " %14s", SpeedupText(row, implementation.name, result.baseline));
    }
    std::vector<std::string> compile;
    for (const PolyBenchEntry& entry : row.entries) {
      if (!entry.implementation.starts_with("nao-") || !entry.ran()) continue;
      compile.push_back(absl::StrFormat("%.0f", entry.compile_ms));
    }
    StrAppend(&text, "  ", absl::StrJoin(compile, " "), "\n");
  }
  return text;
}

std::string SummaryText(const PolyBenchResult& result) {
  std::string text = StrCat("polybench ", result.size, ", ", result.machine, ", ", result.date,
                            "; speed-up over ", result.baseline, ":\n");
  for (const PolyBenchImplementation& implementation : result.implementations) {
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
  for (const PolyBenchRow& row : result.rows) {
    for (const PolyBenchEntry& entry : row.entries) {
      if (entry.error.empty() && entry.difference.empty()) continue;
      StrAppend(&text, row.kernel, ", ", entry.implementation, ": ", Reason(entry), "\n");
    }
  }
  return text;
}

std::string PageHtml(const PolyBenchResult& result) {
  BarChart kernels, means;
  kernels.line = means.line = 1.0;
  size_t color = 0;
  means.groups = {"geometric mean"};
  for (const PolyBenchRow& row : result.rows) kernels.groups.push_back(row.kernel);
  for (const PolyBenchImplementation& implementation : result.implementations) {
    const std::string fill = kColors[color++ % std::size(kColors)];
    const auto [mean, count] = result.GeometricMean(implementation.name);
    if (count == 0 || implementation.name == result.baseline) continue;
    BarChart::Series series{.name = implementation.name, .color = fill, .values = {}};
    for (const PolyBenchRow& row : result.rows) {
      series.values.push_back(row.Speedup(implementation.name, result.baseline));
    }
    kernels.series.push_back(series);
    series.values = {mean};
    series.show_values = true;
    means.series.push_back(series);
  }
  std::string html = StrCat(
      PageHead("polybench: the 30 kernels of PolyBench/C 4.2"), "<p>", Escape(result.size), "; ",
      Escape(result.machine), "; ", Escape(result.date),
      result.commit.empty() ? "" : StrCat("; commit ", Escape(result.commit)), ".</p>\n<pre>",
      Escape(SummaryText(result)), "</pre>\n<h2>Speed-up over ", Escape(result.baseline), "</h2>\n",
      BarChartSvg(kernels), "<h2>Geometric means</h2>\n", BarChartSvg(means));
  StrAppend(&html, "<h2>Times</h2>\n<table>\n");
  std::vector<std::string> heads = {"kernel", "sizes"};
  for (const PolyBenchImplementation& implementation : result.implementations) {
    heads.push_back(implementation.name + " ms");
    if (implementation.name.starts_with("nao-")) heads.push_back("compile ms");
  }
  html += Heads(heads, 2);
  for (const PolyBenchRow& row : result.rows) {
    StrAppend(&html, "<tr>", Cell(row.kernel), Cell(SizesText(row)));
    for (const PolyBenchImplementation& implementation : result.implementations) {
      const PolyBenchEntry* entry = row.Find(implementation.name);
      const bool ran = entry != nullptr && entry->ran();
      const bool bad = entry != nullptr && !ran && entry->skipped.empty();
      StrAppend(&html, Cell(ran   ? absl::StrFormat("%.3f", entry->time_ns / 1e6)
                            : bad ? SpeedupText(row, implementation.name, result.baseline)
                                  : "-",
                            true,
                            bad   ? "bad"
                            : ran ? ""
                                  : "off"));
      if (!implementation.name.starts_with("nao-")) continue;
      StrAppend(&html, Cell(ran ? absl::StrFormat("%.1f", entry->compile_ms) : "-", true));
    }
    StrAppend(&html, "</tr>\n");
  }
  return html + "</table>\n</body></html>\n";
}

}  // namespace polynao::benchmarks
