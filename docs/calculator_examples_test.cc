// Every example of the calculator in docs/calculator.md holds:
//   ```poly           runs
//   ```poly printed   is what the block before it prints
//   ```poly error     is refused; the comment at its end is the message
//   | ... | `expression` | `value` |    rows of tables: the expression has this value
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/text.h"
#include "compiler/poly/calculator/calculator.h"
#include "docs/examples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::docs {
namespace {

constexpr char kDocument[] = "docs/calculator.md";

std::string Place(int line) { return StrCat(kDocument, ":", line); }

TEST(CalculatorExamplesTest, BlocksPrintWhatIsShown) {
  const std::vector<Example> examples = ReadExamples(kDocument, "poly");
  int printed = 0, errors = 0;
  for (size_t i = 0; i < examples.size(); ++i) {
    const Example& example = examples[i];
    SCOPED_TRACE(Place(example.line));
    if (example.kind == "printed") continue;
    const absl::StatusOr<std::string> text = poly::Evaluate(example.text);
    if (example.kind == "error") {
      ++errors;
      ASSERT_FALSE(text.ok()) << *text;
      EXPECT_EQ(std::string(text.status().message()), example.Expectation());
      continue;
    }
    ASSERT_EQ(example.kind, "");
    ASSERT_TRUE(text.ok()) << text.status();
    if (i + 1 < examples.size() && examples[i + 1].kind == "printed") {
      ++printed;
      EXPECT_EQ(*text, examples[i + 1].text);
    }
  }
  EXPECT_GE(printed, 3);
  EXPECT_GE(errors, 3);
}

TEST(CalculatorExamplesTest, TableRowsHaveTheValueShown) {
  int line = 0, rows = 0;
  std::string all;
  for (absl::string_view text : absl::StrSplit(ReadDocument(kDocument), '\n')) {
    ++line;
    if (!absl::StartsWith(text, "| ") || !absl::EndsWith(text, "` |")) continue;
    const std::vector<std::string> cells = absl::StrSplit(text, " | ");
    if (cells.size() < 2) continue;
    const std::string expression(
        absl::StripPrefix(absl::StripSuffix(cells[cells.size() - 2], "`"), "`"));
    const std::string value(absl::StripPrefix(absl::StripSuffix(cells.back(), "` |"), "`"));
    SCOPED_TRACE(StrCat(Place(line), ": ", expression));
    const absl::StatusOr<std::string> found = poly::Evaluate(expression);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, value + "\n");
    all += StrCat(cells[0], " ", expression, "\n");
    ++rows;
  }
  EXPECT_GE(rows, 60);
  // Each function has its row.
  for (const std::string& function : poly::CalculatorFunctions()) {
    EXPECT_THAT(all, testing::HasSubstr(function));
  }
}

}  // namespace
}  // namespace polynao::docs
