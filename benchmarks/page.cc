#include "benchmarks/page.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "benchmarks/bar_chart.h"
#include "benchmarks/html.h"

namespace polynao::benchmarks {
namespace {

std::string Color(const std::string& impl, size_t index) {
  if (impl == kCompiled) return "#2f6db3";
  if (impl == "library") return "#e8b03a";
  if (impl == "expert") return "#4d9a63";
  static constexpr const char* kOthers[] = {"#9a6fb0", "#c46a5a", "#7d8794"};
  return kOthers[index % std::size(kOthers)];
}

// The implementations of a result, in the order of the rows.
std::vector<std::string> Implementations(const SuiteResult& result) {
  std::vector<std::string> names;
  for (const Row& row : result.rows) {
    if (std::find(names.begin(), names.end(), row.impl) == names.end()) names.push_back(row.impl);
  }
  return names;
}

// The rows of a class: case by case, in it by implementation.
struct ClassRows {
  std::vector<const SuiteCase*> cases;
  std::vector<std::map<std::string, const Row*>> rows;  // as many
};

ClassRows RowsOf(const SuiteResult& result, const std::string& op_class) {
  ClassRows found;
  for (const Row& row : result.rows) {
    if (row.suite_case.op_class != op_class) continue;
    if (found.cases.empty() || found.cases.back()->Name() != row.suite_case.Name()) {
      found.cases.push_back(&row.suite_case);
      found.rows.emplace_back();
    }
    found.rows.back()[row.impl] = &row;
  }
  return found;
}

const Row* Agreeing(const std::map<std::string, const Row*>& rows, const std::string& impl) {
  const auto found = rows.find(impl);
  if (found == rows.end() || found->second->state != Row::State::kAgrees) return nullptr;
  return found->second->cycles > 0 ? found->second : nullptr;
}

// "add 255x27x27" where a class has several operators, else the shape alone.
std::vector<std::string> Labels(const ClassRows& class_rows) {
  const auto& cases = class_rows.cases;
  const bool several = std::any_of(cases.begin(), cases.end(),
                                   [&](const SuiteCase* c) { return c->op != cases[0]->op; });
  std::vector<std::string> labels;
  for (const SuiteCase* c : cases)
    labels.push_back(several ? StrCat(c->op, " ", c->shape) : c->shape);
  return labels;
}

// An implementation that ran in no case takes no room.
void AddUnlessEmpty(BarChart::Series series, BarChart& chart) {
  const auto& values = series.values;
  if (std::any_of(values.begin(), values.end(), [](const auto& v) { return v.has_value(); })) {
    chart.series.push_back(std::move(series));
  }
}

std::string SpeedupChart(const SuiteResult& result, const ClassRows& class_rows) {
  BarChart chart;
  chart.groups = Labels(class_rows);
  chart.line = 1.0;
  size_t index = 0;
  for (const std::string& impl : Implementations(result)) {
    // Ablations may be a hundred times slower or stop; the tables have them.
    if (impl != kCompiled && impl != "library" && impl != "expert") continue;
    BarChart::Series series = {.name = impl,
                               .color = Color(impl, index++),
                               .values = {},
                               .show_values = impl == kCompiled};
    for (const auto& rows : class_rows.rows) {
      const Row* row = Agreeing(rows, impl);
      const Row* library = Agreeing(rows, "library");
      if (row == nullptr || library == nullptr) {
        series.values.push_back(std::nullopt);
      } else {
        series.values.push_back(static_cast<double>(library->cycles) /
                                static_cast<double>(row->cycles));
      }
    }
    AddUnlessEmpty(std::move(series), chart);
  }
  return BarChartSvg(chart);
}

std::string EfficiencyChart(const SuiteResult& result, const ClassRows& class_rows) {
  BarChart chart;
  chart.groups = Labels(class_rows);
  chart.line = 1.0;
  size_t index = 0;
  for (const std::string& impl : Implementations(result)) {
    BarChart::Series series = {.name = impl,
                               .color = Color(impl, index++),
                               .values = {},
                               .show_values = impl == kCompiled};
    for (const auto& rows : class_rows.rows) {
      const Row* row = Agreeing(rows, impl);
      series.values.push_back(row == nullptr ? std::nullopt : std::optional(row->efficiency()));
    }
    AddUnlessEmpty(std::move(series), chart);
  }
  return BarChartSvg(chart);
}

std::string ClassChart(const SuiteResult& result) {
  BarChart chart;
  chart.line = 1.0;
  chart.series = {{.name = "here", .color = "#2f6db3", .values = {}, .show_values = true},
                  {.name = "goal", .color = "#b9c3cf", .values = {}, .show_values = true},
                  {.name = "paper, its card and library",
                   .color = "#d9d2c0",
                   .values = {},
                   .show_values = true}};
  for (const ClassSummary& c : result.summary.classes) {
    chart.groups.push_back(c.figures.title);
    const Statistic* speedup = c.Speedup("library");
    const bool known = speedup != nullptr && speedup->cases > 0;
    chart.series[0].values.push_back(known ? std::optional(speedup->geomean) : std::nullopt);
    chart.series[1].values.push_back(c.figures.goal.geomean);
    chart.series[2].values.push_back(c.figures.paper.geomean);
  }
  return BarChartSvg(chart);
}

// Geometric mean and minimum, coloured by whether they reach the goal.
std::string StatisticCells(const Statistic& s, const SpeedupFigures* goal) {
  if (s.cases == 0) {
    return Cell("0", true) + Cell("-", true) + Cell("-", true) + Cell("-", true) + Cell("");
  }
  const auto css = [&](double value, double wanted) {
    return goal == nullptr ? "" : value >= wanted ? "good" : "bad";
  };
  return Cell(StrCat(s.cases), true) +
         Cell(absl::StrFormat("%.3f", s.geomean), true, css(s.geomean, goal ? goal->geomean : 0)) +
         Cell(absl::StrFormat("%.3f", s.min), true, css(s.min, goal ? goal->min : 0)) +
         Cell(absl::StrFormat("%.3f", s.max), true) + Cell(s.min_shape);
}

std::string SummaryHtml(const SuiteResult& result) {
  const Summary& summary = result.summary;
  std::string html = "<h2>Summary</h2>\n";
  absl::StrAppendFormat(&html,
                        "<p>%d rows agree with the reference, %d differ, %d failed, %d skipped.",
                        summary.agrees, summary.differs, summary.failed, summary.skipped);
  for (const auto& [reason, count] : summary.skip_reasons) {
    absl::StrAppendFormat(&html, "<br><span class=\"off\">skipped %d: %s</span>", count,
                          Escape(reason));
  }
  html += "</p>\n<h3>Speed-up of compiled programs</h3>\n<table>\n";
  html +=
      Heads({"class", "against", "cases", "geo-mean", "min", "max", "min at", "goal"}, 2, "min at");
  for (const ClassSummary& c : summary.classes) {
    for (const auto& [impl, s] : c.speedup) {
      const SpeedupFigures* goal = impl == "library"  ? &c.figures.goal
                                   : impl == "expert" ? &c.figures.goal_expert
                                                      : nullptr;
      StrAppend(&html, "<tr>", Cell(c.figures.op_class), Cell(impl), StatisticCells(s, goal),
                Cell(goal ? absl::StrFormat("%.2f, min %.2f", goal->geomean, goal->min) : "", true),
                "</tr>\n");
    }
  }
  html += "</table>\n<h3>Efficiency: bound / cycles</h3>\n<table>\n";
  html +=
      Heads({"class", "implementation", "cases", "geo-mean", "min", "max", "min at"}, 2, "min at");
  for (const ClassSummary& c : summary.classes) {
    for (const auto& [impl, s] : c.efficiency) {
      StrAppend(&html, "<tr>", Cell(c.figures.op_class), Cell(impl), StatisticCells(s, nullptr),
                "</tr>\n");
    }
  }
  html +=
      "</table>\n<h3>Compiled elementwise cases, by the bytes that must cross GMEM</h3>\n<table>\n";
  html += Heads({"traffic", "goal", "reach it", "do not", "which"}, 1, "which");
  for (const TrafficSummary& t : summary.traffic) {
    std::string missed;
    for (const std::string& name : t.missed) StrAppend(&missed, missed.empty() ? "" : ", ", name);
    StrAppend(&html, "<tr>",
              Cell(absl::StrReplaceAll(ToAbsl(t.goal.name), {{"_mb", " MB"}, {"_", " "}})),
              Cell(absl::StrFormat("%.2f", t.goal.efficiency), true),
              Cell(StrCat(t.reached), true, t.reached > 0 ? "good" : ""),
              Cell(StrCat(t.missed.size()), true, t.missed.empty() ? "" : "bad"), Cell(missed),
              "</tr>\n");
  }
  html +=
      "</table>\n<h3>Lines of code</h3>\n"
      "<p>Neither blank nor comment; in brackets the paper's Table III.</p>\n<table>\n";
  html += Heads({"class", "tensor program", "library", "expert"}, 1);
  for (const ClassSummary& c : summary.classes) {
    const auto count = [&](const char* kind, int paper) {
      const auto found = summary.lines.find({kind, c.figures.op_class});
      std::string text = found == summary.lines.end() ? "-" : StrCat(found->second);
      if (paper > 0) StrAppend(&text, " (", paper, ")");
      return Cell(text, true);
    };
    StrAppend(&html, "<tr>", Cell(c.figures.op_class),
              count("tensor-program", c.figures.paper_tensor_program_lines),
              count("library", c.figures.paper_hand_written_lines), count("expert", 0), "</tr>\n");
  }
  return html + "</table>\n";
}

std::string RowsHtml(const SuiteResult& result) {
  std::string html = "<h2>Rows</h2>\n<table>\n";
  html += Heads({"class", "op", "shape", "dtype", "implementation", "values", "cycles", "bound",
                 "DRAM's bound", "efficiency", "instructions", "compile ms", "simulate ms"},
                6);
  for (const Row& row : result.rows) {
    const SuiteCase& c = row.suite_case;
    StrAppend(&html, "<tr>", Cell(c.op_class), Cell(c.op), Cell(c.shape), Cell(c.dtype),
              Cell(row.impl));
    if (row.ran()) {
      const bool agrees = row.state == Row::State::kAgrees;
      StrAppend(&html, Cell(agrees ? "agree" : "DIFFER", false, agrees ? "good" : "bad"),
                Cell(StrCat(row.cycles), true), Cell(StrCat(row.bound_cycles), true),
                Cell(StrCat(row.dram_bound_cycles), true),
                Cell(absl::StrFormat("%.3f", row.efficiency()), true),
                Cell(StrCat(row.instructions), true),
                Cell(absl::StrFormat("%.2f", row.compile_ms), true),
                Cell(absl::StrFormat("%.0f", row.simulate_ms), true), "</tr>\n");
    } else {
      const bool skipped = row.state == Row::State::kSkipped;
      StrAppend(&html, "<td colspan=\"8\" class=\"", skipped ? "off" : "bad", "\">",
                skipped ? "skipped: " : "failed: ", Escape(row.reason), "</td></tr>\n");
    }
  }
  return html + "</table>\n";
}

std::string MachineHtml(const SuiteResult& result) {
  std::string html = StrCat("<details><summary>Machine ", Escape(result.machine.name),
                            "</summary>\n<table>\n", Heads({"parameter", "value"}, 1));
  for (const auto& [name, value] : result.machine.parameters()) {
    StrAppend(&html, "<tr>", Cell(name), Cell(StrCat(value), true), "</tr>\n");
  }
  return html + "</table></details>\n";
}

}  // namespace

std::string PageHtml(const SuiteResult& result) {
  std::string html = StrCat(PageHead(StrCat(result.suite.name, " on ", result.machine.name)), "<p>",
                            Escape(result.suite.doc), ".<br>");
  absl::StrAppendFormat(&html, "Seed %d, %d jobs, %.1f s", result.seed, result.jobs,
                        result.wall_seconds);
  if (!result.filter.empty()) StrAppend(&html, ", only rows with ", Escape(result.filter));
  html +=
      ". Cycles are simulated; every value was compared with a plain-loop reference. Rows that did "
      "not run have no bar.</p>\n";
  html += "<h2>Speed-up over the library, by class</h2>\n<p>Geometric means.</p>\n";
  html += ClassChart(result);
  for (const ClassSummary& c : result.summary.classes) {
    const ClassRows rows = RowsOf(result, c.figures.op_class);
    if (rows.cases.empty()) continue;
    StrAppend(&html, "<h2>", Escape(c.figures.title), "</h2>\n");
    const bool any = std::any_of(rows.rows.begin(), rows.rows.end(), [](const auto& by_impl) {
      return std::any_of(by_impl.begin(), by_impl.end(),
                         [](const auto& entry) { return entry.second->ran(); });
    });
    if (!any) {
      const Row& row = *rows.rows[0].begin()->second;
      absl::StrAppendFormat(&html, "<p>None of its %d cases ran: %s.</p>\n", rows.cases.size(),
                            Escape(row.reason));
      continue;
    }
    StrAppend(&html, "<h3>Speed-up over the library</h3>\n", SpeedupChart(result, rows));
    StrAppend(&html, "<h3>Efficiency: bound / cycles</h3>\n", EfficiencyChart(result, rows));
  }
  html += SummaryHtml(result);
  html += RowsHtml(result);
  html += MachineHtml(result);
  return html + "</body></html>\n";
}

}  // namespace polynao::benchmarks
