#include "benchmarks/lines.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::benchmarks {
namespace {

using ::testing::HasSubstr;

TEST(LinesTest, CountsWhatIsNeitherBlankNorComment) {
  LineCounts counts;
  const absl::Status status = CountLines("a.cc",
                                         "outside();\n"
                                         "  // [tensor-program binary begin]\n"
                                         "one();  // counts\n"
                                         "\n"
                                         "   \n"
                                         "  // a comment\n"
                                         "  two();\n"
                                         "// [another comment] begin\n"
                                         "// [tensor-program binary end]\n"
                                         "outside();\n",
                                         counts);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(counts, (LineCounts{{{"tensor-program", "binary"}, 2}}));
}

TEST(LinesTest, SharedLinesCountForEachClassAndFilesAddUp) {
  LineCounts counts;
  ASSERT_TRUE(CountLines("a.cc",
                         "// [tensor-program binary unary begin]\nshared();\n"
                         "// [tensor-program unary end]\nbinary();\n"
                         "// [tensor-program binary end]\n",
                         counts)
                  .ok());
  ASSERT_TRUE(
      CountLines("b.nasm", "# [library unary begin]\n# plan\n  halt\n# [library unary end]", counts)
          .ok());
  ASSERT_TRUE(
      CountLines("c.nasm", "# [library unary begin]\n  li r1, 0\n# [library unary end]\n", counts)
          .ok());
  EXPECT_EQ(counts, (LineCounts{{{"library", "unary"}, 2},
                                {{"tensor-program", "binary"}, 2},
                                {{"tensor-program", "unary"}, 1}}));
}

TEST(LinesTest, WrongMarks) {
  const auto message = [](std::string_view text) {
    LineCounts counts;
    return std::string(CountLines("a.cc", text, counts).message());
  };
  EXPECT_EQ(message("// [library conv begin]\nx\n"), "a.cc:1: library conv is never closed");
  EXPECT_EQ(message("\n// [library conv end]\n"), "a.cc:2: library conv is not open");
  EXPECT_EQ(message("// [library conv begin]\n// [library conv begin]\n"),
            "a.cc:2: library conv is open since line 1");
  EXPECT_THAT(message("// [library conv]\n"),
              HasSubstr("a.cc:1: expected [library CLASS... begin]"));
  EXPECT_THAT(message("// [library begin]\n"), HasSubstr("a.cc:1: expected"));
  EXPECT_THAT(message("// [library conv begin\n"), HasSubstr("a.cc:1: expected"));
}

TEST(LinesTest, KernelsAreMarked) {
  const absl::StatusOr<LineCounts> counts = CountKernelLines();
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_GT(counts->at({"tensor-program", "binary"}), 10);
  EXPECT_GT(counts->at({"library", "binary"}), 50);
}

}  // namespace
}  // namespace polynao::benchmarks
