// Code that a document quotes with its file's name ("```c++ docs/example_pass/unroll.cc") stands
// there word for word, so what the reader copies is what the tests run.
#include <iterator>
#include <sstream>
#include <string>

#include "base/text.h"
#include "docs/examples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::docs {
namespace {

TEST(QuotesTest, AddAPass) {
  int quotes = 0;
  for (const std::string language : {"c++", "python"}) {
    for (const Example& example : ReadExamples("docs/add_a_pass.md", language)) {
      if (example.kind.empty()) continue;
      SCOPED_TRACE(StrCat("docs/add_a_pass.md:", example.line));
      EXPECT_THAT(ReadDocument(example.kind), testing::HasSubstr(example.text));
      ++quotes;
    }
  }
  EXPECT_GE(quotes, 5);
}

// The first page is read in one sitting; details are one link away.
TEST(QuotesTest, ReadmeIsShort) {
  std::istringstream text(ReadDocument("README.md"));
  const auto words = std::distance(std::istream_iterator<std::string>(text), {});
  EXPECT_LE(words, 1200);
}

}  // namespace
}  // namespace polynao::docs
