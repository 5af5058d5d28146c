// Every pipeline, on every target and under every strategy, against its reference.
#include "kernels/pipelines/pipelines.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/text.h"
#include "compiler/codegen/c/run_c.h"
#include "compiler/codegen/cuda/run_cuda.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/agreement.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/verify.h"
#include "compiler/passes/registry.h"
#include "compiler/poly/gpu.h"
#include "compiler/poly/machine_for_test.h"
#include "compiler/poly/poly.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::kernels {
namespace {

constexpr uint64_t kSeed = 1;

// What is added to the least size of a pipeline: nothing, odd numbers, a row of an image, a column, and more than one tile.
constexpr std::pair<int64_t, int64_t> kSizes[] = {{0, 0}, {1, 2}, {0, 17}, {19, 0}, {38, 43}};

struct Case {
  ir::Function function;
  ir::RandomArguments arguments;
  ir::RandomArguments expected;
};

std::vector<Case> CasesOf(const Pipeline& pipeline) {
  std::vector<Case> cases;
  for (const auto& [more_rows, more_cols] : kSizes) {
    auto function = PipelineFunction(pipeline, pipeline.least_rows + more_rows,
                                     pipeline.least_cols + more_cols);
    EXPECT_TRUE(function.ok()) << function.status();
    auto arguments = PipelineArguments(pipeline, *function, kSeed);
    EXPECT_TRUE(arguments.ok()) << arguments.status();
    const ir::RandomArguments expected(*arguments);
    pipeline.reference(expected.arguments());
    function->name = StrCat(pipeline.name, cases.size());  // one file may hold them all
    cases.push_back({*std::move(function), *std::move(arguments), expected});
  }
  return cases;
}

class PipelinesTest : public testing::TestWithParam<std::string> {
 protected:
  const Pipeline& pipeline() const { return *FindPipeline(GetParam()); }

  void ExpectAgrees(const Case& c, const ir::RandomArguments& actual) const {
    EXPECT_EQ(ir::FindDisagreement(c.function, actual, c.expected, pipeline().tolerance), "");
  }
  // By strategy, on a machine so small that small images have tiles.
  void ExpectStrategyAgrees(const std::string& strategy) const {
    for (const Case& c : CasesOf(pipeline())) {
      ir::Function function = c.function;
      poly::ScheduleOptions options;
      options.strategy = strategy;
      options.tile = {{8}};
      options.machine = poly::SmallMachine();
      const auto report = poly::Schedule(function, options);
      ASSERT_TRUE(report.ok()) << report.status();
      ASSERT_TRUE(report->internal_errors.empty()) << report->internal_errors[0];
      EXPECT_TRUE(report->changed) << report->ToString();
      SCOPED_TRACE(report->ToString());
      ASSERT_EQ(ir::Verify(function), absl::OkStatus());
      const ir::RandomArguments actual(c.arguments);
      const auto compiled = codegen::Compile(function);
      ASSERT_TRUE(compiled.ok()) << compiled.status();
      ASSERT_EQ((*compiled)->Run(actual.arguments()), absl::OkStatus());
      ExpectAgrees(c, actual);
    }
  }
};

// Also that no stage reads what no stage has stored, and no index leaves its buffer.
TEST_P(PipelinesTest, InterpreterAgrees) {
  for (const Case& c : CasesOf(pipeline())) {
    const ir::RandomArguments actual(c.arguments);
    ASSERT_EQ(ir::Interpret(c.function, actual.arguments()), absl::OkStatus());
    ExpectAgrees(c, actual);
  }
}

// Each element of the output is stored, so that a wrong size of either side shows: two references that begin with different
// values end with the same.
TEST_P(PipelinesTest, ReferenceStoresAllOfTheOutput) {
  for (const Case& c : CasesOf(pipeline())) {
    const ir::RandomArguments other(c.arguments);
    for (uint8_t& byte : other.arguments().back().tensor->bytes) byte ^= 0xff;
    EXPECT_NE(ir::FindDisagreement(c.function, other, c.expected, pipeline().tolerance), "");
    pipeline().reference(other.arguments());
    EXPECT_EQ(ir::FindDisagreement(c.function, other, c.expected, 0), "");
  }
}

TEST_P(PipelinesTest, CpuAgrees) {
  for (const Case& c : CasesOf(pipeline())) {
    const ir::RandomArguments actual(c.arguments);
    const auto compiled = codegen::Compile(c.function);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    ASSERT_EQ((*compiled)->Run(actual.arguments()), absl::OkStatus());
    ExpectAgrees(c, actual);
  }
}

TEST_P(PipelinesTest, SmartAgrees) { ExpectStrategyAgrees("smart"); }
TEST_P(PipelinesTest, AutoAgrees) { ExpectStrategyAgrees("auto"); }

TEST_P(PipelinesTest, CAgrees) {
  const std::vector<Case> cases = CasesOf(pipeline());
  std::vector<ir::Function> functions;
  for (const Case& c : cases) functions.push_back(c.function);
  const auto compiled = codegen::CompiledC::Create(functions, {.optimization_level = 1});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (size_t i = 0; i < cases.size(); ++i) {
    const ir::RandomArguments actual(cases[i].arguments);
    ASSERT_EQ((*compiled)->Run(i, actual.arguments()), absl::OkStatus());
    ExpectAgrees(cases[i], actual);
  }
}

// Mapped to blocks and threads, run by the shim.
TEST_P(PipelinesTest, CudaAgrees) {
  const std::vector<Case> cases = CasesOf(pipeline());
  const Target target{.name = "cuda"};
  PipelineOptions passes;
  passes.skip = {"flatten"};  // the arguments have the shapes of the function as it was
  std::vector<ir::Function> functions;
  for (const Case& c : cases) {
    ir::Function function = c.function;
    const auto report = poly::ScheduleForGpu(function);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->changed) << report->ToString();
    ASSERT_EQ(RunPasses(function, *PipelineFor(target), target, passes), absl::OkStatus());
    functions.push_back(std::move(function));
  }
  const auto compiled = codegen::ShimmedCuda::Create(functions, 0);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (size_t i = 0; i < cases.size(); ++i) {
    const ir::RandomArguments actual(cases[i].arguments);
    ASSERT_EQ((*compiled)->Run(i, actual.arguments(), i % 3), absl::OkStatus());
    ExpectAgrees(cases[i], actual);
  }
}

TEST_P(PipelinesTest, RefusesSizes) {
  const Pipeline& p = pipeline();
  EXPECT_EQ(PipelineFunction(p, p.least_rows - 1, p.least_cols).status().message(),
            StrCat(p.name, ": expected at least ", p.least_rows, "x", p.least_cols,
                   " pixels, found ", p.least_rows - 1, "x", p.least_cols));
  EXPECT_EQ(
      PipelineFunction(p, int64_t{1} << 40, int64_t{1} << 40).status().message(),
      StrCat(p.name, ": expected at most 134217728 pixels, found 1099511627776x1099511627776"));
  EXPECT_FALSE(PipelineFunction(p, p.least_rows, -1).ok());
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const Pipeline& pipeline : Pipelines()) names.emplace_back(pipeline.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, PipelinesTest, testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

TEST(PipelinesTableTest, IsInOrder) {
  const std::vector<std::string> names = Names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(FindPipeline("haris"), nullptr);
}

}  // namespace
}  // namespace polynao::kernels
