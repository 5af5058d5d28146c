#include "sweep/analysis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "absl/strings/str_format.h"
#include "base/text.h"

namespace polynao::sweep {
namespace {

std::optional<double> ValueOf(const MetricValues& metrics, std::string_view name) {
  const auto found = metrics.find(name);
  if (found == metrics.end()) return std::nullopt;
  return found->second;
}

}  // namespace

std::vector<PointSum> SumPoints(const Table& table) {
  std::vector<PointSum> sums(table.points().size());
  for (size_t p = 0; p < sums.size(); ++p) sums[p].point = static_cast<int64_t>(p);
  for (const Row& row : table.rows) {
    PointSum& sum = sums[static_cast<size_t>(row.point)];
    if (!row.error.empty() && sum.error.empty()) sum.error = row.program + ": " + row.error;
    for (const auto& [name, value] : row.metrics) {
      const Metric* metric = FindMetric(name);
      if (metric != nullptr && metric->of_machine) {
        sum.metrics[name] = value;
      } else {
        sum.metrics[name] += value;
      }
    }
  }
  for (PointSum& sum : sums) {
    if (!sum.error.empty()) sum.metrics.clear();
  }
  return sums;
}

std::vector<int64_t> ParetoFront(const std::vector<PointSum>& sums, std::string_view a,
                                 std::string_view b) {
  struct Item {
    double a, b;
    int64_t point;
    auto operator<=>(const Item&) const = default;
  };
  std::vector<Item> items;
  for (const PointSum& sum : sums) {
    const auto x = ValueOf(sum.metrics, a), y = ValueOf(sum.metrics, b);
    if (x && y) items.push_back({*x, *y, sum.point});
  }
  std::sort(items.begin(), items.end(), [](const Item& x, const Item& y) { return x < y; });
  std::vector<int64_t> front;
  double least = std::numeric_limits<double>::infinity();  // b of all before
  const Item* last = nullptr;                              // of the front
  for (const Item& item : items) {
    const bool is_equal = last != nullptr && last->a == item.a && last->b == item.b;
    if (item.b >= least && !is_equal) continue;
    least = item.b;
    last = &item;
    front.push_back(item.point);
  }
  return front;
}

std::vector<Sensitivity> Sensitivities(const Table& table, const std::vector<PointSum>& sums,
                                       std::string_view metric) {
  std::vector<Sensitivity> result;
  size_t stride = sums.size();
  for (const Axis& axis : table.axes) {
    const size_t count = axis.values.size();
    stride /= count;  // between neighbouring values of this axis
    Sensitivity sensitivity{axis.name, std::vector<std::optional<double>>(count)};
    for (size_t v = 0; v < count; ++v) {
      double logs = 0;
      int64_t pairs = 0;
      for (size_t p = 0; p < sums.size(); ++p) {
        if (p / stride % count != v) continue;
        const auto here = ValueOf(sums[p].metrics, metric);
        const auto first = ValueOf(sums[p - v * stride].metrics, metric);
        if (!here || !first || *here <= 0 || *first <= 0) continue;
        logs += std::log(*here / *first);
        ++pairs;
      }
      if (pairs > 0) sensitivity.relative[v] = std::exp(logs / static_cast<double>(pairs));
    }
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (const std::optional<double>& relative : sensitivity.relative) {
      if (!relative) continue;
      least = std::min(least, *relative);
      most = std::max(most, *relative);
    }
    if (most > 0) sensitivity.effect = most / least;
    result.push_back(std::move(sensitivity));
  }
  // Of one effect, in the order of the axes. (std::stable_sort of libstdc++ 12 is deprecated inside of itself.)
  std::vector<size_t> order(result.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    return std::tuple(-result[x].effect, x) < std::tuple(-result[y].effect, y);
  });
  std::vector<Sensitivity> sorted;
  for (const size_t i : order) sorted.push_back(std::move(result[i]));
  return sorted;
}

std::vector<ProgramRatios> RatiosAlong(const Table& table, std::string_view axis,
                                       std::string_view metric) {
  std::vector<ProgramRatios> result;
  for (const std::string& program : table.programs) {
    Table one = table;
    one.programs = {program};
    std::erase_if(one.rows, [&](const Row& row) { return row.program != program; });
    for (Sensitivity& sensitivity : Sensitivities(one, SumPoints(one), metric)) {
      if (sensitivity.axis != axis) continue;
      result.push_back({program, std::move(sensitivity.relative)});
    }
  }
  return result;
}

std::vector<std::optional<double>> MeansOf(const std::vector<ProgramRatios>& ratios) {
  if (ratios.empty()) return {};
  const size_t count = ratios[0].relative.size();
  std::vector<double> logs(count);
  int64_t programs = 0;
  for (const ProgramRatios& of : ratios) {
    const auto has_value = [](const std::optional<double>& ratio) { return ratio.has_value(); };
    if (!std::all_of(of.relative.begin(), of.relative.end(), has_value)) continue;
    ++programs;
    for (size_t v = 0; v < count; ++v) logs[v] += std::log(*of.relative[v]);
  }
  std::vector<std::optional<double>> means(count);
  if (programs == 0) return means;
  for (size_t v = 0; v < count; ++v) means[v] = std::exp(logs[v] / static_cast<double>(programs));
  return means;
}

std::string InstructionsText(const Table& table) {
  if (table.axes.empty() || table.axes.back().name != kInstructionsAxis) return "";
  const std::vector<std::string>& tables = table.axes.back().values;
  if (tables.size() < 2) return "";
  size_t width = 40;
  for (const std::string& program : table.programs) width = std::max(width, program.size());
  const int columns = static_cast<int>(width);
  std::string text = absl::StrFormat("%-*s", columns, StrCat("cycles, relative to ", tables[0]));
  for (size_t v = 1; v < tables.size(); ++v) absl::StrAppendFormat(&text, "%12s", tables[v]);
  const auto line = [&](const std::string& name, const std::vector<std::optional<double>>& values) {
    absl::StrAppendFormat(&text, "\n%-*s", columns, name);
    for (size_t v = 1; v < values.size(); ++v) {
      text += values[v] ? absl::StrFormat("%12.3f", *values[v]) : "           -";
    }
  };
  const std::vector<ProgramRatios> cycles = RatiosAlong(table, kInstructionsAxis, "cycles");
  for (const ProgramRatios& of : cycles) line(of.program, of.relative);
  for (const auto& [metric, name] :
       {std::pair("cycles", "cycles"), {"energy_pj", "energy"}, {"area_mm2", "area"}}) {
    const std::vector<ProgramRatios> ratios = RatiosAlong(table, kInstructionsAxis, metric);
    const std::vector<std::optional<double>> means = MeansOf(ratios);
    const bool has_any = std::any_of(means.begin(), means.end(),
                                     [](const std::optional<double>& mean) { return bool(mean); });
    if (has_any) line(StrCat("geometric mean, ", name), means);
  }
  for (size_t v = 1; v < tables.size(); ++v) {
    int fewer = 0, same = 0, more = 0;
    for (const ProgramRatios& of : cycles) {
      if (!of.relative[v]) continue;
      fewer += *of.relative[v] < 1, same += *of.relative[v] == 1, more += *of.relative[v] > 1;
    }
    StrAppend(&text, "\n", tables[v], ": fewer cycles in ", fewer, " programs, the same in ", same,
              ", more in ", more);
  }
  return text + "\n";
}

std::optional<int64_t> BestPoint(const std::vector<PointSum>& sums,
                                 const std::vector<std::string>& metrics) {
  std::optional<int64_t> best;
  double least = 0;
  for (const PointSum& sum : sums) {
    double product = 1;
    bool has_all = true;
    for (const std::string& name : metrics) {
      const auto value = ValueOf(sum.metrics, name);
      has_all = has_all && value.has_value();
      product *= value.value_or(0);
    }
    if (!has_all || (best && product >= least)) continue;
    best = sum.point;
    least = product;
  }
  return best;
}

}  // namespace polynao::sweep
