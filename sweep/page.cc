#include "sweep/page.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "sweep/analysis.h"
#include "sweep/svg.h"

namespace polynao::sweep {
namespace {

constexpr std::string_view kHead = R"html(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Sweep</title><style>
:root { --ink: #1b1f24; --paper: #ffffff; --pale: #d8dde3; --mark: #d62728; --dot: #8aa0b8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --paper: #16191d; --pale: #3a4048; --mark: #ff6b6b; --dot: #61758c; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1320px; margin: 24px auto; padding: 0 20px; }
h1 { font-size: 24px; } h2 { font-size: 18px; margin-top: 32px; }
table { border-collapse: collapse; } .wide { overflow-x: auto; } td:first-child { white-space: nowrap; } td, th { padding: 3px 12px 3px 0; text-align: left; border-bottom: 1px solid var(--pale); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(520px, 1fr)); gap: 24px; }
figure { margin: 0; } svg { width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 13px; }
.grid { stroke: var(--pale); stroke-width: 1; } .dot { fill: var(--dot); } .front { fill: var(--mark); }
.frontline { fill: none; stroke: var(--mark); stroke-width: 1.5; } .band { fill: #1f77b4; fill-opacity: 0.15; }
.legend span { margin-right: 14px; white-space: nowrap; } .legend i { display: inline-block; width: 14px; height: 4px;
  margin-right: 5px; vertical-align: middle; } .legend .bandkey { height: 12px; background: #1f77b4; opacity: 0.25; }
</style></head><body>
)html";

std::string Cell(std::string_view text, bool is_number = false) {
  return StrCat(is_number ? "<td class=\"n\">" : "<td>", Escape(text), "</td>");
}

std::string Heads(const std::vector<std::string>& names, size_t first_number) {
  std::string text = "<tr>";
  for (size_t i = 0; i < names.size(); ++i) {
    StrAppend(&text, i >= first_number ? "<th class=\"n\">" : "<th>", Escape(names[i]), "</th>");
  }
  return text + "</tr>\n";
}

class Page {
 public:
  explicit Page(const Table& table)
      : table_(table), points_(table.points()), sums_(SumPoints(table)) {}

  std::string Text() {
    out_ = kHead;
    Title();
    Best();
    SensitivityTables();
    Fronts();
    AxisCurves();
    Infeasible();
    Data();
    return out_ + "</body></html>\n";
  }

 private:
  // "core.nmem_kib=256 gmem.channels=4"
  std::string PointText(int64_t point) const {
    return absl::StrJoin(Overrides(table_.axes, points_[static_cast<size_t>(point)]), " ");
  }

  const MetricValues& MetricsOf(int64_t point) const {
    return sums_[static_cast<size_t>(point)].metrics;
  }

  bool Has(std::string_view metric) const {
    return std::any_of(sums_.begin(), sums_.end(),
                       [&](const PointSum& sum) { return sum.metrics.contains(metric); });
  }

  void Title() {
    const size_t feasible = static_cast<size_t>(std::count_if(
        sums_.begin(), sums_.end(), [](const PointSum& sum) { return sum.error.empty(); }));
    StrAppend(&out_, "<h1>Sweep of ", points_.size(), " machines like ", Escape(table_.config),
              "</h1>\n<p>", table_.programs.size(),
              " programs at each point: ", Escape(absl::StrJoin(table_.programs, ", ")), ". ",
              feasible, feasible == 1 ? " point is feasible" : " points are feasible");
    const size_t infeasible = points_.size() - feasible;
    if (infeasible > 0)
      StrAppend(&out_, ", ", infeasible, infeasible == 1 ? " is not" : " are not");
    StrAppend(&out_,
              ". Each point's schedule is chosen for that machine. Cycles and energy are sums "
              "over the programs.</p>\n<table>\n",
              Heads({"axis", "values"}, 9));
    for (const Axis& axis : table_.axes) {
      StrAppend(&out_, "<tr>", Cell(axis.name), Cell(absl::StrJoin(axis.values, ", ")), "</tr>\n");
    }
    if (!table_.base.empty()) {
      StrAppend(&out_, "<tr>", Cell("all points"), Cell(absl::StrJoin(table_.base, ", ")),
                "</tr>\n");
    }
    if (!table_.energy.empty()) {
      StrAppend(&out_, "<tr>", Cell("energy table"), Cell(table_.energy), "</tr>\n");
    }
    out_ += "</table>\n";
  }

  void Best() {
    const std::pair<const char*, std::vector<std::string>> kinds[] = {
        {"fewest cycles", {"cycles"}},
        {"least energy", {"energy_pj"}},
        {"least energy times cycles", {"energy_pj", "cycles"}},
        {"fewest cycles times area", {"cycles", "area_mm2"}}};
    std::vector<std::string> heads = {"best by"};
    for (const Axis& axis : table_.axes) heads.push_back(axis.name);
    for (const Metric& metric : Metrics()) {
      if (Has(metric.name)) heads.push_back(MetricTitle(metric));
    }
    StrAppend(&out_, "<h2>Best points</h2>\n<div class=\"wide\"><table>\n", Heads(heads, 1));
    for (const auto& [name, metrics] : kinds) {
      const std::optional<int64_t> best = BestPoint(sums_, metrics);
      if (!best) continue;
      StrAppend(&out_, "<tr>", Cell(name));
      for (const std::string& value : points_[static_cast<size_t>(*best)]) {
        StrAppend(&out_, Cell(value, true));
      }
      for (const Metric& metric : Metrics()) {
        if (!Has(metric.name)) continue;
        const auto value = MetricsOf(*best).find(metric.name);
        StrAppend(&out_,
                  Cell(value == MetricsOf(*best).end() ? "-" : ShortNumber(value->second), true));
      }
      out_ += "</tr>\n";
    }
    out_ += "</table></div>\n";
  }

  static std::string MetricTitle(const Metric& metric) {
    const bool has_unit = metric.unit[0] != '\0' && std::string_view(metric.unit) != "cycles";
    std::string name = metric.name;
    for (const char* unit : {"_pj_s", "_pj", "_mm2", "_mw", "_ns"}) {
      if (name.ends_with(unit)) name.resize(name.size() - std::string_view(unit).size());
    }
    std::replace(name.begin(), name.end(), '_', ' ');
    return has_unit ? StrCat(name, ", ", metric.unit) : name;
  }

  void SensitivityTables() {
    out_ +=
        "<h2>Sensitivities</h2>\n<p>Geometric means over all combinations of the other axes, "
        "relative to the axis's first value; "
        "the effect is the largest of them over the smallest.</p>\n<div class=\"charts\">\n";
    for (const auto& [metric, title] : {std::pair("cycles", "cycles"), {"energy_pj", "energy"}}) {
      if (!Has(metric)) continue;
      StrAppend(&out_, "<table>\n",
                Heads({"axis", "effect on " + std::string(title), "by value"}, 9));
      for (const Sensitivity& sensitivity : Sensitivities(table_, sums_, metric)) {
        std::string values;
        const auto axis = std::find_if(table_.axes.begin(), table_.axes.end(),
                                       [&](const Axis& a) { return a.name == sensitivity.axis; });
        for (size_t v = 0; v < axis->values.size(); ++v) {
          const auto& relative = sensitivity.relative[v];
          StrAppend(&values, v == 0 ? "" : ", ", axis->values[v], ": ",
                    relative ? absl::StrFormat("%.3f", *relative) : "-");
        }
        StrAppend(&out_, "<tr>", Cell(sensitivity.axis),
                  Cell(absl::StrFormat("%.3f", sensitivity.effect)), Cell(values), "</tr>\n");
      }
      out_ += "</table>\n";
    }
    out_ += "</div>\n";
  }

  void Fronts() {
    struct Pair {
      const char* x;
      const char* y;
    };
    bool has_any = false;
    for (const Pair& pair :
         {Pair{"cycles", "energy_pj"}, {"area_mm2", "cycles"}, {"area_mm2", "energy_pj"}}) {
      if (!Has(pair.x) || !Has(pair.y)) continue;
      if (!has_any) {
        out_ +=
            "<h2>Pareto fronts</h2>\n<p>Red: points that no other point beats in both. Hovering "
            "shows a point's "
            "parameters.</p>\n<div class=\"charts\">\n";
      }
      has_any = true;
      Front(pair.x, pair.y);
    }
    if (has_any) out_ += "</div>\n";
  }

  void Front(const char* x, const char* y) {
    const std::vector<int64_t> front = ParetoFront(sums_, x, y);
    Scatter scatter{MetricTitle(*FindMetric(x)), MetricTitle(*FindMetric(y)), {}};
    const auto add = [&](int64_t point, bool is_front) {
      const double vx = MetricsOf(point).find(x)->second, vy = MetricsOf(point).find(y)->second;
      scatter.dots.push_back(
          {vx, vy,
           StrCat(PointText(point), "\n", x, " ", ShortNumber(vx), ", ", y, " ", ShortNumber(vy)),
           is_front});
    };
    for (const PointSum& sum : sums_) {
      const bool is_front = std::find(front.begin(), front.end(), sum.point) != front.end();
      if (!is_front && sum.metrics.contains(x) && sum.metrics.contains(y)) add(sum.point, false);
    }
    for (const int64_t point : front) add(point, true);
    StrAppend(&out_, "<figure>", ScatterSvg(scatter), "<details><summary>", front.size(),
              " points of the front</summary><table>\n");
    std::vector<std::string> heads;
    for (const Axis& axis : table_.axes) heads.push_back(axis.name);
    heads.push_back(scatter.x_title);
    heads.push_back(scatter.y_title);
    out_ += Heads(heads, 0);
    for (const int64_t point : front) {
      out_ += "<tr>";
      for (const std::string& value : points_[static_cast<size_t>(point)]) {
        out_ += Cell(value, true);
      }
      for (const char* metric : {x, y}) {
        out_ += Cell(ShortNumber(MetricsOf(point).find(metric)->second), true);
      }
      out_ += "</tr>\n";
    }
    out_ += "</table></details></figure>\n";
  }

  void AxisCurves() {
    if (!Has("cycles")) return;
    out_ += "<h2>Each axis</h2>\n<div class=\"charts\">\n";
    size_t stride = points_.size();
    for (size_t a = 0; a < table_.axes.size(); ++a) {
      const Axis& axis = table_.axes[a];
      const size_t count = axis.values.size();
      stride /= count;
      Curves curves{axis.name,
                    axis.values,
                    {},
                    std::vector<std::optional<double>>(count),
                    std::vector<std::optional<double>>(count)};
      curves.lines.push_back(
          {"sum", true, RelativeOf(Sensitivities(table_, sums_, "cycles"), axis)});
      if (table_.programs.size() > 1 && table_.programs.size() <= 8) {
        for (const std::string& program : table_.programs) {
          Table one = table_;
          one.programs = {program};
          std::erase_if(one.rows, [&](const Row& row) { return row.program != program; });
          curves.lines.push_back(
              {program, false, RelativeOf(Sensitivities(one, SumPoints(one), "cycles"), axis)});
        }
      }
      for (size_t p = 0; p < sums_.size(); ++p) {
        const size_t v = p / stride % count;
        const auto here = sums_[p].metrics.find("cycles");
        const auto first = sums_[p - v * stride].metrics.find("cycles");
        if (here == sums_[p].metrics.end() || first == sums_[p - v * stride].metrics.end())
          continue;
        if (first->second <= 0) continue;
        const double relative = here->second / first->second;
        if (!curves.low[v] || relative < *curves.low[v]) curves.low[v] = relative;
        if (!curves.high[v] || relative > *curves.high[v]) curves.high[v] = relative;
      }
      StrAppend(&out_, "<figure>", CurvesSvg(curves), "</figure>\n");
    }
    out_ += "</div>\n";
  }

  static std::vector<std::optional<double>> RelativeOf(const std::vector<Sensitivity>& all,
                                                       const Axis& axis) {
    for (const Sensitivity& sensitivity : all) {
      if (sensitivity.axis == axis.name) return sensitivity.relative;
    }
    return std::vector<std::optional<double>>(axis.values.size());
  }

  void Infeasible() {
    std::map<std::string, std::vector<int64_t>> reasons;
    for (const PointSum& sum : sums_) {
      if (!sum.error.empty()) reasons[sum.error].push_back(sum.point);
    }
    if (reasons.empty()) return;
    constexpr size_t kShown = 20;
    StrAppend(&out_, "<h2>Infeasible points</h2>\n<table>\n",
              Heads({"why", "points", "the first"}, 9));
    size_t shown = 0;
    for (const auto& [reason, points] : reasons) {
      if (++shown > kShown) break;
      StrAppend(&out_, "<tr>", Cell(reason), Cell(StrCat(points.size())),
                Cell(PointText(points[0])), "</tr>\n");
    }
    out_ += "</table>\n";
    if (reasons.size() > kShown) {
      StrAppend(&out_, "<p>and ", reasons.size() - kShown,
                " more reasons, in the table's file.</p>\n");
    }
  }

  void Data() {
    std::string json = TableJson(table_);
    // No text in it can end the element.
    for (size_t at = json.find('<'); at != std::string::npos; at = json.find('<', at)) {
      json.replace(at, 1, "\\u003c");
    }
    StrAppend(&out_, "<script type=\"application/json\" id=\"data\">\n", json, "</script>\n");
  }

  const Table& table_;
  const std::vector<Point> points_;
  const std::vector<PointSum> sums_;
  std::string out_;
};

}  // namespace

std::string SweepPage(const Table& table) { return Page(table).Text(); }

}  // namespace polynao::sweep
