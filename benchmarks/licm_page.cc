#include "benchmarks/licm_page.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "benchmarks/bar_chart.h"
#include "benchmarks/html.h"

namespace polynao::benchmarks {
namespace {

constexpr const char* kColors[] = {"#2f6db3", "#e8b03a", "#4d9a63"};

// Bars of the counts that are left, by operator.
std::string CountsChart(const LicmSummary& summary, bool cuda) {
  BarChart chart;
  chart.line = 1.0;
  chart.series = {{.name = "integer operations", .color = kColors[0], .values = {}},
                  {.name = "branches", .color = kColors[1], .values = {}}};
  if (cuda) {
    chart.series.push_back(
        {.name = "executed instructions of PTX", .color = kColors[2], .values = {}});
  }
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

std::string Number(double value, std::string_view css = "") {
  return Cell(absl::StrFormat("%.3f", value), true, css);
}

std::string OperatorsHtml(const LicmSummary& summary) {
  std::string html = "<h2>Operators</h2>\n<table>\n";
  html += Heads({"operator", "cases", "effective", "average", "total time", "best", "worst",
                 "worst case", "integer operations", "branches"},
                1);
  for (const LicmOperator& op : summary.operators) {
    StrAppend(&html, "<tr>", Cell(op.op), Cell(StrCat(op.cases), true),
              Cell(StrCat(op.effective), true));
    if (op.effective > 0) {
      StrAppend(&html, Number(op.average, Css(op.average)), Number(op.total, Css(op.total)),
                Number(op.best, Css(op.best)), Number(op.worst, Css(op.worst)),
                Cell(StrCat(op.worst_id), true));
    } else {
      StrAppend(&html, "<td class=\"n off\" colspan=\"5\">no effective case</td>");
    }
    StrAppend(&html, Number(op.int_ops), Number(op.branches), "</tr>\n");
  }
  return html + "</table>\n";
}

std::string RowsHtml(const LicmResult& result) {
  std::string html = "<details><summary>All cases</summary>\n<table>\n";
  html += Heads({"case", "shape", "baseline us", "optimized us", "speed-up", "integer operations",
                 "branches", "passes ms", ""},
                2);
  for (const LicmRow& row : result.rows) {
    StrAppend(&html, "<tr>", Cell(row.Name()), Cell(row.shape));
    if (!row.error.empty()) {
      StrAppend(&html, "<td colspan=\"7\" class=\"bad\">", Escape(row.error), "</td></tr>\n");
      continue;
    }
    const auto us = [](double ns) { return Cell(absl::StrFormat("%.1f", ns / 1e3), true); };
    const auto counts = [](int64_t before, int64_t after) {
      return Cell(StrCat(before, " to ", after), true);
    };
    StrAppend(&html, us(row.baseline_ns), us(row.optimized_ns),
              Number(row.speedup, row.effective() ? Css(row.speedup) : "off"),
              counts(row.baseline_counts.int_ops(), row.optimized_counts.int_ops()),
              counts(row.baseline_counts.branches, row.optimized_counts.branches),
              Cell(absl::StrFormat("%.2f", row.passes_ms()), true),
              Cell(!row.values_agree ? "values differ"
                   : row.same_code   ? "same code"
                   : row.effective() ? ""
                                     : "short",
                   false, row.values_agree ? "off" : "bad"),
              "</tr>\n");
  }
  return html + "</table></details>\n";
}

}  // namespace

std::string SpeedupSvg(const SpeedupChart& chart) {
  constexpr double kWidth = 1000;
  constexpr double kTop = 30;
  constexpr double kHeight = 260;  // of the plot
  double low = 1 - 2 * kBand, high = 1 + 2 * kBand;
  size_t longest = 0;
  for (const SpeedupChart::Column& column : chart.columns) {
    longest = std::max(longest, column.name.size());
    for (double value : column.values) {
      low = std::min(low, value);
      high = std::max(high, std::min(value, chart.largest));
    }
  }
  std::vector<std::string> names;
  for (const SpeedupChart::Column& column : chart.columns) names.push_back(column.name);
  const double columns = static_cast<double>(std::max<size_t>(1, names.size()));
  const double plot_left = PlotLeft(names, (kWidth - 50) / columns);
  // Logarithmic: twice as fast is as far from the line as half as fast.
  const double margin = std::pow(high / low, 0.05);
  const double top = std::log(high * margin), bottom = std::log(low / margin);
  const auto y_of = [&](double value) {
    return kTop + kHeight * (top - std::log(std::min(value, chart.largest))) / (top - bottom);
  };
  const double labels = 18 + static_cast<double>(longest) * 4.2;
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" font-family=\"system-ui, "
      "sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
      kWidth, kTop + kHeight + labels);
  const auto line = [&](double value, std::string_view style, std::string_view label) {
    absl::StrAppendFormat(&svg,
                          "<path d=\"M%g %.1fH%g\" %s/><text x=\"%g\" y=\"%.1f\" "
                          "text-anchor=\"end\" fill=\"#4a5464\">%s</text>\n",
                          plot_left, y_of(value), kWidth - 10, ToAbsl(style), plot_left - 5,
                          y_of(value) + 4, ToAbsl(label));
  };
  // Coarse grid lines first, finer ones where there is room for their numbers.
  std::vector<double> lines = {1};
  for (double value : {0.5, 2.0, 0.25, 5.0, 10.0, 0.8,  1.5,  0.7,  3.0,  0.9,
                       1.2, 2.5, 1.1,  1.3, 0.95, 1.05, 0.98, 1.02, 0.99, 1.01}) {
    if (value <= std::exp(bottom) || value >= std::exp(top)) continue;
    if (std::any_of(lines.begin(), lines.end(),
                    [&](double other) { return std::abs(y_of(other) - y_of(value)) < 14; })) {
      continue;
    }
    lines.push_back(value);
    line(value, "stroke=\"#e3e7ec\"", absl::StrFormat("%g", value));
  }
  line(1, "stroke=\"#1d2430\"", "1");
  line(1 + kBand, "stroke=\"#1f7a3d\" stroke-dasharray=\"4 3\"", "");
  line(1 - kBand, "stroke=\"#c46a1a\" stroke-dasharray=\"4 3\"", "");

  const double column_width = (kWidth - plot_left - 10) / columns;
  for (size_t c = 0; c < chart.columns.size(); ++c) {
    const SpeedupChart::Column& column = chart.columns[c];
    const double left = plot_left + column_width * static_cast<double>(c);
    const double count = static_cast<double>(std::max<size_t>(1, column.values.size()));
    for (size_t i = 0; i < column.values.size(); ++i) {
      const double value = column.values[i];
      const double slot = column_width * 0.8 / count;
      const double x = left + column_width * 0.1 + slot * (static_cast<double>(i) + 0.5);
      const double y = y_of(value);
      const std::string title =
          absl::StrFormat("<title>%s: %.3f</title>", Escape(column.name), value);
      if (chart.bars) {
        const double width = slot * 0.9;
        absl::StrAppendFormat(
            &svg,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\">%s</rect>\n",
            x - width / 2, std::min(y, y_of(1)), width, std::max(0.5, std::abs(y - y_of(1))),
            kColors[i % std::size(kColors)], title);
      } else {
        absl::StrAppendFormat(&svg,
                              "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.2\" fill=\"%s\" "
                              "fill-opacity=\"0.75\">%s</circle>\n",
                              x, y, kColors[0], title);
      }
      if (value > chart.largest) {
        absl::StrAppendFormat(&svg,
                              "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" "
                              "font-size=\"9\" fill=\"#1d2430\">%.1f</text>\n",
                              x, y - 5, value);
      }
    }
    absl::StrAppendFormat(&svg,
                          "<text transform=\"translate(%.1f %g) rotate(-40)\" text-anchor=\"end\" "
                          "fill=\"#1d2430\">%s</text>\n",
                          left + column_width / 2 + 4, kTop + kHeight + 14, Escape(column.name));
  }
  double x = plot_left;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    absl::StrAppendFormat(&svg,
                          "<rect x=\"%.1f\" y=\"6\" width=\"11\" height=\"11\" fill=\"%s\"/><text "
                          "x=\"%.1f\" y=\"16\" fill=\"#1d2430\">%s</text>\n",
                          x, kColors[i % std::size(kColors)], x + 16, Escape(chart.series[i]));
    x += 36 + 6.4 * static_cast<double>(chart.series[i].size());
  }
  return svg + "</svg>\n";
}

namespace {

std::string PageStart(const LicmResult& result) {
  std::string html =
      StrCat(PageHead("licm511: loop invariant code motion, normalization, hoisting and CSE"),
             "<p>", Escape(result.machine), "; ", Escape(result.date),
             result.commit.empty() ? "" : StrCat("; commit ", Escape(result.commit)));
  if (!result.filter.empty()) StrAppend(&html, "; only cases with ", Escape(result.filter));
  return html + ".";
}

// The summary and all rows as they are printed, and the counts as bars.
std::string CudaPageHtml(const LicmResult& result) {
  return StrCat(PageStart(result), "</p>\n<pre>", Escape(SummaryText(result)),
                "</pre>\n<h2>What is left of operations and instructions</h2>\n<p>After / before. "
                "Operations are those of the loop IR, per output element; instructions of PTX, "
                "those that threads execute.</p>\n",
                CountsChart(result.summary, /*cuda=*/true),
                "<details><summary>All cases</summary>\n<pre>", Escape(RowsText(result)),
                "</pre></details></body></html>\n");
}

}  // namespace

std::string PageHtml(const LicmResult& result) {
  if (result.target == "cuda") return CudaPageHtml(result);
  const LicmSummary& s = result.summary;
  SpeedupChart cases, operators;
  operators.bars = true;
  operators.series = {"average of the cases", "total time"};
  for (const LicmOperator& op : s.operators) {
    if (op.effective == 0) continue;
    SpeedupChart::Column& column = cases.columns.emplace_back();
    column.name = op.op;
    for (const LicmRow& row : result.rows) {
      if (row.op == op.op && row.effective()) column.values.push_back(row.speedup);
    }
    operators.columns.push_back({.name = op.op, .values = {op.average, op.total}});
  }
  std::string html = PageStart(result);
  const std::string summary = SummaryText(result);
  StrAppend(
      &html,
      "<br>Each case of the TOPI table is compiled without and with the four passes, and both "
      "programs are run in turn. Effective: the machine code differs, and the program without "
      "them takes 50 us or more.</p>\n<p>",
      absl::StrReplaceAll(Escape(summary.substr(summary.find("\n\n"))), {{"\n", "<br>"}}),
      "</p>\n<h2>Effective cases</h2>\n<p>Time without / time with the passes, a dot for each "
      "case; dashed: 1.01 and 0.99.</p>\n",
      SpeedupSvg(cases), "<h2>Effective operators</h2>\n", SpeedupSvg(operators),
      "<h2>What is left of integer operations and branches</h2>\n<p>Counts of all cases, after / "
      "before, per output element.</p>\n",
      CountsChart(s, /*cuda=*/false), OperatorsHtml(s), RowsHtml(result));
  return html + "</body></html>\n";
}

}  // namespace polynao::benchmarks
