#include "pages/charts.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/text.h"
#include "pages/page.h"
#include "pages/svg.h"

namespace polynao::pages {
namespace {

std::string Fill(const std::string& color) { return StrCat("fill=\"", color, "\""); }

// ---- Bars

constexpr double kBarWidth = 1280, kBarHeight = 220, kBarRight = 10;

// Where the plot begins, so that the turned label under each of its columns, up to `right`, stays in the picture.
double PlotLeft(const std::vector<std::string>& labels, double right) {
  constexpr double kAxis = 40;        // numbers at the axis
  constexpr double kCharacter = 5.3;  // of a label, turned by 40 degrees
  double left = kAxis;
  for (size_t i = 0; i < labels.size(); ++i) {
    const double length = kCharacter * static_cast<double>(labels[i].size());
    const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(labels.size());
    left = std::max(left, (length - right * share) / (1 - share));
  }
  return left;
}

Axis BarAxis(const BarChart& chart, double foot, double begin, double end) {
  // Some room around the foot, for bars of which none is much higher.
  double low = chart.band > 0 ? foot - 2 * chart.band : foot / 2;
  double high = chart.band > 0 ? foot + 2 * chart.band : foot * 2, largest = 0;
  const auto see = [&](double value) {
    value = std::min(value, chart.largest);
    largest = std::max(largest, value);
    if (value <= 0) return;
    low = std::min(low, value), high = std::max(high, value);
  };
  see(chart.line.value_or(0));
  for (const BarChart::Series& series : chart.series) {
    for (const std::optional<double>& value : series.values) see(value.value_or(0));
  }
  for (const std::vector<double>& dots : chart.dots) std::for_each(dots.begin(), dots.end(), see);
  // Above the highest bar there is room for its number.
  if (!chart.is_logarithmic) return Axis(0, largest > 0 ? largest * 1.1 : 1, false, begin, end);
  const double margin = std::pow(high / low, 0.06);
  return Axis(low / margin, high * margin, true, begin, end);
}

class BarPlot {
 public:
  explicit BarPlot(const BarChart& chart) : chart_(chart) {
    for (const std::string& label : chart.groups) longest_ = std::max(longest_, label.size());
    const double count = static_cast<double>(std::max<size_t>(chart.groups.size(), 1));
    const double room = (kBarWidth - 50) / count;
    turned_ = static_cast<double>(longest_) * 6.2 > room;
    left_ = PlotLeft(turned_ ? chart.groups : std::vector<std::string>(), kRightEnd);
    group_ = (kRightEnd - left_) / count;
    for (size_t s = 0; s < chart.series.size(); ++s) {
      const BarChart::Series& series = chart.series[s];
      legend_.emplace_back(series.name, series.color.empty() ? SeriesColor(s) : series.color);
    }
    const double top = svg_.Legend(left_, 4, kRightEnd, legend_) + 12;
    bottom_ = top + kBarHeight;
    axis_.emplace(BarAxis(chart, chart.line.value_or(1), bottom_, top));
    foot_ = chart.is_logarithmic ? axis_->At(chart.line.value_or(1)) : bottom_;
  }

  std::string Draw() {
    axis_->DrawLeft(svg_, left_, kRightEnd, "");
    for (size_t g = 0; g < chart_.groups.size(); ++g) {
      const bool has_bars = Bars(g);
      if (!Dots(g) && !has_bars) Turned(numbers_, "no value", "off", Middle(g), bottom_ - 8, -90);
      Label(g);
    }
    if (chart_.line) Line();
    svg_.Line(left_, bottom_, kRightEnd, bottom_, "ink");
    svg_.Add(numbers_.body());
    return svg_.Element(kBarWidth,
                        bottom_ + (turned_ ? 24 + static_cast<double>(longest_) * 4.4 : 26));
  }

 private:
  static constexpr double kRightEnd = kBarWidth - kBarRight;

  double Begin(size_t g) const { return left_ + group_ * (static_cast<double>(g) + 0.1); }
  double Middle(size_t g) const { return Begin(g) + group_ * 0.4; }

  static void Turned(Svg& svg, const std::string& text, const std::string& look, double middle,
                     double y, int degrees) {
    svg.Text(
        0, 0, text, look,
        absl::StrFormat("transform=\"translate(%.1f %g) rotate(%d)\"", middle + 4, y, degrees));
  }

  // Calls draw(x, y, width, title) for a value in one of the slots of group `g`.
  template <typename Draw>
  void Place(size_t g, double value, size_t slot, size_t slots, const std::string& title,
             const Draw& draw) {
    const double width = group_ * 0.8 / static_cast<double>(slots);
    const double x = Begin(g) + width * static_cast<double>(slot);
    const double y = axis_->At(std::min(value, chart_.largest));
    draw(x, y, width * 0.94, absl::StrFormat("%s: %.3f", title, value));
    if (value > chart_.largest) {
      numbers_.Text(x + width / 2, y - 5, absl::StrFormat("%.1f", value), "value middle");
    }
  }

  // Whether there are any.
  bool Bars(size_t g) {
    bool any = false;
    for (size_t s = 0; s < chart_.series.size(); ++s) {
      const BarChart::Series& series = chart_.series[s];
      if (g >= series.values.size() || !series.values[g]) continue;
      const double value = *series.values[g];
      if (chart_.is_logarithmic && value <= 0) continue;
      any = true;
      Place(g, value, s, chart_.series.size(), StrCat(chart_.groups[g], ", ", series.name),
            [&](double x, double y, double width, const std::string& title) {
              svg_.Rect(x, std::min(y, foot_), width, std::max(0.5, std::abs(foot_ - y)),
                        Fill(legend_[s].second), title);
              if (!series.show_values) return;
              numbers_.Text(x + width / 2, y > foot_ ? y + 10 : y - 3,
                            absl::StrFormat("%.2f", value), "value middle");
            });
    }
    return any;
  }

  bool Dots(size_t g) {
    if (g >= chart_.dots.size()) return false;
    const std::vector<double>& dots = chart_.dots[g];
    for (size_t i = 0; i < dots.size(); ++i) {
      Place(g, dots[i], i, dots.size(), chart_.groups[g],
            [&](double x, double y, double width, const std::string& title) {
              svg_.Circle(x + width / 2, y, 2.4, Fill(SeriesColor(0)) + " fill-opacity=\"0.75\"",
                          title);
            });
    }
    return !dots.empty();
  }

  void Label(size_t g) {
    if (turned_) {
      Turned(svg_, chart_.groups[g], "end", Middle(g), bottom_ + 14, -40);
    } else {
      svg_.Text(Middle(g), bottom_ + 16, chart_.groups[g], "middle");
    }
  }

  void Line() {
    const double y = axis_->At(*chart_.line);
    svg_.Line(left_, y, kRightEnd, y, chart_.band > 0 ? "ink" : "ink dashed");
    if (chart_.band == 0) return;
    for (const double side : {1.0, -1.0}) {
      const double edge = axis_->At(*chart_.line + side * chart_.band);
      svg_.Line(left_, edge, kRightEnd, edge, side > 0 ? "up dashed" : "down dashed");
    }
  }

  const BarChart& chart_;
  size_t longest_ = 0;   // label
  bool turned_ = false;  // labels that do not fit side by side
  double left_ = 0, bottom_ = 0, foot_ = 0;
  double group_ = 0;  // width
  std::vector<std::pair<std::string, std::string>> legend_;
  std::optional<Axis> axis_;
  Svg svg_, numbers_;  // numbers last, so that no line crosses them
};

// ---- Scatters and lines

constexpr double kWidth = 640, kHeight = 400, kLeft = 92, kRight = 16, kTop = 18, kBottom = 58;

constexpr const char* kBand = "#2f6db33c";

// Labels under the plot, as many as do not touch.
class BottomLabels {
 public:
  explicit BottomLabels(Svg& svg) : svg_(svg) {}
  void Add(double x, const std::string& label) {
    const double half = 3.2 * static_cast<double>(label.size());
    if (x - half < free_from_) return;
    free_from_ = x + half + 8;
    svg_.Text(x, kHeight - kBottom + 18, label, "soft middle");
  }

 private:
  Svg& svg_;
  double free_from_ = -INFINITY;
};

void BottomTitle(Svg& svg, const std::string& title) {
  svg.Text((kLeft + kWidth - kRight) / 2, kHeight - 14, title, "middle");
}

std::string PointText(double x, double y) { return absl::StrFormat("%.1f,%.1f ", x, y); }

// A line, broken where there is no value.
void Polyline(Svg& svg, const std::vector<double>& xs, const std::vector<std::optional<double>>& ys,
              const Axis& axis, const std::string& look) {
  std::string points;
  for (size_t i = 0; i <= xs.size(); ++i) {
    if (i < xs.size() && ys[i]) {
      points += PointText(xs[i], axis.At(*ys[i]));
    } else if (!points.empty()) {
      svg.Add(StrCat("<polyline ", look, " points=\"", points, "\"/>\n"));
      points.clear();
    }
  }
}

}  // namespace

std::string BarChartSvg(const BarChart& chart) { return BarPlot(chart).Draw(); }

std::string ScatterSvg(const Scatter& scatter) {
  std::vector<double> all_x, all_y;
  for (const Scatter::Dot& dot : scatter.dots) all_x.push_back(dot.x), all_y.push_back(dot.y);
  const Axis xs = Axis::Around(all_x, kLeft, kWidth - kRight);
  const Axis ys = Axis::Around(all_y, kHeight - kBottom, kTop);
  Svg svg;
  ys.DrawLeft(svg, kLeft, kWidth - kRight, scatter.y_title);
  BottomLabels labels(svg);
  for (const double tick : xs.ticks()) {
    svg.Line(xs.At(tick), kTop, xs.At(tick), kHeight - kBottom, "grid");
    labels.Add(xs.At(tick), xs.Label(tick));
  }
  BottomTitle(svg, scatter.x_title);
  std::vector<double> front_x;
  std::vector<std::optional<double>> front_y;
  for (const bool is_front : {false, true}) {
    for (const Scatter::Dot& dot : scatter.dots) {
      if (dot.is_front != is_front) continue;
      svg.Circle(xs.At(dot.x), ys.At(dot.y), is_front ? 4.5 : 2.5,
                 is_front ? "class=\"front\"" : "class=\"dot\"", dot.label);
      if (!is_front) continue;
      front_x.push_back(xs.At(dot.x));
      front_y.emplace_back(dot.y);
    }
  }
  Polyline(svg, front_x, front_y, ys, "class=\"front\"");
  return svg.Element(kWidth, kHeight);
}

std::string LineChartSvg(const LineChart& chart) {
  std::vector<double> values = chart.reach;
  const auto see = [&](const std::vector<std::optional<double>>& some) {
    for (const auto& value : some) {
      if (value) values.push_back(*value);
    }
  };
  for (const LineChart::Series& series : chart.series) see(series.values);
  see(chart.low), see(chart.high);
  Svg svg;
  std::vector<std::pair<std::string, std::string>> legend;
  for (const LineChart::Series& series : chart.series) {
    legend.emplace_back(series.name, SeriesColor(legend.size()));
  }
  if (!chart.band.empty()) legend.emplace_back(chart.band, kBand);
  const double top = svg.Legend(kLeft, 4, kWidth - kRight, legend) + 12;
  const Axis ys = Axis::Around(values, kHeight - kBottom, top);
  const size_t count = chart.places.size();
  std::vector<double> xs;
  for (size_t i = 0; i < count; ++i) {
    const double share = count == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(count - 1);
    xs.push_back(kLeft + 24 + share * (kWidth - kRight - kLeft - 48));
  }
  ys.DrawLeft(svg, kLeft, kWidth - kRight, chart.y_title);
  BottomLabels labels(svg);
  for (size_t i = 0; i < count; ++i) labels.Add(xs[i], chart.places[i]);
  BottomTitle(svg, chart.x_title);
  std::string upper, lower;
  for (size_t i = 0; i < chart.low.size(); ++i) {
    if (!chart.low[i] || !chart.high[i]) continue;
    upper += PointText(xs[i], ys.At(*chart.high[i]));
    lower = PointText(xs[i], ys.At(*chart.low[i])) + lower;
  }
  if (!upper.empty()) {
    svg.Add(StrCat("<polygon ", Fill(kBand), " points=\"", upper, lower, "\"/>\n"));
  }
  // Thick lines lie on top.
  for (const bool is_thick : {false, true}) {
    for (size_t s = 0; s < chart.series.size(); ++s) {
      const LineChart::Series& series = chart.series[s];
      if (series.is_thick != is_thick) continue;
      Polyline(svg, xs, series.values, ys,
               absl::StrFormat("stroke=\"%s\" stroke-width=\"%g\"", legend[s].second,
                               is_thick ? 3.5 : 1.5));
      for (size_t i = 0; i < count; ++i) {
        if (!series.values[i]) continue;
        svg.Circle(
            xs[i], ys.At(*series.values[i]), 3, Fill(legend[s].second),
            StrCat(series.name, ", ", chart.places[i], ": ", ShortNumber(*series.values[i])));
      }
    }
  }
  return svg.Element(kWidth, kHeight);
}

}  // namespace polynao::pages
