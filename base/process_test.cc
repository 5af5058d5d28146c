#include "base/process.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ProcessTest, ProgramsAndTheirOutput) {
  const std::optional<std::string> sh = FindOnPath("sh");
  ASSERT_TRUE(sh.has_value());
  EXPECT_EQ(*RunProgram({*sh, "-c", "echo out; echo err >&2"}), "out\nerr\n");
  // More than a pipe holds.
  EXPECT_EQ(RunProgram({*sh, "-c", "head -c 300000 /dev/zero"})->size(), 300000);
  EXPECT_THAT(std::string(RunProgram({*sh, "-c", "echo why; exit 3"}).status().message()),
              AllOf(HasSubstr("sh failed:\n"), HasSubstr("why")));
  EXPECT_THAT(std::string(RunProgram({"/no/such/program"}).status().message()),
              HasSubstr("cannot start /no/such/program: "));
  EXPECT_EQ(FindOnPath("no-such-program"), std::nullopt);
}

TEST(ProcessTest, TemporaryDirectoriesGo) {
  std::string file;
  {
    const auto directory = TemporaryDirectory::Create("process-test");
    ASSERT_TRUE(directory.ok()) << directory.status();
    file = directory->File("x");
    std::ofstream(file) << "x";
    EXPECT_TRUE(std::filesystem::exists(file));
  }
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace polynao
