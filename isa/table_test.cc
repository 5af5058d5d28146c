#include "isa/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace polynao::isa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<TableVariant> MustExpand(std::string_view text) {
  auto rows = ExpandTable(text, "t.nir");
  EXPECT_TRUE(rows.ok()) << rows.status();
  return rows.ok() ? *std::move(rows) : std::vector<TableVariant>();
}

TEST(Table, RowsWithoutVariants) {
  const auto rows = MustExpand(
      "// a comment with func and { brackets\n"
      "@doc(\"} \\\" (\") # another }\n"
      "func one(a: i64) { if (a < 1) { x[0] = 1 } }\n\n"
      "func two() {}\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].family, "one");
  EXPECT_EQ(rows[0].line, 2);
  EXPECT_EQ(rows[0].row, 0);
  EXPECT_THAT(rows[0].text, HasSubstr("\n@doc(\"} \\\" (\")"));
  EXPECT_THAT(rows[0].text, HasSubstr("func instruction(a: i64)"));
  EXPECT_EQ(rows[1].family, "two");
  EXPECT_EQ(rows[1].row, 1);
  EXPECT_EQ(rows[1].line, 5);
  EXPECT_EQ(rows[1].text, "\n\n\n\nfunc instruction() {}");
  EXPECT_THAT(MustExpand(" \n // nothing"), IsEmpty());
}

TEST(Table, VariantsMultiplyAndReplaceWords) {
  const auto rows = MustExpand(
      "@variants(T, f16, f32)\n"
      "@variants((D, S, _SIZE), (nmem, gmem, sizeof(T)), (smem, gmem, 64))\n"
      "@variants((A, _WAIT), (_, 1), (async, 0))\n"
      "@wait(_WAIT) @require(x % _SIZE == 0, T2 > 0)\n"
      "func copy(dst: T[1] @D out, src: T[1] @S) { dst[0] = T(src[0]) // T stays in comments\n "
      "}\n");
  ASSERT_EQ(rows.size(), 8u);
  EXPECT_THAT(rows[0].values, ElementsAre("f16", "nmem", "gmem"));
  EXPECT_THAT(rows[1].values, ElementsAre("f16", "nmem", "gmem", "async"));
  EXPECT_THAT(rows[2].values, ElementsAre("f16", "smem", "gmem"));
  EXPECT_THAT(rows[7].values, ElementsAre("f32", "smem", "gmem", "async"));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(rows[i].code, i);
  EXPECT_THAT(rows[4].requirements, ElementsAre("x % sizeof(f32) == 0", "T2 > 0"));
  EXPECT_THAT(rows[7].text, HasSubstr("@wait(0)"));
  EXPECT_THAT(rows[7].text, HasSubstr("dst: f32[1] @smem out, src: f32[1] @gmem"));
  EXPECT_THAT(rows[7].text, HasSubstr("// T stays"));
  EXPECT_THAT(rows[7].text, Not(HasSubstr("@variants")));
  // Lines stay where they are, for error messages of the parser.
  EXPECT_EQ(rows[0].text.substr(0, rows[0].text.find("@wait")), "\n\n\n");
}

TEST(Table, TheFunctionsNameMayVary) {
  const auto rows = MustExpand(
      "@variants((_NAME, _OP), (add, +), (max, -))\nfunc _NAME(a: i64) { x[0] = a _OP a }");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].family, "max");
  EXPECT_THAT(rows[1].values, IsEmpty());
  EXPECT_THAT(rows[1].text, HasSubstr("func instruction(a: i64) { x[0] = a - a }"));
}

TEST(Table, ErrorsNameFileAndLine) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"\nhello", "t.nir:2: expected an attribute or 'func', found 'hello'"},
      {"@", "expected an attribute or 'func', found '@'"},
      {"@doc(\"a\nfunc x() {}", "t.nir:1: expected '\"'"},
      {"@doc(1\nfunc x() {}", "t.nir:1: expected ')' after @doc"},
      {"func x()", "t.nir:1: expected a function's body"},
      {"func x() {", "t.nir:1: expected a function's body"},
      {"func () {}", "expected a function with a name"},
      {"\n@variants(T)\nfunc x() {}", "t.nir:2: expected @variants(NAME, value, ...)"},
      {"@variants((A, B), (1, 2), (3))\nfunc x() { A B }", "expected 2 values, found 1 in (3)"},
      {"@variants(A, 1, )\nfunc x() { A }", "@variants has an empty value"},
      {"@variants(A, 1)\nfunc x() { B }", "t.nir:1: @variants: the row does not use A"},
  };
  for (const auto& [text, expected] : cases) {
    const auto rows = ExpandTable(text, "t.nir");
    ASSERT_FALSE(rows.ok()) << text;
    EXPECT_THAT(std::string(rows.status().message()), HasSubstr(expected)) << text;
  }
}

TEST(Table, LimitsVariants) {
  std::string values;
  for (int i = 0; i < 16; ++i) values += ", v" + std::to_string(i);
  const std::string row = "func x() { A B }";
  EXPECT_EQ(MustExpand("@variants(A" + values + ")\n@variants(B" + values + ")\n" + row).size(),
            256u);
  const auto more =
      ExpandTable("@variants(A" + values + ", v)\n@variants(B" + values + ")\n" + row, "t.nir");
  EXPECT_THAT(std::string(more.status().message()), HasSubstr("more than 256 variants"));
}

}  // namespace
}  // namespace polynao::isa
