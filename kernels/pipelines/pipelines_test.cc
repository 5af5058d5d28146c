// Every pipeline, as it is written, on every target against its reference.
#include "kernels/pipelines/pipelines.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/text.h"
#include "compiler/codegen/c/run_c.h"
#include "compiler/codegen/cuda/run_cuda.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/agreement.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"
#include "gtest/gtest.h"
#include "kernels/pipelines/case_for_test.h"

namespace polynao::kernels {
namespace {

// What is added to a pipeline's least size: nothing, odd numbers, columns alone, rows alone, and more than the
// stencils' reach.
constexpr std::pair<int64_t, int64_t> kMore[] = {{0, 0}, {1, 2}, {0, 17}, {19, 0}, {38, 43}};
// Those that are compiled, which takes seconds where there are many stages.
constexpr std::pair<int64_t, int64_t> kMoreCompiled[] = {{1, 2}, {38, 43}};

class PipelinesTest : public testing::TestWithParam<std::string> {
 protected:
  const Pipeline& pipeline() const { return *FindPipeline(GetParam()); }

  std::vector<PipelineCase> Cases() const { return Cases(kMore); }
  std::vector<PipelineCase> CompiledCases() const { return Cases(kMoreCompiled); }
  std::vector<PipelineCase> Cases(absl::Span<const std::pair<int64_t, int64_t>> all) const {
    std::vector<PipelineCase> cases;
    for (const auto& [rows, cols] : all) {
      cases.push_back(MakePipelineCase(pipeline(), rows, cols));
      cases.back().function.name = StrCat(pipeline().name, cases.size());  // for one file
    }
    return cases;
  }
  static std::vector<ir::Function> FunctionsOf(const std::vector<PipelineCase>& cases) {
    std::vector<ir::Function> functions;
    for (const PipelineCase& c : cases) functions.push_back(c.function);
    return functions;
  }
};

// The interpreter also stops where a stage reads what no stage has stored, or an index leaves its buffer.
TEST_P(PipelinesTest, InterpreterAgrees) {
  for (const PipelineCase& c : Cases()) {
    const ir::RandomArguments actual(c.arguments);
    ASSERT_EQ(ir::Interpret(c.function, actual.arguments()), absl::OkStatus());
    EXPECT_EQ(c.Disagreement(actual), "");
  }
}

// The reference stores every element of the output: what was there before makes no difference.
TEST_P(PipelinesTest, ReferenceStoresAllOfTheOutput) {
  for (const PipelineCase& c : Cases()) {
    const ir::RandomArguments other(c.arguments);
    for (uint8_t& byte : other.arguments().back().tensor->bytes) byte ^= 0xff;
    EXPECT_NE(c.Disagreement(other), "");
    c.pipeline->reference(other.arguments());
    EXPECT_EQ(ir::FindDisagreement(c.function, other, c.expected, 0), "");
  }
}

TEST_P(PipelinesTest, CpuAgrees) {
  for (const PipelineCase& c : CompiledCases()) {
    const ir::RandomArguments actual(c.arguments);
    const auto compiled = codegen::Compile(c.function);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    ASSERT_EQ((*compiled)->Run(actual.arguments()), absl::OkStatus());
    EXPECT_EQ(c.Disagreement(actual), "");
  }
}

TEST_P(PipelinesTest, CAgrees) {
  const std::vector<PipelineCase> cases = CompiledCases();
  const auto compiled = codegen::CompiledC::Create(FunctionsOf(cases), {.optimization_level = 1});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (size_t i = 0; i < cases.size(); ++i) {
    const ir::RandomArguments actual(cases[i].arguments);
    ASSERT_EQ((*compiled)->Run(i, actual.arguments()), absl::OkStatus());
    EXPECT_EQ(cases[i].Disagreement(actual), "");
  }
}

TEST_P(PipelinesTest, CudaAgrees) {
  const std::vector<PipelineCase> cases = CompiledCases();
  const auto compiled = codegen::ShimmedCuda::Create(FunctionsOf(cases));
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (size_t i = 0; i < cases.size(); ++i) {
    const ir::RandomArguments actual(cases[i].arguments);
    ASSERT_EQ((*compiled)->Run(i, actual.arguments()), absl::OkStatus());
    EXPECT_EQ(cases[i].Disagreement(actual), "");
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

INSTANTIATE_TEST_SUITE_P(All, PipelinesTest, testing::ValuesIn(PipelineNames()),
                         [](const auto& info) { return info.param; });

TEST(PipelinesTableTest, IsInOrder) {
  const std::vector<std::string> names = PipelineNames();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(FindPipeline("haris"), nullptr);
}

}  // namespace
}  // namespace polynao::kernels
