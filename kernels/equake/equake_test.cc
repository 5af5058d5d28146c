// Both forms of the time step, as written and under every strategy, on every target for processors, against plain
// loops.
#include "kernels/equake/equake.h"

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "base/text.h"
#include "compiler/codegen/c/run_c.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/agreement.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/arrange/machine_for_test.h"
#include "compiler/poly/poly.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::kernels {
namespace {

constexpr int64_t kNodes[] = {0, 1, 2, 7, 29, 211};

struct Case {
  ir::Function function;
  ir::RandomArguments arguments, expected;

  std::string Disagreement(const ir::RandomArguments& actual) const {
    return ir::FindDisagreement(function, actual, expected, FindEquake(function.name)->tolerance);
  }
};

Case MakeCase(const std::string& name, int64_t nodes) {
  const Equake& equake = *FindEquake(name);
  auto function = EquakeFunction(equake, nodes);
  EXPECT_TRUE(function.ok()) << function.status();
  auto arguments = EquakeArguments(equake, *function, nodes, /*seed=*/1);
  EXPECT_TRUE(arguments.ok()) << arguments.status();
  const ir::RandomArguments expected(*arguments);
  equake.reference(expected.arguments());
  return {*std::move(function), *std::move(arguments), expected};
}

// Rows begin with the diagonal; other columns are in order, and an edge is there from both sides.
TEST(EquakeMeshTest, IsSymmetric) {
  for (const int64_t nodes : kNodes) {
    const EquakeMesh half = MakeEquakeMesh(nodes, true), whole = MakeEquakeMesh(nodes, false);
    EXPECT_EQ(2 * half.column.size(), whole.column.size() + static_cast<size_t>(nodes));
    for (const EquakeMesh* mesh : {&half, &whole}) {
      ASSERT_EQ(mesh->first.size(), static_cast<size_t>(nodes) + 1);
      ASSERT_EQ(mesh->first.front(), 0);
      ASSERT_EQ(mesh->first.back(), mesh->column.size());
      for (size_t i = 0; i + 1 < mesh->first.size(); ++i) {
        const auto begin = mesh->column.begin() + mesh->first[i],
                   end = mesh->column.begin() + mesh->first[i + 1];
        ASSERT_LT(begin, end);
        EXPECT_EQ(*begin, i);
        EXPECT_TRUE(std::is_sorted(begin + 1, end));
        EXPECT_EQ(std::adjacent_find(begin, end), end);
        for (auto j = begin + 1; j < end; ++j) {
          ASSERT_LT(*j, nodes);
          if (mesh == &half) {
            EXPECT_GT(*j, i);
          } else {
            EXPECT_TRUE(std::count(whole.column.begin() + whole.first[static_cast<size_t>(*j)],
                                   whole.column.begin() + whole.first[static_cast<size_t>(*j) + 1],
                                   static_cast<int32_t>(i)) == 1);
          }
        }
      }
    }
  }
}

// As many neighbours as nodes of tetrahedra have: 13.3 in the meshes whose numbers of nodes these are.
TEST(EquakeMeshTest, HasTheDensityOfAMeshOfTetrahedra) {
  for (const auto& [name, nodes] : {kEquakeSizes[0], kEquakeSizes[1]}) {
    const auto blocks = static_cast<double>(MakeEquakeMesh(nodes, false).column.size());
    EXPECT_GT(blocks / static_cast<double>(nodes), 13.5) << name;
    EXPECT_LT(blocks / static_cast<double>(nodes), 15) << name;
  }
}

TEST(EquakeTest, TellsWhatIsWrong) {
  const Equake& equake = *FindEquake("equake");
  EXPECT_EQ(FindEquake("quake"), nullptr);
  EXPECT_EQ(*ParseEquakeNodes(equake, ""), 7294);
  EXPECT_EQ(*ParseEquakeNodes(equake, "ref"), 378747);
  EXPECT_EQ(*ParseEquakeNodes(equake, "12"), 12);
  EXPECT_EQ(ParseEquakeNodes(equake, "3x4").status().message(),
            "equake: --shape: expected test, train, ref or a number of nodes, found '3x4'");
  EXPECT_EQ(EquakeFunction(equake, -1).status().message(),
            "equake: expected 0 to 4194304 nodes, found -1");
  EXPECT_FALSE(EquakeFunction(equake, int64_t{1} << 40).ok());
}

class EquakeTest : public testing::TestWithParam<std::string> {};

// The reference stores every element of the outputs, and the comparison can fail.
TEST_P(EquakeTest, InterpreterAgrees) {
  for (const int64_t nodes : kNodes) {
    const Case c = MakeCase(GetParam(), nodes);
    const ir::RandomArguments actual(c.arguments);
    if (nodes > 0) EXPECT_NE(c.Disagreement(actual), "");
    ASSERT_EQ(ir::Interpret(c.function, actual.arguments()), absl::OkStatus());
    EXPECT_EQ(c.Disagreement(actual), "") << nodes;
  }
}

TEST_P(EquakeTest, CAgrees) {
  std::vector<Case> cases;
  std::vector<ir::Function> functions;
  for (const int64_t nodes : kNodes) {
    cases.push_back(MakeCase(GetParam(), nodes));
    functions.push_back(cases.back().function);
    functions.back().name += StrCat(nodes);
  }
  const auto compiled = codegen::CompiledC::Create(functions, {.optimization_level = 1});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (size_t i = 0; i < cases.size(); ++i) {
    const ir::RandomArguments actual(cases[i].arguments);
    ASSERT_EQ((*compiled)->Run(i, actual.arguments()), absl::OkStatus());
    EXPECT_EQ(cases[i].Disagreement(actual), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, EquakeTest, testing::Values("equake", "equake_whole"),
                         [](const auto& info) { return info.param; });

using Parameter = std::tuple<std::string, std::string>;  // form, strategy
class EquakeStrategyTest : public testing::TestWithParam<Parameter> {};

TEST_P(EquakeStrategyTest, Agrees) {
  const auto& [form, strategy] = GetParam();
  for (const int64_t nodes : kNodes) {
    const Case c = MakeCase(form, nodes);
    ir::Function function = c.function;
    poly::ScheduleOptions options;
    options.strategy = strategy;
    options.tile = {{8}};
    options.machine = poly::SmallMachine();
    const auto report = poly::Schedule(function, options);
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_TRUE(report->internal_errors.empty()) << report->internal_errors[0];
    EXPECT_EQ(report->changed, nodes > 0) << report->ToString();
    ASSERT_EQ(ir::Verify(function), absl::OkStatus());
    const ir::RandomArguments interpreted(c.arguments), actual(c.arguments);
    ASSERT_EQ(ir::Interpret(function, interpreted.arguments()), absl::OkStatus());
    EXPECT_EQ(c.Disagreement(interpreted), "") << nodes << report->ToString();
    const auto compiled = codegen::Compile(function);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    ASSERT_EQ((*compiled)->Run(actual.arguments()), absl::OkStatus());
    EXPECT_EQ(c.Disagreement(actual), "") << nodes << report->ToString();
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, EquakeStrategyTest,
    testing::Combine(testing::Values("equake", "equake_whole"),
                     testing::Values("original", "min", "smart", "max", "auto", "fuse")),
    [](const auto& info) { return StrCat(std::get<0>(info.param), "_", std::get<1>(info.param)); });

// The whole step runs in one loop over the nodes, but for the zeros that half a matrix begins with; that of the whole
// matrix is parallel.
TEST(EquakeFusionTest, OneLoopOverTheNodes) {
  for (const Equake& equake : Equakes()) {
    ir::Function function = *EquakeFunction(equake, 30'169);
    poly::ScheduleOptions options;
    options.strategy = "auto";
    const auto report = poly::Schedule(function, options);
    ASSERT_TRUE(report.ok()) << report.status();
    const std::string text = report->ToString();
    EXPECT_THAT(text, testing::HasSubstr("nests share their outermost loop"));
    EXPECT_THAT(text, testing::HasSubstr(equake.is_symmetric ? "a loop around others\n"
                                                             : "a loop around others, parallel\n"));
    int loops = 0;  // over nodes, outermost
    ir::ForEachStmt(function.body, [&](ir::Stmt s) {
      loops += s.Is(ir::StmtKind::kFor);
      return !s.Is(ir::StmtKind::kFor);
    });
    EXPECT_EQ(loops, equake.is_symmetric ? 2 : 1) << text;
  }
}

}  // namespace
}  // namespace polynao::kernels
