// A table of a document, and how numbers stand in it.
#ifndef BENCHMARKS_TABLES_TABLE_H_
#define BENCHMARKS_TABLES_TABLE_H_

#include <string>
#include <vector>

namespace polynao::benchmarks {

struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // as many cells as the header, or fewer

  // Markdown, a line for each row: "| layer | cycles |\n|---|---|\n| stem | 80 |\n".
  std::string Markdown() const;
};

// 0.549 of (0.5486, 3).
std::string Fixed(double value, int digits);

// The geometric mean of positive numbers; 0 of none.
double GeometricMean(const std::vector<double>& values);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_TABLES_TABLE_H_
