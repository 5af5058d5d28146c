// Pieces of the pages that show results.
#ifndef BENCHMARKS_HTML_H_
#define BENCHMARKS_HTML_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace polynao::benchmarks {

// `text` as it stands between tags.
std::string Escape(std::string_view text);

// The page up to and including its heading.
std::string PageHead(std::string_view title);

// A cell of a table, for a number on its right side; `css` is a class: "good", "bad", "off".
std::string Cell(std::string_view text, bool number = false, std::string_view css = "");

// The row of headings. Columns of numbers start at `first_number`; `text` may stand among them.
std::string Heads(const std::vector<std::string>& names, size_t first_number,
                  std::string_view text = "");

// Where a chart's plot begins, in units of a picture of 1000, so that the turned label under each of its
// columns, `column` wide, stays in the picture.
double PlotLeft(const std::vector<std::string>& labels, double column);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_HTML_H_
