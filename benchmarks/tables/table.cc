#include "benchmarks/tables/table.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "base/text.h"

namespace polynao::benchmarks {

std::string Table::Markdown() const {
  const auto line = [&](const std::vector<std::string>& cells) {
    POLYNAO_CHECK(cells.size() <= header.size());
    std::string text = "|";
    for (size_t i = 0; i < header.size(); ++i) {
      const std::string cell =
          i < cells.size() ? absl::StrReplaceAll(cells[i], {{"|", "\\|"}, {"\n", " "}}) : "";
      StrAppend(&text, " ", cell, cell.empty() ? "|" : " |");
    }
    return text + "\n";
  };
  std::string text = line(header) + "|";
  for (size_t i = 0; i < header.size(); ++i) text += "---|";
  text += "\n";
  for (const std::vector<std::string>& row : rows) text += line(row);
  return text;
}

std::string Fixed(double value, int digits) { return absl::StrFormat("%.*f", digits, value); }

double GeometricMean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += std::log(value);
  return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace polynao::benchmarks
