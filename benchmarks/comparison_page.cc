#include "benchmarks/comparison_page.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "pages/charts.h"
#include "pages/page.h"

namespace polynao::benchmarks {
namespace {

using pages::BarChart;
using pages::Cell;
using pages::Escape;
using pages::Table;

bool IsOurs(const std::string& implementation) { return implementation.starts_with("nao-"); }

std::string FactsHtml(const Comparison& result) {
  std::vector<std::string> facts = {result.size, result.machine, result.date};
  if (!result.commit.empty()) facts.push_back("commit " + result.commit);
  facts.push_back(StrCat("seed ", result.seed));
  if (!result.filter.empty()) facts.push_back("only kernels with " + result.filter);
  facts.push_back(absl::StrFormat("%.0f s", result.wall_seconds));
  return StrCat("<p>", Escape(absl::StrJoin(facts, "; ")), ".</p>\n");
}

std::string ImplementationsHtml(const Comparison& result) {
  Table table({"implementation", "command", "threads", "kernels", "geometric mean"}, 2);
  for (const ComparisonImplementation& implementation : result.implementations) {
    const auto [mean, kernels] = result.GeometricMean(implementation.name);
    std::vector<Cell> cells = {implementation.name, implementation.command};
    if (implementation.missing.empty()) {
      cells.insert(cells.end(),
                   {implementation.threads, kernels, kernels == 0 ? Cell("-") : Cell(mean, 3)});
    } else {
      cells.emplace_back("missing: " + implementation.missing, "off", 3);
    }
    table.Row(cells);
  }
  return table.Html();
}

// The speed-ups over one baseline, of the implementations that have it.
std::string SpeedupsHtml(const Comparison& result, const std::string& baseline) {
  BarChart chart{.line = 1.0, .is_logarithmic = true};
  for (const ComparisonRow& row : result.rows) chart.groups.push_back(row.kernel);
  chart.groups.emplace_back("geometric mean");
  for (const ComparisonImplementation& implementation : result.implementations) {
    const auto [mean, kernels] = result.GeometricMean(implementation.name);
    if (kernels == 0 || implementation.name == baseline) continue;
    if (result.BaselineOf(implementation.name) != baseline) continue;
    BarChart::Series series{.name = implementation.name};
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
  Table table({"kernel", "implementation", "", "why"});
  bool any = false;
  for (const ComparisonRow& row : result.rows) {
    for (const ComparisonEntry& entry : row.entries) {
      if (entry.error.empty() && entry.difference.empty()) continue;
      any = true;
      table.Row({row.kernel, entry.implementation,
                 Cell(entry.error.empty() ? "values differ" : "failed", "bad"),
                 entry.error.empty() ? entry.difference : entry.error});
    }
  }
  if (!any) return "<p>All values agree.</p>\n";
  return StrCat("<h2>Without a time</h2>\n", table.Html());
}

std::string TimesHtml(const Comparison& result) {
  std::vector<std::string> heads = {"kernel", "sizes"};
  for (const ComparisonImplementation& implementation : result.implementations) {
    if (!implementation.missing.empty()) continue;
    heads.push_back(implementation.name);
    if (IsOurs(implementation.name)) heads.push_back("compile");
  }
  Table table(heads, 2);
  for (const ComparisonRow& row : result.rows) {
    std::vector<Cell> cells = {row.kernel, absl::StrJoin(row.sizes, " ", absl::PairFormatter("="))};
    std::optional<double> least;
    for (const ComparisonEntry& entry : row.entries) {
      if (entry.ran()) least = std::min(entry.time_ns, least.value_or(entry.time_ns));
    }
    for (const ComparisonImplementation& implementation : result.implementations) {
      if (!implementation.missing.empty()) continue;
      const ComparisonEntry* entry = row.Find(implementation.name);
      const bool ran = entry != nullptr && entry->ran();
      if (ran) {
        cells.emplace_back(entry->time_ns / 1e6, 3, entry->time_ns == least ? "good" : "");
      } else if (entry == nullptr || !entry->skipped.empty()) {
        cells.emplace_back("-", "off");
      } else {
        cells.emplace_back(entry->error.empty() ? "DIFFERS" : "FAILED", "bad");
      }
      if (!IsOurs(implementation.name)) continue;
      cells.push_back(ran ? Cell(entry->compile_ms, 0, "off") : Cell("-", "off"));
    }
    table.Row(cells);
  }
  return StrCat("<h2>Times in ms</h2>\n", table.Html());
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
  Table table(heads, 2);
  for (const ComparisonRow& row : result.rows) {
    for (const ComparisonEntry& entry : row.entries) {
      if (entry.figures.empty()) continue;
      std::vector<Cell> cells = {row.kernel, entry.implementation, Cell(entry.time_ns / 1e6, 3),
                                 Cell(entry.compile_ms, 0)};
      for (const std::string& name : names) {
        const auto figure = std::find_if(entry.figures.begin(), entry.figures.end(),
                                         [&](const auto& f) { return f.first == name; });
        cells.push_back(figure == entry.figures.end() ? Cell("-", "off")
                                                      : Cell(FigureText(name, figure->second)));
      }
      table.Row(cells);
    }
  }
  return StrCat("<h2>What the schedules run</h2>\n", table.Html());
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
  return pages::Page(result.title, StrCat(FactsHtml(result), ImplementationsHtml(result), charts,
                                          FailuresHtml(result), TimesHtml(result),
                                          FiguresHtml(result), NotesHtml(result)));
}

}  // namespace polynao::benchmarks
