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
