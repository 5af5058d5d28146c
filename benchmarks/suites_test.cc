#include "benchmarks/suites.h"

#include <map>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::benchmarks {
namespace {

std::map<std::string, int> CasesByOperator(const Suite& suite) {
  std::map<std::string, int> counts;
  for (const SuiteCase& c : suite.cases) ++counts[c.op_class + "/" + c.op];
  return counts;
}

TEST(SuitesTest, Tensorize48Has16CasesOfEachClass) {
  const Suite& suite = **FindSuite("tensorize48");
  EXPECT_EQ(suite.cases.size(), 48);
  EXPECT_EQ(
      CasesByOperator(suite),
      (std::map<std::string, int>{{"conv/conv2d", 16}, {"binary/add", 16}, {"unary/relu", 16}}));
}

TEST(SuitesTest, AllHasSubAndMulOnTheShapesOfAdd) {
  const Suite& suite = **FindSuite("tensorize48_all");
  EXPECT_EQ(suite.cases.size(), 80);
  std::map<std::string, std::vector<std::string>> shapes;
  for (const SuiteCase& c : suite.cases) shapes[c.op].push_back(c.shape);
  EXPECT_EQ(shapes["sub"], shapes["add"]);
  EXPECT_EQ(shapes["mul"], shapes["add"]);
  EXPECT_EQ(shapes["relu"], shapes["add"]);
}

TEST(SuitesTest, LayersStandInNoOtherSuite) {
  std::set<std::string> others;
  for (const Suite& suite : Suites()) {
    if (suite.name.starts_with("layers95")) continue;
    for (const SuiteCase& c : suite.cases) others.insert(c.op + c.shape);
  }
  const Suite& suite = **FindSuite("layers95");
  std::set<std::string> names;
  for (const SuiteCase& c : suite.cases) {
    names.insert(c.Name());
    EXPECT_FALSE(others.contains(c.op + c.shape)) << c.Name();
  }
  EXPECT_EQ(names.size(), 95);
  EXPECT_EQ((*FindSuite("layers95_f16"))->cases.size(), 95);
}

// The network has 53 convolutions: the stem, four in the first block of each of the four stages, three in each of the
// other 12 blocks.
TEST(SuitesTest, ResNet50HasItsLayers) {
  const Suite& suite = **FindSuite("resnet50");
  int layers = 0;
  for (const SuiteCase& c : suite.cases) layers += c.op == "conv2d_bn" ? c.count : 0;
  EXPECT_EQ(layers, 1 + 4 * 4 + 12 * 3);
  const auto programs = [&](size_t sequence, size_t i) {
    std::vector<std::string> result;
    for (const SuiteProgram& p : suite.sequences[sequence].programs(suite.cases[i])) {
      result.push_back(p.op + " " + p.shape);
    }
    return result;
  };
  using testing::ElementsAre;
  EXPECT_EQ(suite.cases[4].Name(), "stage1/conv2d_bn/56x56x64,256x1x1x64/residual=1");
  EXPECT_THAT(programs(0, 4), ElementsAre("conv2d_bn 56x56x64,256x1x1x64", "batch_norm 56x56x256"));
  EXPECT_THAT(programs(2, 4), ElementsAre("conv2d_bn 56x56x64,256x1x1x64", "mul 56x56x256,256",
                                          "add 56x56x256,256", "add 56x56x256", "relu 56x56x256"));
  // A stride halves the image; the stem has 7 x 7 windows with 3 zeros on each side.
  EXPECT_THAT(programs(1, 0), ElementsAre("conv2d 224x224x3,64x7x7x3", "batch_norm 112x112x64"));
  EXPECT_THAT(programs(2, 8), ElementsAre("conv2d_bn 56x56x256,512x1x1x256", "mul 28x28x512,512",
                                          "add 28x28x512,512"));
}

TEST(SuitesTest, NamesAreUniqueAndClassesKnown) {
  for (const Suite& suite : Suites()) {
    std::set<std::string> names;
    std::set<std::string> classes;
    for (const ClassFigures& c : suite.classes) classes.insert(c.op_class);
    for (const SuiteCase& c : suite.cases) {
      EXPECT_TRUE(names.insert(c.Name()).second) << c.Name();
      EXPECT_TRUE(classes.contains(c.op_class)) << c.Name();
    }
  }
}

TEST(SuitesTest, UnknownSuite) {
  EXPECT_THAT(FindSuite("tensorize49").status().message(),
              testing::HasSubstr("no suite is named 'tensorize49'; there are: tensorize48, "));
}

}  // namespace
}  // namespace polynao::benchmarks
