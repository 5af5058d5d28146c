#include "sweep/page.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "pages/charts.h"
#include "pages/page.h"
#include "sweep/analysis.h"

namespace polynao::sweep {
namespace {

using pages::Cell;
using pages::Escape;
using pages::ShortNumber;

class Writer {
 public:
  explicit Writer(const Table& table)
      : table_(table), points_(table.points()), sums_(SumPoints(table)) {}

  std::string Text() {
    Points();
    Instructions();
    Best();
    SensitivityTables();
    Fronts();
    AxisCurves();
    Infeasible();
    out_ += pages::DataElement(TableJson(table_));
    return pages::Page(StrCat("Sweep of ", points_.size(), " machines like ", table_.config), out_);
  }

 private:
  // "core.nmem_kib=256 gmem.channels=4 instructions=with"
  std::string PointText(int64_t point) const {
    std::string text;
    for (size_t i = 0; i < table_.axes.size(); ++i) {
      StrAppend(&text, i == 0 ? "" : " ", table_.axes[i].name, "=", PointOf(point)[i]);
    }
    return text;
  }

  const Point& PointOf(int64_t point) const { return points_[static_cast<size_t>(point)]; }

  const MetricValues& MetricsOf(int64_t point) const {
    return sums_[static_cast<size_t>(point)].metrics;
  }

  bool Has(std::string_view metric) const {
    return std::any_of(sums_.begin(), sums_.end(),
                       [&](const PointSum& sum) { return sum.metrics.contains(metric); });
  }

  void Points() {
    const size_t feasible = static_cast<size_t>(std::count_if(
        sums_.begin(), sums_.end(), [](const PointSum& sum) { return sum.error.empty(); }));
    const size_t programs = table_.programs.size();
    StrAppend(&out_, "<p>", programs, programs == 1 ? " program" : " programs",
              " at each point: ", Escape(absl::StrJoin(table_.programs, ", ")), ". ", feasible,
              feasible == 1 ? " point is feasible" : " points are feasible");
    const size_t infeasible = points_.size() - feasible;
    if (infeasible > 0)
      StrAppend(&out_, ", ", infeasible, infeasible == 1 ? " is not" : " are not");
    out_ +=
        ". Each point's schedule is chosen for that machine. Cycles and energy are sums over the "
        "programs.</p>\n";
    pages::Table table({"axis", "values"});
    for (const Axis& axis : table_.axes) table.Row({axis.name, absl::StrJoin(axis.values, ", ")});
    if (!table_.base.empty()) table.Row({"all points", absl::StrJoin(table_.base, ", ")});
    if (!table_.energy.empty()) table.Row({"energy table", table_.energy});
    out_ += table.Html();
  }

  // The instruction tables, program by program.
  void Instructions() {
    if (table_.axes.empty() || table_.axes.back().name != kInstructionsAxis) return;
    const std::vector<std::string>& tables = table_.axes.back().values;
    if (tables.size() < 2) return;
    StrAppend(&out_, "<h2>Instruction tables</h2>\n<p>Relative to ", Escape(tables[0]),
              ": geometric means over all combinations of the other axes, and over the programs. A "
              "row of the table takes no area of its own: area is that of the machine.</p>\n");
    std::vector<std::vector<ProgramRatios>> by_metric;
    std::vector<std::string> heads = {"program"};
    for (const char* metric : {"cycles", "energy_pj", "area_mm2"}) {
      if (!Has(metric)) continue;
      by_metric.push_back(RatiosAlong(table_, kInstructionsAxis, metric));
      for (size_t v = 1; v < tables.size(); ++v) {
        std::string title = MetricTitle(*FindMetric(metric));
        heads.push_back(StrCat(title.substr(0, title.find(',')), ", ", tables[v]));
      }
    }
    pages::Table table(heads, 1);
    const auto row = [&](const std::string& name, const auto& ratios_of) {
      std::vector<Cell> cells = {name};
      for (const std::vector<ProgramRatios>& ratios : by_metric) {
        const std::vector<std::optional<double>> relative = ratios_of(ratios);
        for (size_t v = 1; v < tables.size(); ++v) {
          if (!relative[v]) {
            cells.emplace_back("-");
          } else {
            cells.emplace_back(*relative[v], 3,
                               *relative[v] < 0.9995   ? "good"
                               : *relative[v] > 1.0005 ? "bad"
                                                       : "");
          }
        }
      }
      table.Row(cells);
    };
    if (!by_metric.empty()) row("geometric mean", MeansOf);
    for (size_t i = 0; i < table_.programs.size() && !by_metric.empty(); ++i) {
      row(table_.programs[i],
          [&](const std::vector<ProgramRatios>& ratios) { return ratios[i].relative; });
    }
    out_ += table.Html();
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
    pages::Table table(heads, 1);
    for (const auto& [name, metrics] : kinds) {
      const std::optional<int64_t> best = BestPoint(sums_, metrics);
      if (!best) continue;
      std::vector<Cell> cells = {name};
      for (const std::string& value : PointOf(*best)) cells.emplace_back(value);
      for (const Metric& metric : Metrics()) {
        if (!Has(metric.name)) continue;
        const auto value = MetricsOf(*best).find(metric.name);
        cells.emplace_back(value == MetricsOf(*best).end() ? "-" : ShortNumber(value->second));
      }
      table.Row(cells);
    }
    StrAppend(&out_, "<h2>Best points</h2>\n", table.Html());
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
      pages::Table table({"axis", StrCat("effect on ", title), "by value"}, 1, "by value");
      for (const Sensitivity& sensitivity : Sensitivities(table_, sums_, metric)) {
        std::string values;
        const auto axis = std::find_if(table_.axes.begin(), table_.axes.end(),
                                       [&](const Axis& a) { return a.name == sensitivity.axis; });
        for (size_t v = 0; v < axis->values.size(); ++v) {
          const auto& relative = sensitivity.relative[v];
          StrAppend(&values, v == 0 ? "" : ", ", axis->values[v], ": ",
                    relative ? absl::StrFormat("%.3f", *relative) : "-");
        }
        table.Row({sensitivity.axis, Cell(sensitivity.effect, 3), values});
      }
      out_ += table.Html();
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
    pages::Scatter scatter{MetricTitle(*FindMetric(x)), MetricTitle(*FindMetric(y)), {}};
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
    std::vector<std::string> heads;
    for (const Axis& axis : table_.axes) heads.push_back(axis.name);
    heads.insert(heads.end(), {scatter.x_title, scatter.y_title});
    pages::Table table(heads, 0);
    for (const int64_t point : front) {
      std::vector<Cell> cells(PointOf(point).begin(), PointOf(point).end());
      for (const char* metric : {x, y}) {
        cells.emplace_back(ShortNumber(MetricsOf(point).find(metric)->second));
      }
      table.Row(cells);
    }
    StrAppend(&out_, "<figure>", pages::ScatterSvg(scatter), "<details><summary>", front.size(),
              " points of the front</summary>\n", table.Html(), "</details></figure>\n");
  }

  void AxisCurves() {
    if (!Has("cycles")) return;
    out_ += "<h2>Each axis</h2>\n<div class=\"charts\">\n";
    size_t stride = points_.size();
    for (size_t a = 0; a < table_.axes.size(); ++a) {
      const Axis& axis = table_.axes[a];
      const size_t count = axis.values.size();
      stride /= count;
      pages::LineChart chart{.x_title = axis.name,
                             .y_title = "cycles, relative to the first value",
                             .places = axis.values,
                             .band = "least to most of the sum",
                             .low = std::vector<std::optional<double>>(count),
                             .high = std::vector<std::optional<double>>(count)};
      chart.series.push_back(
          {"sum", RelativeOf(Sensitivities(table_, sums_, "cycles"), axis), /*is_thick=*/true});
      if (table_.programs.size() > 1 && table_.programs.size() <= 8) {
        for (const std::string& program : table_.programs) {
          Table one = table_;
          one.programs = {program};
          std::erase_if(one.rows, [&](const Row& row) { return row.program != program; });
          chart.series.push_back(
              {program, RelativeOf(Sensitivities(one, SumPoints(one), "cycles"), axis)});
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
        if (!chart.low[v] || relative < *chart.low[v]) chart.low[v] = relative;
        if (!chart.high[v] || relative > *chart.high[v]) chart.high[v] = relative;
      }
      StrAppend(&out_, "<figure>", pages::LineChartSvg(chart), "</figure>\n");
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
    pages::Table table({"why", "points", "the first"}, 1, "the first");
    size_t shown = 0;
    for (const auto& [reason, points] : reasons) {
      if (++shown > kShown) break;
      table.Row({reason, points.size(), PointText(points[0])});
    }
    StrAppend(&out_, "<h2>Infeasible points</h2>\n", table.Html());
    if (reasons.size() > kShown) {
      StrAppend(&out_, "<p>and ", reasons.size() - kShown,
                " more reasons, in the table's file.</p>\n");
    }
  }

  const Table& table_;
  const std::vector<Point> points_;
  const std::vector<PointSum> sums_;
  std::string out_;
};

}  // namespace

std::string SweepPage(const Table& table) { return Writer(table).Text(); }

}  // namespace polynao::sweep
