#include "isa/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace polynao::isa {
namespace {

using ::testing::HasSubstr;

TEST(Reference, PageInTheRepositoryIsUpToDate) {
  std::ifstream file("docs/isa.md");
  ASSERT_TRUE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  // Not EXPECT_EQ: the page is long, and a difference is no news beyond this.
  EXPECT_TRUE(text.str() == ReferencePage(DianNao()))
      << "docs/isa.md is not what isa/instructions.nir gives; refresh it with\n"
         "  bazel run //tools:isa_doc -- \"$PWD/docs/isa.md\"";
}

TEST(Reference, ShowsWhatARowSays) {
  const auto set = InstructionSet::Load({{"t.nir", R"(
@doc("dst = 2 * src.") @opcode(9) @variants(T, f16, f32) @unit(vector) @require(n % 64 == 0)
@cost(vector.start + n)
func twice(dst: T[n] @nmem out, src: T[n] @nmem in, n: i64) {
  for (i: i64, 0, n) { dst[i] = src[i] * T(2) }
})"}});
  ASSERT_TRUE(set.ok()) << set.status();
  const std::string page = ReferencePage(**set);
  for (const char* part :
       {"2 instructions in 1 rows", "### twice", "dst = 2 * src.", "`twice.{f16, f32}`",
        "- Unit: vector\n", "opcode 9, variant 0 to 1,", "- Requires: `n % 64 == 0`",
        "`vector.start + n`", "Element by element", "Shown for `twice.f16`",
        "| dst | 16..21 | register with an address of f16 in nmem, written |",
        "| n | 28..33 | register with i64 |"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
}

}  // namespace
}  // namespace polynao::isa
