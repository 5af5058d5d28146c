#include "benchmarks/html.h"

#include <algorithm>

#include "absl/strings/str_replace.h"
#include "base/text.h"

namespace polynao::benchmarks {
namespace {

constexpr char kStyle[] = R"css(
body { font: 14px/1.45 system-ui, sans-serif; color: #1d2430; background: #fff; margin: 24px auto;
  max-width: 1040px; padding: 0 16px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 32px 0 4px; }
h3 { font-size: 15px; margin: 20px 0 4px; } p { margin: 4px 0 8px; color: #4a5464; }
table { border-collapse: collapse; font-size: 12.5px; margin: 6px 0; }
th, td { padding: 3px 9px; border-bottom: 1px solid #e3e7ec; text-align: left; }
th { color: #4a5464; font-weight: 600; } td.n, th.n { text-align: right;
  font-variant-numeric: tabular-nums; }
.bad { color: #b3261e; font-weight: 600; } .good { color: #1f7a3d; } .off { color: #8a93a0; }
svg { width: 100%; height: auto; } pre { overflow-x: auto; font-size: 12px; }
details { margin-top: 24px; }
summary { cursor: pointer; font-size: 18px; font-weight: 600; }
)css";

}  // namespace

std::string Escape(std::string_view text) {
  return absl::StrReplaceAll(ToAbsl(text),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string PageHead(std::string_view title) {
  return StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"color-scheme\" content=\"light\">\n<title>",
      Escape(title), "</title>\n<style>", kStyle, "</style></head><body>\n<h1>", Escape(title),
      "</h1>\n");
}

std::string Cell(std::string_view text, bool number, std::string_view css) {
  return StrCat("<td class=\"", number ? "n " : "", css, "\">", Escape(text), "</td>");
}

std::string Heads(const std::vector<std::string>& names, size_t first_number,
                  std::string_view text) {
  std::string html = "<tr>";
  for (size_t i = 0; i < names.size(); ++i) {
    const bool number = i >= first_number && names[i] != text;
    StrAppend(&html, number ? "<th class=\"n\">" : "<th>", Escape(names[i]), "</th>");
  }
  return html + "</tr>\n";
}

double PlotLeft(const std::vector<std::string>& labels, double column) {
  constexpr double kAxis = 40;        // numbers at the axis
  constexpr double kCharacter = 5.3;  // of a label, turned by 40 degrees
  double left = kAxis;
  for (size_t i = 0; i < labels.size(); ++i) {
    left = std::max(left, kCharacter * static_cast<double>(labels[i].size()) -
                              column * (static_cast<double>(i) + 0.5));
  }
  return left;
}

}  // namespace polynao::benchmarks
