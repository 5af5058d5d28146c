#include "kernels/topi_cases/cases.h"

#include <map>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/operators.h"

namespace polynao::kernels {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(TopiCasesTest, AllOperatorsWithAllTheirCases) {
  std::map<std::string, int> counts;
  for (const TopiCase& c : TopiCases()) {
    EXPECT_EQ(c.id, ++counts[c.op]) << c.op;
    EXPECT_FALSE(c.functions.empty()) << c.op << " " << c.id;
    for (const OperatorCase& f : c.functions) EXPECT_EQ(f.op, c.op);
  }
  const std::map<std::string, int> expected = {{"batch_matmul", 6},
                                               {"batch_to_space_nd", 4},
                                               {"clip", 3},
                                               {"conv1d", 22},
                                               {"conv1d_transpose_ncw", 18},
                                               {"conv2d_hwcn", 9},
                                               {"conv2d_int8", 78},
                                               {"conv2d_nchw", 86},
                                               {"conv2d_nhwc", 13},
                                               {"conv2d_nhwc_winograd", 12},
                                               {"conv2d_transpose_nchw", 13},
                                               {"conv2d_winograd", 27},
                                               {"conv3d_ncdhw", 18},
                                               {"conv3d_ndhwc", 11},
                                               {"conv3d_transpose_ncdhw", 12},
                                               {"conv3d_winograd", 17},
                                               {"deformable_conv2d", 3},
                                               {"dense", 12},
                                               {"depthwise_conv2d", 14},
                                               {"depthwise_conv2d_back_input", 16},
                                               {"depthwise_conv2d_back_weight", 16},
                                               {"group_conv2d", 13},
                                               {"group_conv2d_int8", 13},
                                               {"image", 26},
                                               {"reduce", 16},
                                               {"relu", 3},
                                               {"upsampling", 30}};
  EXPECT_EQ(counts, expected);
}

TEST(TopiCasesTest, ACaseIsWhatTheLineSays) {
  const auto found = FindTopiCase("conv2d_hwcn", 3);
  ASSERT_TRUE(found.ok()) << found.status();
  const TopiCase& c = **found;
  ASSERT_EQ(c.functions.size(), 3u);  // none, bias, bias_relu
  EXPECT_EQ(ShapesText(c.functions[1]), "16x16x128x4,5x5x128x128");
  EXPECT_EQ(c.functions[1].dtype, ir::Type::kF32);
  EXPECT_EQ(c.functions[1].attributes.at("stride_h"), "2");
  EXPECT_EQ(c.functions[1].attributes.at("epilogue"), "bias");
  const auto reduce = FindTopiCase("reduce", 7);
  ASSERT_TRUE(reduce.ok());
  EXPECT_EQ((*reduce)->functions[0].attributes.at("axes"), "0:2");
  const auto clip = FindTopiCase("clip", 1);
  ASSERT_TRUE(clip.ok());
  EXPECT_EQ((*clip)->functions[0].scalar, 127);
}

TEST(TopiCasesTest, WhatIsNotThereSaysWhatThereIs) {
  EXPECT_THAT(std::string(FindTopiCase("clip", 4).status().message()),
              HasSubstr("operator clip has no case 4: expected one from 1 to 3"));
  EXPECT_THAT(std::string(FindTopiCase("add", 1).status().message()),
              HasSubstr("operator 'add' has no cases; these have some: batch_matmul, "));
  EXPECT_EQ(FindTopiCase("add", 1).status().code(), absl::StatusCode::kNotFound);
}

constexpr char kLine[] =
    R"({"op":"dense","id":1,"params":{"dtype":"float32","epilogues":["relu"]},)"
    R"("shapes":{"data":[2,3],"weight":[5,3],"out":[2,5]}})";

TEST(TopiCasesTest, MessagesNameTheLine) {
  const auto parsed = ParseTopiCases(StrCat(kLine, "\n\n", kLine, "\n"), "t");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->size(), 2u);
  const auto error = [](std::string from, std::string to) {
    std::string line = kLine;
    const size_t at = line.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    line.replace(at, from.size(), to);
    return std::string(ParseTopiCases(StrCat(kLine, "\n", line), "t").status().message());
  };
  EXPECT_THAT(error("{\"op\"", "[\"op\""), StartsWith("t:2: expected a JSON object"));
  EXPECT_THAT(error("\"op\"", "\"up\""), StartsWith("t:2: 'op': expected an operator's name"));
  EXPECT_THAT(error("dense", "densest"), StartsWith("t:2: no operator is named 'densest'"));
  EXPECT_THAT(error("\"id\":1", "\"id\":\"1\""), StartsWith("t:2: 'id': expected a whole number"));
  EXPECT_THAT(error("float32", "float3"), StartsWith("t:2: 'dtype': expected a type's name"));
  EXPECT_THAT(error("[2,3]", "[2,3.5]"), HasSubstr("expected whole numbers, found 3.5"));
  EXPECT_THAT(error("\"weight\"", "\"w\""), HasSubstr("'weight': expected a list of numbers"));
  EXPECT_THAT(error("[2,5]", "[2,4]"), HasSubstr("shape 'out': expected 2x5, found 2x4"));
  EXPECT_THAT(error("[5,3]", "[5,4]"), HasSubstr("expected weights of as many elements"));
  EXPECT_THAT(error("\"relu\"", "\"rely\""), HasSubstr("attribute epilogue: expected one of"));
  EXPECT_THAT(error("[\"relu\"]", "[]"), HasSubstr("'epilogues': expected a word or more"));
}

// Lines of the table with characters and numbers changed: an error or a case, never a crash.
TEST(TopiCasesTest, ChangedLinesAreErrorsOrCases) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(TopiText()), '\n')) {
    if (!line.empty()) lines.emplace_back(line);
  }
  constexpr std::string_view kCharacters = "0123456789-.,:[]{}\"eax";
  int errors = 0;
  constexpr int kTries = 2000;
  for (int i = 0; i < kTries; ++i) {
    std::string line = lines[random() % lines.size()];
    for (uint64_t change = random() % 3 + 1; change > 0; --change) {
      const size_t at = random() % line.size();
      switch (random() % 3) {
        case 0:
          line[at] = kCharacters[random() % kCharacters.size()];
          break;
        case 1:
          line.erase(at, random() % 4 + 1);
          break;
        default:
          line.insert(at, 1, kCharacters[random() % kCharacters.size()]);
      }
    }
    const auto parsed = ParseTopiCases(line, "t");
    if (parsed.ok()) continue;
    ++errors;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(parsed.status().message()), StartsWith("t:")) << line;
  }
  EXPECT_GT(errors, kTries / 10);
}

}  // namespace
}  // namespace polynao::kernels
