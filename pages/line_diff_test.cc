#include "pages/line_diff.h"

#include <random>
#include <string>

#include "base/text.h"
#include "gtest/gtest.h"
#include "testing/fuzz.h"

namespace polynao::pages {
namespace {

// "a -b +x c": the lines, with what became of them.
std::string Diff(std::string_view before, std::string_view after) {
  std::string text;
  for (const DiffLine& line : DiffLines(before, after)) {
    const char* const sign = line.kind == DiffLine::Kind::kSame      ? ""
                             : line.kind == DiffLine::Kind::kRemoved ? "-"
                                                                     : "+";
    StrAppend(&text, text.empty() ? "" : " ", sign, line.text);
  }
  return text;
}

TEST(DiffLines, KeepsWhatStays) {
  EXPECT_EQ(Diff("a\nb\nc\n", "a\nx\nc\n"), "a -b +x c");
  EXPECT_EQ(Diff("", "a\n"), "+a");
  EXPECT_EQ(Diff("a\n", ""), "-a");
  EXPECT_EQ(Diff("a\nb\n", "a\nb\n"), "a b");
  EXPECT_EQ(Diff("a\nb", "a\nb\n"), "a b");
  // Braces are many; the lines around them say which ones belong together.
  EXPECT_EQ(Diff("f\n{\nx\n}\ng\n{\ny\n}\n", "g\n{\ny\n}\nh\n{\n}\n"),
            "-f -{ -x -} g { y +} +h +{ }");
  // A loop goes away, its body moves to the left; blank lines are lines.
  EXPECT_EQ(Diff("for {\n  x\n  y\n}\n", "x\ny\n"), "-for { x y -}");
  EXPECT_EQ(Diff("x\n\n", "  x\n"), "  x -");
  // Repeated lines alone have no anchors.
  EXPECT_EQ(Diff("}\n}\n}\n", "}\n}\n"), "} } -}");
}

TEST(DiffLines, RandomTextsComeBack) {
  const uint64_t seed = FuzzSeed();
  SCOPED_TRACE(testing::Message() << "POLYNAO_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int64_t round = FuzzCases(2000); round > 0; --round) {
    const auto text = [&] {
      std::string lines;
      for (uint64_t n = random() % 20; n > 0; --n) StrAppend(&lines, random() % 8, "\n");
      return lines;
    };
    const std::string before = text(), after = text();
    std::string a, b;
    size_t same = 0;
    for (const DiffLine& line : DiffLines(before, after)) {
      if (line.kind != DiffLine::Kind::kAdded) StrAppend(&a, line.text, "\n");
      if (line.kind != DiffLine::Kind::kRemoved) StrAppend(&b, line.text, "\n");
      same += line.kind == DiffLine::Kind::kSame;
    }
    ASSERT_EQ(a, before) << round;
    ASSERT_EQ(b, after) << round;
    if (before == after) ASSERT_EQ(same * 2, before.size()) << round;
  }
}

}  // namespace
}  // namespace polynao::pages
