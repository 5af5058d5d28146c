#include "benchmarks/comparison_page.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "benchmarks/bar_chart.h"
#include "benchmarks/html.h"

namespace polynao::benchmarks {
namespace {

constexpr const char* kColors[] = {"#8a93a0", "#c9ced6", "#e8b03a", "#c46a5a",
                                   "#9a6fb0", "#2f6db3", "#4d9a63", "#3a3f47",
                                   "#b5d0ee", "#7a5230", "#c08bb8", "#86b7a0"};

bool IsOurs(const std::string& implementation) { return implementation.starts_with("nao-"); }

std::string HeadHtml(const Comparison& result) {
  std::vector<std::string> facts = {result.size, result.machine, result.date};
  if (!result.commit.empty()) facts.push_back("commit " + result.commit);
  facts.push_back(StrCat("seed ", result.seed));
  if (!result.filter.empty()) facts.push_back("only kernels with " + result.filter);
  facts.push_back(absl::StrFormat("%.0f s", result.wall_seconds));
  return StrCat(PageHead(result.title), "<p>", Escape(absl::StrJoin(facts, "; ")), ".</p>\n");
}

std::string ImplementationsHtml(const Comparison& result) {
  std::string html = "<table>\n";
  html += Heads({"implementation", "command", "threads", "kernels", "geometric mean"}, 2);
  for (const ComparisonImplementation& implementation : result.implementations) {
    const auto [mean, kernels] = result.GeometricMean(implementation.name);
    StrAppend(&html, "<tr>", Cell(implementation.name), Cell(implementation.command));
    if (!implementation.missing.empty()) {
      StrAppend(&html, "<td colspan=\"3\" class=\"off\">missing: ", Escape(implementation.missing),
                "</td></tr>\n");
      continue;
    }
    StrAppend(&html, Cell(StrCat(implementation.threads), true), Cell(StrCat(kernels), true),
              Cell(kernels == 0 ? "-" : absl::StrFormat("%.3f", mean), true), "</tr>\n");
  }
  return html + "</table>\n";
}

// The speed-ups over one baseline, of the implementations that have it.
std::string SpeedupsHtml(const Comparison& result, const std::string& baseline) {
  BarChart chart;
  chart.line = 1.0;
  chart.is_logarithmic = true;
  for (const ComparisonRow& row : result.rows) chart.groups.push_back(row.kernel);
  chart.groups.emplace_back("geometric mean");
  size_t color = 0;
  for (const ComparisonImplementation& implementation : result.implementations) {
    const auto [mean, kernels] = result.GeometricMean(implementation.name);
    if (kernels == 0 || implementation.name == baseline) continue;
    if (result.BaselineOf(implementation.name) != baseline) continue;
    const std::string fill = kColors[color++ % std::size(kColors)];
    BarChart::Series series{.name = implementation.name, .color = fill, .values = {}};
    for (const ComparisonRow& row : result.rows) {
      series.values.push_back(row.Speedup(implementation.name, baseline));
    }
    series.values.emplace_back(mean);
    chart.series.push_back(std::move(series));
  }
  return StrCat(
      "<h2>Speed-up over ", Escape(baseline), "</h2>\n<p>Time of ", Escape(baseline),
      " / time of the implementation, on a logarithmic axis. Bars that go down are slower.</p>\n",
      BarChartSvg(chart));
}

// What was not measured because it is wrong.
std::string FailuresHtml(const Comparison& result) {
  std::string html;
  for (const ComparisonRow& row : result.rows) {
    for (const ComparisonEntry& entry : row.entries) {
      if (entry.error.empty() && entry.difference.empty()) continue;
      StrAppend(&html, "<tr>", Cell(row.kernel), Cell(entry.implementation),
                Cell(entry.error.empty() ? "values differ" : "failed", false, "bad"),
                Cell(entry.error.empty() ? entry.difference : entry.error), "</tr>\n");
    }
  }
  if (html.empty()) return "<p>All values agree.</p>\n";
  return StrCat("<h2>Without a time</h2>\n<table>\n",
                Heads({"kernel", "implementation", "", "why"}, 4), html, "</table>\n");
}

std::string TimesHtml(const Comparison& result) {
  std::vector<std::string> heads = {"kernel", "sizes"};
  for (const ComparisonImplementation& implementation : result.implementations) {
    if (!implementation.missing.empty()) continue;
    heads.push_back(implementation.name);
    if (IsOurs(implementation.name)) heads.push_back("compile");
  }
  std::string html = StrCat("<h2>Times in ms</h2>\n<table>\n", Heads(heads, 2));
  for (const ComparisonRow& row : result.rows) {
    StrAppend(&html, "<tr>", Cell(row.kernel),
              Cell(absl::StrJoin(row.sizes, " ", absl::PairFormatter("="))));
    std::optional<double> least;
    for (const ComparisonEntry& entry : row.entries) {
      if (entry.ran()) least = std::min(entry.time_ns, least.value_or(entry.time_ns));
    }
    for (const ComparisonImplementation& implementation : result.implementations) {
      if (!implementation.missing.empty()) continue;
      const ComparisonEntry* entry = row.Find(implementation.name);
      const bool ran = entry != nullptr && entry->ran();
      if (ran) {
        html += Cell(absl::StrFormat("%.3f", entry->time_ns / 1e6), true,
                     entry->time_ns == least ? "good" : "");
      } else if (entry == nullptr || !entry->skipped.empty()) {
        html += Cell("-", true, "off");
      } else {
        html += Cell(entry->error.empty() ? "DIFFERS" : "FAILED", true, "bad");
      }
      if (!IsOurs(implementation.name)) continue;
      html += Cell(ran ? absl::StrFormat("%.0f", entry->compile_ms) : "-", true, "off");
    }
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

// Bytes to and from memory in MiB, those of a tile in KiB, counts without a fraction.
std::string FigureHead(const std::string& name) {
  const bool is_tile = name.starts_with("tile");
  return absl::StrReplaceAll(name, {{"bytes", is_tile ? "KiB" : "MiB"}, {"_", " "}});
}

std::string FigureText(const std::string& name, double value) {
  if (name.find("bytes") != std::string::npos)
    return absl::StrFormat("%.1f", value / (name.starts_with("tile") ? 1024 : 1024 * 1024));
  return value == std::floor(value) ? absl::StrFormat("%.0f", value)
                                    : absl::StrFormat("%.4f", value);
}

// What is known of this compiler's schedules.
std::string FiguresHtml(const Comparison& result) {
  std::vector<std::string> names;
  for (const ComparisonRow& row : result.rows) {
    for (const ComparisonEntry& entry : row.entries) {
      for (const auto& [name, value] : entry.figures) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
    }
  }
  if (names.empty()) return "";
  std::vector<std::string> heads = {"kernel", "implementation", "time in ms", "compile in ms"};
  for (const std::string& name : names) heads.push_back(FigureHead(name));
  std::string html = StrCat("<h2>What the schedules run</h2>\n<table>\n", Heads(heads, 2));
  for (const ComparisonRow& row : result.rows) {
    for (const ComparisonEntry& entry : row.entries) {
      if (entry.figures.empty()) continue;
      StrAppend(&html, "<tr>", Cell(row.kernel), Cell(entry.implementation),
                Cell(absl::StrFormat("%.3f", entry.time_ns / 1e6), true),
                Cell(absl::StrFormat("%.0f", entry.compile_ms), true));
      for (const std::string& name : names) {
        const auto figure = std::find_if(entry.figures.begin(), entry.figures.end(),
                                         [&](const auto& f) { return f.first == name; });
        html += figure == entry.figures.end() ? Cell("-", true, "off")
                                              : Cell(FigureText(name, figure->second), true);
      }
      html += "</tr>\n";
    }
  }
  return html + "</table>\n";
}

std::string NotesHtml(const Comparison& result) {
  std::string html;
  for (const ComparisonRow& row : result.rows) {
    for (const ComparisonEntry& entry : row.entries) {
      if (entry.notes.empty()) continue;
      StrAppend(&html, "<h3>", Escape(row.kernel), ", ", Escape(entry.implementation),
                "</h3>\n<pre>", Escape(absl::StrJoin(entry.notes, "\n")), "</pre>\n");
    }
  }
  if (html.empty()) return html;
  return StrCat("<details><summary>What the schedules did</summary>\n", html, "</details>\n");
}

}  // namespace

std::string PageHtml(const Comparison& result) {
  std::vector<std::string> baselines = {result.baseline};
  for (const ComparisonImplementation& implementation : result.implementations) {
    const std::string& baseline = result.BaselineOf(implementation.name);
    if (std::find(baselines.begin(), baselines.end(), baseline) == baselines.end()) {
      baselines.push_back(baseline);
    }
  }
  std::string charts;
  for (const std::string& baseline : baselines) charts += SpeedupsHtml(result, baseline);
  return StrCat(HeadHtml(result), ImplementationsHtml(result), charts, FailuresHtml(result),
                TimesHtml(result), FiguresHtml(result), NotesHtml(result), "</body></html>\n");
}

}  // namespace polynao::benchmarks
