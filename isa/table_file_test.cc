#include "isa/table_file.h"

#include "base/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/instructions_text.h"

namespace polynao::isa {
namespace {

using ::testing::HasSubstr;

constexpr char kRow[] = R"(
@doc("dst = a * lhs + rhs.")
@opcode(110)
@variants(T, f16, f32)
@unit(vector)
@require(count % 64 == 0)
@cost(vector.start + (count * sizeof(T) + vector.bytes - 1) / vector.bytes)
func axpy(dst: T[count] @nmem out, lhs: T[count] @nmem in, rhs: T[count] @nmem in, a: T, count: i64) {
  for (i: i64, 0, count) { dst[i] = a * lhs[i] + rhs[i] }
}
)";

std::string Written(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  EXPECT_TRUE(WriteFile(path, text).ok());
  return path;
}

TEST(LoadTableFile, AddsRowsOrStandsAlone) {
  const size_t built_in = DianNao().instructions().size();
  const auto more = LoadTableFile(Written("more.nir", kRow));
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_EQ((*more)->instructions().size(), built_in + 2);
  EXPECT_NE((*more)->Find("axpy.f32"), nullptr);
  // No rows: the built-in table.
  const auto none = LoadTableFile(Written("none.nir", "// nothing\n"));
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ((*none)->instructions().size(), built_in);
  // A copy with a row more; the same text as the built-in one.
  const auto copy = LoadTableFile(Written("copy.nir", std::string(InstructionsText()) + kRow));
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ((*copy)->instructions().size(), built_in + 2);
}

TEST(LoadTableFile, Errors) {
  EXPECT_THAT(std::string(LoadTableFile("missing.nir").status().message()),
              HasSubstr("missing.nir: can not be read"));
  EXPECT_THAT(std::string(LoadTableFile(Written("bad.nir", "func f() {")).status().message()),
              HasSubstr("bad.nir:"));
  EXPECT_THAT(
      std::string(LoadTableFile(Written("twice.nir", std::string(kRow) + kRow)).status().message()),
      HasSubstr("opcode 110"));
}

TEST(TableName, HasNoFolder) {
  EXPECT_EQ(TableName("a/b/with.nir"), "with");
  EXPECT_EQ(TableName("with"), "with");
}

}  // namespace
}  // namespace polynao::isa
