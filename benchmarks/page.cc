#include "benchmarks/page.h"

#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "pages/charts.h"
#include "pages/page.h"
#include "pages/svg.h"

namespace polynao::benchmarks {
namespace {

using pages::BarChart;
using pages::BarChartSvg;
using pages::Cell;
using pages::Escape;
using pages::Table;

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

// A bar for each implementation of each case: value(row, the library's row), where there is one. Each implementation
// has its color on the whole page.
template <typename Value>
std::string CaseChart(const SuiteResult& result, const ClassRows& class_rows, const Value& value) {
  BarChart chart{.groups = Labels(class_rows), .line = 1.0};
  size_t color = 0;
  for (const std::string& impl : Implementations(result)) {
    BarChart::Series series = {
        .name = impl, .show_values = impl == kCompiled, .color = pages::SeriesColor(color++)};
    bool any = false;
    for (const auto& rows : class_rows.rows) {
      const Row* row = Agreeing(rows, impl);
      series.values.push_back(row == nullptr ? std::nullopt
                                             : value(*row, Agreeing(rows, "library")));
      any |= series.values.back().has_value();
    }
    // An implementation that ran in no case takes no room.
    if (any) chart.series.push_back(std::move(series));
  }
  return BarChartSvg(chart);
}

std::optional<double> Speedup(const Row& row, const Row* library) {
  // Ablations may be a hundred times slower or stop; the tables have them.
  const bool is_shown = row.impl == kCompiled || row.impl == "library" || row.impl == "expert";
  if (!is_shown || library == nullptr) return std::nullopt;
  return static_cast<double>(library->cycles) / static_cast<double>(row.cycles);
}

std::optional<double> Efficiency(const Row& row, const Row*) { return row.efficiency(); }

std::string ClassChart(const SuiteResult& result) {
  BarChart chart{.line = 1.0};
  chart.series = {{.name = "here", .show_values = true},
                  {.name = "goal", .show_values = true, .color = "#b9c3cf"},
                  {.name = "paper, its card and library", .show_values = true, .color = "#d9d2c0"}};
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
std::vector<Cell> StatisticCells(const std::string& op_class, const std::string& impl,
                                 const Statistic& s, const SpeedupFigures* goal = nullptr) {
  if (s.cases == 0) return {op_class, impl, 0, "-", "-", "-", ""};
  const auto css = [&](double value, double wanted) {
    return goal == nullptr ? "" : value >= wanted ? "good" : "bad";
  };
  return {op_class,
          impl,
          s.cases,
          Cell(s.geomean, 3, css(s.geomean, goal ? goal->geomean : 0)),
          Cell(s.min, 3, css(s.min, goal ? goal->min : 0)),
          Cell(s.max, 3),
          s.min_shape};
}

std::string SummaryHtml(const SuiteResult& result) {
  const Summary& summary = result.summary;
  std::string html = absl::StrFormat(
      "<h2>Summary</h2>\n<p>%d rows agree with the reference, %d differ, %d failed, %d skipped.",
      summary.agrees, summary.differs, summary.failed, summary.skipped);
  for (const auto& [reason, count] : summary.skip_reasons) {
    StrAppend(&html, "<br><span class=\"off\">skipped ", count, ": ", Escape(reason), "</span>");
  }
  Table speedups({"class", "against", "cases", "geo-mean", "min", "max", "min at", "goal"}, 2,
                 "min at");
  Table efficiencies({"class", "implementation", "cases", "geo-mean", "min", "max", "min at"}, 2,
                     "min at");
  for (const ClassSummary& c : summary.classes) {
    for (const auto& [impl, s] : c.speedup) {
      const SpeedupFigures* goal = impl == "library"  ? &c.figures.goal
                                   : impl == "expert" ? &c.figures.goal_expert
                                                      : nullptr;
      std::vector<Cell> cells = StatisticCells(c.figures.op_class, impl, s, goal);
      cells.emplace_back(goal ? absl::StrFormat("%.2f, min %.2f", goal->geomean, goal->min) : "");
      speedups.Row(cells);
    }
    for (const auto& [impl, s] : c.efficiency) {
      efficiencies.Row(StatisticCells(c.figures.op_class, impl, s));
    }
  }
  Table traffic({"traffic", "goal", "reach it", "do not", "which"}, 1, "which");
  for (const TrafficSummary& t : summary.traffic) {
    traffic.Row({absl::StrReplaceAll(ToAbsl(t.goal.name), {{"_mb", " MB"}, {"_", " "}}),
                 Cell(t.goal.efficiency, 2), Cell(t.reached, t.reached > 0 ? "good" : ""),
                 Cell(t.missed.size(), t.missed.empty() ? "" : "bad"),
                 absl::StrJoin(t.missed, ", ")});
  }
  Table lines({"class", "tensor program", "library", "expert"}, 1);
  for (const ClassSummary& c : summary.classes) {
    const auto count = [&](const char* kind, int paper) {
      const auto found = summary.lines.find({kind, c.figures.op_class});
      std::string text = found == summary.lines.end() ? "-" : StrCat(found->second);
      if (paper > 0) StrAppend(&text, " (", paper, ")");
      return text;
    };
    lines.Row({c.figures.op_class, count("tensor-program", c.figures.paper_tensor_program_lines),
               count("library", c.figures.paper_hand_written_lines), count("expert", 0)});
  }
  return StrCat(html, "</p>\n<h3>Speed-up of compiled programs</h3>\n", speedups.Html(),
                "<h3>Efficiency: bound / cycles</h3>\n", efficiencies.Html(),
                "<h3>Compiled elementwise cases, by the bytes that must cross GMEM</h3>\n",
                traffic.Html(),
                "<h3>Lines of code</h3>\n<p>Neither blank nor comment; in brackets the paper's "
                "Table III.</p>\n",
                lines.Html());
}

std::string RowsHtml(const SuiteResult& result) {
  Table table({"class", "op", "shape", "dtype", "implementation", "values", "cycles", "bound",
               "DRAM's bound", "efficiency", "instructions", "compile ms", "simulate ms"},
              6);
  for (const Row& row : result.rows) {
    const SuiteCase& c = row.suite_case;
    std::vector<Cell> cells = {c.op_class, c.op, c.shape, c.dtype, row.impl};
    if (row.ran()) {
      const bool agrees = row.state == Row::State::kAgrees;
      cells.insert(cells.end(),
                   {Cell(agrees ? "agree" : "DIFFER", agrees ? "good" : "bad"), row.cycles,
                    row.bound_cycles, row.dram_bound_cycles, Cell(row.efficiency(), 3),
                    row.instructions, Cell(row.compile_ms, 2), Cell(row.simulate_ms, 0)});
    } else {
      const bool skipped = row.state == Row::State::kSkipped;
      cells.emplace_back(StrCat(skipped ? "skipped: " : "failed: ", row.reason),
                         skipped ? "off" : "bad", 8);
    }
    table.Row(cells);
  }
  return StrCat("<h2>Rows</h2>\n", table.Html());
}

std::string MachineHtml(const SuiteResult& result) {
  Table table({"parameter", "value"}, 1);
  for (const auto& [name, value] : result.machine.parameters()) table.Row({name, value});
  return StrCat("<details><summary>Machine ", Escape(result.machine.name), "</summary>\n",
                table.Html(), "</details>\n");
}

}  // namespace

std::string PageHtml(const SuiteResult& result) {
  std::string html = StrCat("<p>", Escape(result.suite.doc), ".<br>");
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
    StrAppend(&html, "<h3>Speed-up over the library</h3>\n", CaseChart(result, rows, Speedup));
    StrAppend(&html, "<h3>Efficiency: bound / cycles</h3>\n", CaseChart(result, rows, Efficiency));
  }
  html += SummaryHtml(result);
  html += RowsHtml(result);
  html += MachineHtml(result);
  return pages::Page(StrCat(result.suite.name, " on ", result.machine.name), html);
}

}  // namespace polynao::benchmarks
