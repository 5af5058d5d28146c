#include "benchmarks/licm_page.h"

#include <string_view>
#include <vector>

#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "compiler/target/target.h"
#include "pages/charts.h"
#include "pages/page.h"

namespace polynao::benchmarks {
namespace {

using pages::BarChart;
using pages::BarChartSvg;
using pages::Cell;
using pages::Escape;
using pages::Table;

// Bars of the counts that are left, by operator.
std::string CountsChart(const LicmSummary& summary, bool cuda) {
  BarChart chart{.line = 1.0};
  chart.series = {{.name = "integer operations"}, {.name = "branches"}};
  if (cuda) chart.series.push_back({.name = "executed instructions of PTX"});
  for (const LicmOperator& op : summary.operators) {
    chart.groups.push_back(op.op);
    chart.series[0].values.push_back(op.int_ops);
    chart.series[1].values.push_back(op.branches);
    if (cuda) chart.series[2].values.push_back(op.executed);
  }
  return BarChartSvg(chart);
}

std::string_view Css(double speedup) {
  switch (VerdictOf(speedup)) {
    case Verdict::kImproved:
      return "good";
    case Verdict::kUnchanged:
      return "";
    case Verdict::kWorse:
      return "bad";
  }
  return "";
}

Cell Speedup(double value) { return Cell(value, 3, Css(value)); }

std::string OperatorsHtml(const LicmSummary& summary) {
  Table table({"operator", "cases", "effective", "average", "total time", "best", "worst",
               "worst case", "integer operations", "branches"},
              1);
  for (const LicmOperator& op : summary.operators) {
    std::vector<Cell> cells = {op.op, op.cases, op.effective};
    if (op.effective > 0) {
      cells.insert(cells.end(), {Speedup(op.average), Speedup(op.total), Speedup(op.best),
                                 Speedup(op.worst), op.worst_id});
    } else {
      cells.emplace_back("no effective case", "off", 5);
    }
    cells.insert(cells.end(), {Cell(op.int_ops, 3), Cell(op.branches, 3)});
    table.Row(cells);
  }
  return StrCat("<h2>Operators</h2>\n", table.Html());
}

std::string RowsHtml(const LicmResult& result) {
  Table table({"case", "shape", "baseline us", "optimized us", "speed-up", "integer operations",
               "branches", "passes ms", ""},
              2);
  for (const LicmRow& row : result.rows) {
    if (!row.error.empty()) {
      table.Row({row.Name(), row.shape, Cell(row.error, "bad", 7)});
      continue;
    }
    const auto counts = [](int64_t before, int64_t after) { return StrCat(before, " to ", after); };
    table.Row({row.Name(), row.shape, Cell(row.baseline_ns / 1e3, 1),
               Cell(row.optimized_ns / 1e3, 1),
               Cell(row.speedup, 3, row.effective() ? Css(row.speedup) : "off"),
               counts(row.baseline_counts.int_ops(), row.optimized_counts.int_ops()),
               counts(row.baseline_counts.branches, row.optimized_counts.branches),
               Cell(row.passes_ms(), 2),
               Cell(!row.values_agree ? "values differ"
                    : row.same_code   ? "same code"
                    : row.effective() ? ""
                                      : "short",
                    row.values_agree ? "off" : "bad")});
  }
  return StrCat("<details><summary>All cases</summary>\n", table.Html(), "</details>\n");
}

// A page with `body` after what was measured where.
std::string LicmPage(const LicmResult& result, std::string_view body) {
  std::string facts = StrCat(result.machine, "; ", result.date);
  if (!result.commit.empty()) StrAppend(&facts, "; commit ", result.commit);
  if (!result.filter.empty()) StrAppend(&facts, "; only cases with ", result.filter);
  return pages::Page("licm511: loop invariant code motion, normalization, hoisting and CSE",
                     StrCat("<p>", Escape(facts), ".</p>\n", body));
}

// The summary and all rows as they are printed, and the counts as bars.
std::string CudaPageHtml(const LicmResult& result) {
  return LicmPage(result,
                  StrCat("<pre>", Escape(SummaryText(result)),
                         "</pre>\n<h2>What is left of operations and instructions</h2>\n<p>After / "
                         "before. Operations are those of the loop IR, per output element; "
                         "instructions of PTX, those that threads execute.</p>\n",
                         CountsChart(result.summary, /*cuda=*/true),
                         "<details><summary>All cases</summary>\n<pre>", Escape(RowsText(result)),
                         "</pre></details>\n"));
}

}  // namespace

std::string PageHtml(const LicmResult& result) {
  if (IsGpu(result.target)) return CudaPageHtml(result);
  const LicmSummary& s = result.summary;
  BarChart cases{.line = 1.0, .is_logarithmic = true, .band = kBand, .largest = 3};
  BarChart operators = cases;
  operators.series = {{.name = "average of the cases"}, {.name = "total time"}};
  for (const LicmOperator& op : s.operators) {
    if (op.effective == 0) continue;
    cases.groups.push_back(op.op);
    std::vector<double>& dots = cases.dots.emplace_back();
    for (const LicmRow& row : result.rows) {
      if (row.op == op.op && row.effective()) dots.push_back(row.speedup);
    }
    operators.groups.push_back(op.op);
    operators.series[0].values.emplace_back(op.average);
    operators.series[1].values.emplace_back(op.total);
  }
  const std::string summary = SummaryText(result);
  return LicmPage(
      result,
      StrCat(
          "<p>Each case of the TOPI table is compiled without and with the four passes, and "
          "both programs are run in turn. Effective: the machine code differs, and the program "
          "without them takes 50 us or more.</p>\n<p>",
          absl::StrReplaceAll(Escape(summary.substr(summary.find("\n\n") + 2)), {{"\n", "<br>"}}),
          "</p>\n<h2>Effective cases</h2>\n<p>Time without / time with the passes, a dot for "
          "each case; dashed: 1.01 and 0.99.</p>\n",
          BarChartSvg(cases), "<h2>Effective operators</h2>\n", BarChartSvg(operators),
          "<h2>What is left of integer operations and branches</h2>\n<p>Counts of all cases, "
          "after / before, per output element.</p>\n",
          CountsChart(s, /*cuda=*/false), OperatorsHtml(s), RowsHtml(result)));
}

}  // namespace polynao::benchmarks
