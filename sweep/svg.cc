#include "sweep/svg.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "base/text.h"

namespace polynao::sweep {
namespace {

// The plot in the picture, in its units.
constexpr double kWidth = 640, kHeight = 400, kLeft = 92, kRight = 16, kTop = 18, kBottom = 58;

// Colours that differ in lightness too; the first for sums.
constexpr const char* kColors[] = {"#1f77b4", "#d95f02", "#2a9d5c", "#7b4fa3",
                                   "#b8860b", "#c2185b", "#00838f", "#6d4c41"};

// Values to places along an axis.
class Scale {
 public:
  Scale(double least, double most, double begin, double end, bool may_be_log)
      : begin_(begin), end_(end) {
    is_log_ = may_be_log && least > 0 && most >= 10 * least;
    if (is_log_) {
      low_ = std::log10(least), high_ = std::log10(most);
    } else {
      low_ = least, high_ = most;
    }
    const double pad = high_ > low_ ? (high_ - low_) * 0.05 : std::max(std::abs(low_) * 0.1, 1e-12);
    low_ -= pad, high_ += pad;
    if (!is_log_ && least >= 0) low_ = std::max(low_, 0.0);
  }
  double At(double value) const {
    const double v = is_log_ ? std::log10(value) : value;
    return begin_ + (v - low_) / (high_ - low_) * (end_ - begin_);
  }
  // Round values inside.
  std::vector<double> Ticks() const {
    std::vector<double> ticks;
    if (is_log_) {
      for (int power = static_cast<int>(std::floor(low_)); power <= high_; ++power) {
        for (const double digit : {1.0, 2.0, 5.0}) {
          const double value = digit * std::pow(10, power);
          if (std::log10(value) >= low_ && std::log10(value) <= high_) ticks.push_back(value);
        }
      }
      return ticks;
    }
    const double step = Step();
    for (double k = std::ceil(low_ / step); k * step <= high_; ++k) ticks.push_back(k * step);
    return ticks;
  }
  // A tick's label, with enough digits to tell it from the next: 1.0005 and 1.001.
  std::string Label(double tick) const {
    const double most = std::max(std::abs(low_), std::abs(high_));
    const int digits = is_log_ ? 3 : static_cast<int>(std::floor(std::log10(most / Step()))) + 2;
    if (digits <= 3) return ShortNumber(tick);
    return absl::StrFormat("%.*g", std::min(digits, 15), tick);
  }

 private:
  // From tick to tick, if not logarithmic.
  double Step() const {
    const double raw = (high_ - low_) / 6;
    const double power = std::pow(10, std::floor(std::log10(raw)));
    return power * (raw / power > 5 ? 10 : raw / power > 2 ? 5 : raw / power > 1 ? 2 : 1);
  }

  double begin_, end_, low_ = 0, high_ = 1;
  bool is_log_ = false;
};

std::string Open() {
  return absl::StrFormat("<svg viewBox=\"0 0 %g %g\" role=\"img\">\n", kWidth, kHeight);
}

std::string Line(double x1, double y1, double x2, double y2, const char* css) {
  return absl::StrFormat("<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                         css, x1, y1, x2, y2);
}

std::string Text(double x, double y, std::string_view text, const char* anchor,
                 const std::string& more = "") {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n", x, y,
                         anchor, more, Escape(text));
}

std::string YAxis(const Scale& scale, std::string_view title) {
  std::string svg;
  for (const double tick : scale.Ticks()) {
    const double y = scale.At(tick);
    StrAppend(&svg, Line(kLeft, y, kWidth - kRight, y, "grid"),
              Text(kLeft - 6, y + 4, scale.Label(tick), "end"));
  }
  StrAppend(&svg, Text(16, (kTop + kHeight - kBottom) / 2, title, "middle",
                       absl::StrFormat(" transform=\"rotate(-90 16 %g)\"",
                                       (kTop + kHeight - kBottom) / 2)));
  return svg;
}

// The points of a polyline, broken where there is no value.
std::string Polylines(const std::vector<double>& xs, const std::vector<std::optional<double>>& ys,
                      const Scale& scale, const std::string& style) {
  std::string svg, points;
  const auto flush = [&] {
    if (!points.empty()) StrAppend(&svg, "<polyline ", style, " points=\"", points, "\"/>\n");
    points.clear();
  };
  for (size_t i = 0; i < xs.size(); ++i) {
    if (!ys[i]) {
      flush();
      continue;
    }
    StrAppend(&points, absl::StrFormat("%.1f,%.1f ", xs[i], scale.At(*ys[i])));
  }
  flush();
  return svg;
}

}  // namespace

std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string ShortNumber(double value) {
  if (std::abs(value) >= 1000 && std::abs(value) < 1e6 && std::floor(value) == value) {
    return absl::StrFormat("%.0f", value);
  }
  return absl::StrFormat("%.3g", value);
}

std::string ScatterSvg(const Scatter& scatter) {
  double x_least = INFINITY, x_most = -INFINITY, y_least = INFINITY, y_most = -INFINITY;
  for (const Scatter::Dot& dot : scatter.dots) {
    x_least = std::min(x_least, dot.x), x_most = std::max(x_most, dot.x);
    y_least = std::min(y_least, dot.y), y_most = std::max(y_most, dot.y);
  }
  const Scale xs(x_least, x_most, kLeft, kWidth - kRight, true);
  const Scale ys(y_least, y_most, kHeight - kBottom, kTop, true);
  std::string svg = Open();
  StrAppend(&svg, YAxis(ys, scatter.y_title));
  double last = -INFINITY;
  for (const double tick : xs.Ticks()) {
    const double x = xs.At(tick);
    StrAppend(&svg, Line(x, kTop, x, kHeight - kBottom, "grid"));
    if (x - last < 44) continue;  // labels do not touch
    last = x;
    StrAppend(&svg, Text(x, kHeight - kBottom + 18, xs.Label(tick), "middle"));
  }
  StrAppend(&svg, Text((kLeft + kWidth - kRight) / 2, kHeight - 14, scatter.x_title, "middle"));
  std::vector<double> front_x;
  std::vector<std::optional<double>> front_y;
  for (const bool is_front : {false, true}) {
    for (const Scatter::Dot& dot : scatter.dots) {
      if (dot.is_front != is_front) continue;
      StrAppend(
          &svg,
          absl::StrFormat(
              "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%g\"><title>%s</title></circle>\n",
              is_front ? "front" : "dot", xs.At(dot.x), ys.At(dot.y), is_front ? 4.5 : 2.5,
              Escape(dot.label)));
      if (!is_front) continue;
      front_x.push_back(xs.At(dot.x));
      front_y.emplace_back(dot.y);
    }
  }
  StrAppend(&svg, Polylines(front_x, front_y, ys, "class=\"frontline\""));
  return svg + "</svg>\n";
}

std::string CurvesSvg(const Curves& curves) {
  double least = INFINITY, most = -INFINITY;
  const auto see = [&](const std::vector<std::optional<double>>& values) {
    for (const auto& value : values) {
      if (!value) continue;
      least = std::min(least, *value), most = std::max(most, *value);
    }
  };
  for (const Curves::Line& line : curves.lines) see(line.values);
  see(curves.low), see(curves.high);
  if (least > most) least = most = 1;
  const Scale ys(least, most, kHeight - kBottom, kTop, true);
  const size_t count = curves.places.size();
  std::vector<double> xs;
  for (size_t i = 0; i < count; ++i) {
    const double share = count == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(count - 1);
    xs.push_back(kLeft + 24 + share * (kWidth - kRight - kLeft - 48));
  }
  std::string svg = Open();
  StrAppend(&svg, YAxis(ys, "cycles, relative to the first value"));
  for (size_t i = 0; i < count; ++i) {
    StrAppend(&svg, Text(xs[i], kHeight - kBottom + 18, curves.places[i], "middle"));
  }
  StrAppend(&svg, Text((kLeft + kWidth - kRight) / 2, kHeight - 14, curves.title, "middle"));
  std::string band, back;
  for (size_t i = 0; i < count; ++i) {
    if (!curves.low[i] || !curves.high[i]) continue;
    StrAppend(&band, absl::StrFormat("%.1f,%.1f ", xs[i], ys.At(*curves.high[i])));
    back = absl::StrFormat("%.1f,%.1f ", xs[i], ys.At(*curves.low[i])) + back;
  }
  StrAppend(&svg, "<polygon class=\"band\" points=\"", band, back, "\"/>\n");
  // Programs first, so that the sum lies on top.
  for (const bool is_thick : {false, true}) {
    size_t color = is_thick ? 0 : 1;
    for (const Curves::Line& line : curves.lines) {
      if (line.is_thick != is_thick) continue;
      const char* stroke = kColors[color % std::size(kColors)];
      ++color;
      StrAppend(&svg, Polylines(xs, line.values, ys,
                                absl::StrFormat("fill=\"none\" stroke=\"%s\" stroke-width=\"%g\"",
                                                stroke, is_thick ? 3.5 : 1.5)));
      for (size_t i = 0; i < count; ++i) {
        if (!line.values[i]) continue;
        StrAppend(
            &svg,
            absl::StrFormat(
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"><title>%s</title></circle>\n",
                xs[i], ys.At(*line.values[i]), stroke,
                Escape(StrCat(line.name, ", ", curves.places[i], ": ",
                              ShortNumber(*line.values[i])))));
      }
    }
  }
  svg += "</svg>\n<p class=\"legend\">";
  size_t color = 1;
  for (const Curves::Line& line : curves.lines) {
    const char* stroke = kColors[(line.is_thick ? 0 : color++) % std::size(kColors)];
    StrAppend(&svg, "<span><i style=\"background:", stroke, "\"></i>", Escape(line.name),
              "</span> ");
  }
  return svg + "<span><i class=\"bandkey\"></i>least to most of the sum</span></p>\n";
}

}  // namespace polynao::sweep
