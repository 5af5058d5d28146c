#include "pages/page.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace polynao::pages {
namespace {

constexpr std::string_view kDarkColors =
    "color-scheme: dark; --ink: #e4e8ee; --soft: #9aa5b5; --off: #7c8796; --line: #39414d; "
    "--back: #14181e; --panel: #1d232b; --accent: #6fa8e0; --warn: #ff8a80; --good: #7fcf96; "
    "--dot: #61758c;";

constexpr std::string_view kStyle = R"css(
body { font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--back);
  margin: 24px auto; max-width: 1320px; padding: 0 20px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 32px 0 6px; }
h3 { font-size: 15px; margin: 18px 0 4px; } p { margin: 4px 0 8px; color: var(--soft); max-width: 920px; }
table { border-collapse: collapse; font-size: 12.5px; margin: 6px 0; }
th, td { padding: 3px 12px 3px 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--soft); font-weight: 600; } td:first-child { white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.bad { color: var(--warn); font-weight: 600; } .good { color: var(--good); } .off { color: var(--off); }
.scroll, pre { overflow-x: auto; } pre { font-size: 12px; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(520px, 1fr)); gap: 24px; }
figure { margin: 0; } svg { max-width: 100%; height: auto; display: block; }
details { margin-top: 14px; } summary { cursor: pointer; font-size: 15px; font-weight: 600; }
)css";

}  // namespace

std::string Escape(std::string_view text) {
  return absl::StrReplaceAll(ToAbsl(text),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string ShortNumber(double value) {
  const bool is_whole =
      std::abs(value) >= 1000 && std::abs(value) < 1e6 && std::floor(value) == value;
  return is_whole ? absl::StrFormat("%.0f", value) : absl::StrFormat("%.3g", value);
}

std::string Thousands(int64_t value) {
  std::string digits = StrCat(value);
  const int64_t first = value < 0 ? 1 : 0;
  for (int64_t i = static_cast<int64_t>(digits.size()) - 3; i > first; i -= 3) {
    digits.insert(static_cast<size_t>(i), "\u2009");
  }
  return digits;
}

std::string_view LightColors() {
  return "color-scheme: light; --ink: #1d2430; --soft: #4a5464; --off: #8a93a0; --line: #dfe3e9; "
         "--back: #ffffff; --panel: #f4f6f9; --accent: #2f6db3; --warn: #b3261e; --good: #1f7a3d; "
         "--dot: #8aa0b8;";
}

std::string_view ChartStyle() {
  return R"css(
.chart text { fill: var(--ink); font: 11px system-ui, sans-serif; } .chart text.soft { fill: var(--soft); }
.chart text.off { fill: var(--off); font-style: italic; } .chart text.bad { fill: var(--warn); }
.chart text.bold { font-weight: 600; } .chart text.title { font-size: 15px; font-weight: 600; }
.chart text.value { font-size: 10px; paint-order: stroke; stroke: var(--back); stroke-width: 3px; }
.chart .middle { text-anchor: middle; } .chart .end { text-anchor: end; }
.chart .grid { stroke: var(--line); } .chart .ink { stroke: var(--ink); } .chart .dashed { stroke-dasharray: 4 3; }
.chart .up { stroke: var(--good); } .chart .down { stroke: var(--warn); } .chart .panel { fill: var(--panel); }
.chart .dot { fill: var(--dot); } .chart .front { fill: var(--warn); } .chart polyline { fill: none; }
.chart polyline.front { fill: none; stroke: var(--warn); stroke-width: 1.5; }
)css";
}

std::string Page(std::string_view title, std::string_view body, std::string_view style) {
  const std::string name = Escape(title);
  return StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
      name, "</title>\n<style>\n:root { ", LightColors(),
      " }\n@media (prefers-color-scheme: dark) { :root { ", kDarkColors, " } }", kStyle,
      ChartStyle(), style, "</style></head><body>\n<h1>", name, "</h1>\n", body,
      "</body></html>\n");
}

std::string DataElement(std::string_view json) {
  return StrCat("<script type=\"application/json\" id=\"data\">\n",
                absl::StrReplaceAll(ToAbsl(json), {{"<", "\\u003c"}}), "</script>\n");
}

Cell::Cell(double value, int digits, std::string_view css)
    : text(absl::StrFormat("%.*f", digits, value)), css(css) {}

Table::Table(std::vector<std::string> heads, size_t first_number, std::string_view text) {
  for (size_t i = 0; i < heads.size(); ++i) {
    is_number_.push_back(i >= first_number && !heads[i].empty() && heads[i] != text);
    StrAppend(&html_, is_number_[i] ? "<th class=\"n\">" : "<th>", Escape(heads[i]), "</th>");
  }
  html_ = StrCat("<div class=\"scroll\"><table>\n<tr>", html_, "</tr>\n");
}

void Table::Row(const std::vector<Cell>& cells) {
  html_ += "<tr>";
  size_t column = 0;
  for (const Cell& cell : cells) {
    std::string css = cell.css;
    if (column < is_number_.size() && is_number_[column] && cell.columns == 1) {
      css = css.empty() ? "n" : "n " + css;
    }
    html_ += "<td";
    if (!css.empty()) StrAppend(&html_, " class=\"", css, "\"");
    if (cell.columns > 1) StrAppend(&html_, " colspan=\"", cell.columns, "\"");
    StrAppend(&html_, ">", Escape(cell.text), "</td>");
    column += static_cast<size_t>(cell.columns);
  }
  html_ += "</tr>\n";
}

std::string Table::Html() const { return html_ + "</table></div>\n"; }

}  // namespace polynao::pages
