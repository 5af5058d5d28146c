#include "benchmarks/bar_chart.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "base/text.h"
#include "benchmarks/html.h"

namespace polynao::benchmarks {
namespace {

struct Axis {
  double low = 0, high = 1;  // the ends of the plot
  bool is_logarithmic = false;
  double foot = 0;  // where bars begin
  std::vector<double> ticks;

  // 0 at the lower end, 1 at the upper one.
  double Place(double value) const {
    if (!is_logarithmic) return (value - low) / (high - low);
    return std::log(value / low) / std::log(high / low);
  }
};

// Ticks at 1, 2 and 5 times a power of ten, or at powers of ten where there are many of them.
Axis LogarithmicAxis(const std::vector<double>& values, double foot) {
  Axis axis{.low = foot, .high = foot, .is_logarithmic = true, .foot = foot, .ticks = {}};
  for (const double value : values) {
    if (value <= 0) continue;
    axis.low = std::min(axis.low, value);
    axis.high = std::max(axis.high, value);
  }
  // Some room for numbers, and for bars of which none is much higher than 1.
  axis.low = std::min(axis.low, foot / 2) / 1.2;
  axis.high = std::max(axis.high, foot * 2) * 1.2;
  const bool has_many = axis.high / axis.low > 1e5;
  for (double power = std::pow(10, std::floor(std::log10(axis.low))); power <= axis.high;
       power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = power * factor;
      if (has_many && factor != 1) continue;
      if (tick >= axis.low && tick <= axis.high) axis.ticks.push_back(tick);
    }
  }
  return axis;
}

// From 0, with four to eight ticks at 1, 2 or 5 times a power of ten.
Axis LinearAxis(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, value);
  if (largest <= 0) largest = 1;
  double step = std::pow(10, std::floor(std::log10(largest)) - 1);
  for (const double factor : {2.0, 2.5, 2.0, 2.0, 2.5}) {
    if (largest / step <= 8) break;
    step *= factor;
  }
  // Above the highest bar there is room for its number.
  Axis axis{.low = 0, .high = largest * 1.1, .is_logarithmic = false, .foot = 0, .ticks = {}};
  for (int i = 0; step * i <= axis.high; ++i) axis.ticks.push_back(step * i);
  return axis;
}

Axis AxisOf(const BarChart& chart) {
  std::vector<double> values = {chart.line.value_or(0)};
  for (const BarChart::Series& series : chart.series) {
    for (const std::optional<double>& value : series.values) {
      if (value) values.push_back(*value);
    }
  }
  return chart.is_logarithmic ? LogarithmicAxis(values, chart.line.value_or(1))
                              : LinearAxis(values);
}

}  // namespace

std::string BarChartSvg(const BarChart& chart) {
  constexpr double kWidth = 1000;
  constexpr double kTop = 30;
  constexpr double kHeight = 200;  // of the plot
  const double count = static_cast<double>(std::max<size_t>(chart.groups.size(), 1));
  // Labels that do not fit side by side are turned.
  size_t longest = 0;
  for (const std::string& label : chart.groups) longest = std::max(longest, label.size());
  const double room = (kWidth - 50) / count;
  const bool turned = static_cast<double>(longest) * 6.2 > room;
  const double plot_left = turned ? PlotLeft(chart.groups, room) : PlotLeft({}, room);
  const double group = (kWidth - plot_left - 10) / count;
  const double bottom = turned ? 18 + static_cast<double>(longest) * 4.2 : 26;

  const Axis axis = AxisOf(chart);
  const auto y_of = [&](double value) { return kTop + kHeight * (1 - axis.Place(value)); };
  const double foot = y_of(axis.foot);

  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" font-family=\"system-ui, "
      "sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
      kWidth, kTop + kHeight + bottom);
  for (const double tick : axis.ticks) {
    const double y = y_of(tick);
    absl::StrAppendFormat(&svg,
                          "<path d=\"M%g %.1fH%g\" stroke=\"#e3e7ec\"/><text x=\"%g\" y=\"%.1f\" "
                          "text-anchor=\"end\" fill=\"#4a5464\">%g</text>\n",
                          plot_left, y, kWidth - 10, plot_left - 5, y + 4, tick);
  }
  const double bar = group * 0.8 / static_cast<double>(std::max<size_t>(chart.series.size(), 1));
  std::string numbers;
  for (size_t g = 0; g < chart.groups.size(); ++g) {
    const double left = plot_left + group * (static_cast<double>(g) + 0.1);
    const double middle = plot_left + group * (static_cast<double>(g) + 0.5);
    bool any = false;
    for (size_t s = 0; s < chart.series.size(); ++s) {
      const BarChart::Series& series = chart.series[s];
      if (g >= series.values.size() || !series.values[g]) continue;
      const double value = *series.values[g];
      if (chart.is_logarithmic && value <= 0) continue;
      any = true;
      const double x = left + bar * static_cast<double>(s);
      const double y = y_of(value);
      absl::StrAppendFormat(
          &svg,
          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"><title>%s, %s: "
          "%.3f</title></rect>\n",
          x, std::min(y, foot), bar * 0.94, std::abs(foot - y), series.color,
          Escape(chart.groups[g]), Escape(series.name), value);
      if (series.show_values) {
        // Last, and on a white outline of itself, so that no line crosses the number.
        for (const char* style : {"stroke=\"#fff\" stroke-width=\"3\"", "fill=\"#1d2430\""}) {
          absl::StrAppendFormat(&numbers,
                                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" "
                                "font-size=\"10\" %s>%.2f</text>\n",
                                x + bar * 0.47, y > foot ? y + 10 : y - 3, style, value);
        }
      }
    }
    if (!any) {
      absl::StrAppendFormat(&svg,
                            "<text transform=\"translate(%.1f %g) rotate(-90)\" fill=\"#8a93a0\" "
                            "font-style=\"italic\">no value</text>\n",
                            middle + 4, kTop + kHeight - 8);
    }
    if (turned) {
      absl::StrAppendFormat(
          &svg,
          "<text transform=\"translate(%.1f %g) rotate(-40)\" text-anchor=\"end\" "
          "fill=\"#1d2430\">%s</text>\n",
          middle + 4, kTop + kHeight + 14, Escape(chart.groups[g]));
    } else {
      absl::StrAppendFormat(
          &svg, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\" fill=\"#1d2430\">%s</text>\n",
          middle, kTop + kHeight + 16, Escape(chart.groups[g]));
    }
  }
  if (chart.line) {
    absl::StrAppendFormat(&svg,
                          "<path d=\"M%g %.1fH%g\" stroke=\"#1d2430\" stroke-dasharray=\"4 3\"/>\n",
                          plot_left, y_of(*chart.line), kWidth - 10);
  }
  absl::StrAppendFormat(&svg, "<path d=\"M%g %gH%g\" stroke=\"#1d2430\"/>\n", plot_left,
                        kTop + kHeight, kWidth - 10);
  double x = plot_left;
  for (const BarChart::Series& series : chart.series) {
    absl::StrAppendFormat(&svg,
                          "<rect x=\"%.1f\" y=\"6\" width=\"11\" height=\"11\" fill=\"%s\"/><text "
                          "x=\"%.1f\" y=\"16\" fill=\"#1d2430\">%s</text>\n",
                          x, series.color, x + 16, Escape(series.name));
    x += 36 + 6.4 * static_cast<double>(series.name.size());
  }
  return svg + numbers + "</svg>\n";
}

}  // namespace polynao::benchmarks
