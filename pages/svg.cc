#include "pages/svg.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_format.h"
#include "base/text.h"
#include "pages/page.h"

namespace polynao::pages {
namespace {

constexpr double kCharacter = 6.4;  // the width of one, at 11 pixels

// To a hundredth of a pixel.
double Round(double length) { return std::round(length * 100) / 100; }

std::string Closed(std::string_view tag, std::string_view title) {
  if (title.empty()) return "/>\n";
  return StrCat("><title>", Escape(title), "</title></", tag, ">\n");
}

// 1, 2 or 5 times a power of ten, at least `least`.
double NiceStep(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (least <= factor * power * (1 + 1e-9)) return factor * power;
  }
  return 10 * power;
}

}  // namespace

void Svg::Line(double x1, double y1, double x2, double y2, std::string_view css) {
  StrAppend(&body_, "<line class=\"", css, "\" x1=\"", Round(x1), "\" y1=\"", Round(y1), "\" x2=\"",
            Round(x2), "\" y2=\"", Round(y2), "\"/>\n");
}

void Svg::Text(double x, double y, std::string_view text, std::string_view css,
               std::string_view look) {
  StrAppend(&body_, "<text x=\"", Round(x), "\" y=\"", Round(y), "\"");
  if (!css.empty()) StrAppend(&body_, " class=\"", css, "\"");
  StrAppend(&body_, look.empty() ? "" : " ", look, ">", Escape(text), "</text>\n");
}

void Svg::Rect(double x, double y, double width, double height, std::string_view look,
               std::string_view title) {
  StrAppend(&body_, "<rect x=\"", Round(x), "\" y=\"", Round(y), "\" width=\"", Round(width),
            "\" height=\"", Round(height), "\" ", look, Closed("rect", title));
}

void Svg::Circle(double x, double y, double radius, std::string_view look, std::string_view title) {
  StrAppend(&body_, "<circle cx=\"", Round(x), "\" cy=\"", Round(y), "\" r=\"", Round(radius),
            "\" ", look, Closed("circle", title));
}

double Svg::Legend(double left, double top, double right,
                   const std::vector<std::pair<std::string, std::string>>& entries) {
  double x = left, bottom = top;
  for (const auto& [name, color] : entries) {
    const double width = 16 + kCharacter * static_cast<double>(name.size());
    if (bottom == top || x + width > right) x = left, bottom += 16;
    Rect(x, bottom - 13, 11, 11, StrCat("fill=\"", color, "\""));
    Text(x + 16, bottom - 3, name);
    x += width + 18;
  }
  return bottom;
}

std::string Svg::Element(double width, double height) const {
  const std::string size = StrCat(std::ceil(width), "\" height=\"", std::ceil(height));
  return StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" width=\"",
                size, "\" viewBox=\"0 0 ", std::ceil(width), " ", std::ceil(height), "\">\n", body_,
                "</svg>\n");
}

std::string SvgFile(std::string_view element) {
  const size_t body = element.find('>') + 1;
  return StrCat(element.substr(0, body), "\n<style>svg { ", LightColors(), " }", ChartStyle(),
                "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>",
                element.substr(body));
}

std::string SeriesColor(size_t series) {
  static constexpr const char* kColors[] = {"#2f6db3", "#e8b03a", "#4d9a63", "#c46a5a",
                                            "#9a6fb0", "#8a93a0", "#2a9d9d", "#8a5f37",
                                            "#9cc3ea", "#c08bb8", "#86b7a0", "#5b6472"};
  return kColors[series % std::size(kColors)];
}

Axis::Axis(double low, double high, bool is_logarithmic, double begin, double end, int most_ticks)
    : low_(low), high_(high), begin_(begin), end_(end), is_logarithmic_(is_logarithmic) {
  if (is_logarithmic) {
    const bool has_many = high / low > 1e5;
    for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double tick = power * factor;
        if ((factor == 1 || !has_many) && tick >= low && tick <= high) ticks_.push_back(tick);
      }
    }
    if (ticks_.size() >= 3) return;
  }
  ticks_.clear();
  step_ = NiceStep((high - low) / most_ticks);
  for (double k = std::ceil(low / step_ - 1e-9); k * step_ <= high + step_ * 1e-9; ++k) {
    ticks_.push_back(k * step_ + 0.0);  // no -0
  }
}

Axis Axis::Around(const std::vector<double>& values, double begin, double end) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  double low = values.empty() ? 1 : *least, high = values.empty() ? 1 : *most;
  const bool is_positive = low >= 0;
  if (low > 0 && high >= 10 * low) {
    const double margin = std::pow(high / low, 0.05);
    return Axis(low / margin, high * margin, true, begin, end);
  }
  const double margin = high > low ? (high - low) * 0.05 : std::max(std::abs(low) * 0.1, 1e-12);
  low -= margin, high += margin;
  return Axis(is_positive ? std::max(low, 0.0) : low, high, false, begin, end);
}

double Axis::At(double value) const {
  const double share = is_logarithmic_ ? std::log(value / low_) / std::log(high_ / low_)
                                       : (value - low_) / (high_ - low_);
  return begin_ + share * (end_ - begin_);
}

std::string Axis::Label(double tick) const {
  if (step_ == 0) return ShortNumber(tick);
  const double most = std::max(std::abs(low_), std::abs(high_));
  const int digits = static_cast<int>(std::floor(std::log10(most / step_))) + 2;
  if (digits <= 3) return ShortNumber(tick);
  return absl::StrFormat("%.*g", std::min(digits, 15), tick);
}

void Axis::DrawLeft(Svg& svg, double left, double right, std::string_view title) const {
  for (const double tick : ticks_) {
    svg.Line(left, At(tick), right, At(tick), "grid");
    svg.Text(left - 5, At(tick) + 4, Label(tick), "soft end");
  }
  if (title.empty()) return;
  const double middle = (begin_ + end_) / 2;
  svg.Text(16, middle, title, "middle", StrCat("transform=\"rotate(-90 16 ", middle, ")\""));
}

}  // namespace polynao::pages
