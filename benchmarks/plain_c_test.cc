#include "benchmarks/plain_c.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "cases/executable.h"
#include "compiler/codegen/c/c_compiler.h"
#include "compiler/ir/agreement.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/pipelines/pipelines.h"
#include "kernels/polybench/polybench.h"

namespace polynao::benchmarks {
namespace {

using ::testing::HasSubstr;

ir::IntValues Values(const ir::Function& function, int64_t value) {
  ir::IntValues values;
  for (const ir::Param& param : function.params) {
    if (param.var && ir::IsInt(param.var.type())) values[param.var] = value;
  }
  return values;
}

std::string Plain(const std::string& text, int64_t n = 10) {
  const ir::Function function = *ir::ParseFunction(text);
  absl::StatusOr<std::string> c = PlainC(function, Values(function, n));
  return c.ok() ? *c : std::string(c.status().message());
}

TEST(PlainCTest, LooksLikeWrittenByHand) {
  const std::string c = Plain(R"(
func f(A: f64[n, n + 1], i.x: f32[n] in, n: i32, alpha: f64) {
  for (i, 1, n - 2) {
    for (j, i + 1, n - 1 - i) { A[i, j] = alpha * A[i - 1, j] + 0.5 }
  }
})");
  EXPECT_THAT(
      c, HasSubstr("void f(double A[restrict 10][11], float i_x[restrict 10], double alpha) {\n"
                   "  for (int i = 1; i < 9; ++i) {\n"
                   "    for (int j = (i + 1); j < 10; ++j) {\n"
                   "      A[i][j] = ((alpha * A[(i - 1)][j]) + 0.5);\n"
                   "    }\n"
                   "  }\n"
                   "}\n"));
}

TEST(PlainCTest, SaysWhatItDoesNotWrite) {
  EXPECT_THAT(Plain("func f(A: f16[n], n: i32) { A[0] = 1.0 }"),
              HasSubstr("function 'f' has values of f16"));
  EXPECT_THAT(Plain("func f(A: i32[n], n: i32) { A[0] = A[1] / 3 }"), HasSubstr("A[1] / 3"));
  EXPECT_THAT(Plain("func f(A: i32[n], n: i32) { A[0] = A[1] / A[2] }"), HasSubstr("A[1] / A[2]"));
  EXPECT_THAT(
      Plain("@may_alias(\"A\", \"B\") func f(A: f32[n], B: f32[n], n: i32) { A[0] = B[0] }"),
      HasSubstr("buffers that overlap"));
  const ir::Function function = *ir::ParseFunction("func f(A: f32[n], n: i32) { A[0] = 1.0 }");
  EXPECT_EQ(PlainC(function, {}).status().message(), "function 'f': 'n' has no value");
}

TEST(PlainCTest, RoundsDownWhatItDividesByPowersOfTwo) {
  EXPECT_THAT(Plain("func f(A: i32[n], n: i32) { A[0] = A[1] / 8 + A[2] % 8 + (A[3] >> 8) }"),
              HasSubstr("A[0] = (((A[1] >> 3) + (A[2] & 7)) + (A[3] >> 8));"));
}

TEST(PlainCTest, LargeAllocationsAreStatic) {
  const std::string text =
      "func f(A: f32[n], n: i32) { allocate B: f32[n, n] { B[0, 0] = A[0] A[1] = B[0, 0] } }";
  EXPECT_THAT(Plain(text, 1000), HasSubstr("    static float B[1000][1000];\n"));
  EXPECT_THAT(Plain(text, 10), HasSubstr("    float B[10][10];\n"));
}

TEST(PlainCTest, OutermostLoopsAreParallel) {
  const ir::Function function = *ir::ParseFunction(
      "func f(A: f32[9]) { for (i, 0, 9) { for (j, 0, 2) { A[i] = 1.0 } } for (i, 0, 8) { A[i] = "
      "2.0 } }");
  const std::string c = *PlainC(function, {}, {.threads = 2});
  EXPECT_THAT(c, HasSubstr("  #pragma omp parallel for num_threads(2)\n"
                           "  for (int i = 0; i < 9; ++i) {\n"
                           "    for (int j"));
  EXPECT_THAT(c, HasSubstr("  #pragma omp parallel for num_threads(2)\n"
                           "  for (int i = 0; i < 8; ++i) {\n"));
}

// The rows to which a row adds are data: such a loop runs in order. It did run in parallel once, and lost sums.
TEST(PlainCTest, LoopsThatScatterRunInOrder) {
  const ir::Function function = *ir::ParseFunction(
      "func f(A: f32[9], to: i32[9] in, B: f32[9] out, S: f32[]) {\n"
      "  for (i, 0, 9) { let j = to[i] A[j] = A[j] + 1.0 }\n"
      "  for (i, 0, 8) { A[i + 1] = A[i] }\n"
      "  for (i, 0, 7) { S[] = S[] + A[i] }\n"
      "  for (i, 0, 6) { B[i] = A[to[i]] }\n"
      "}");
  const std::string c = *PlainC(function, {}, {.threads = 2});
  EXPECT_THAT(c, HasSubstr("  #pragma omp parallel for num_threads(2)\n"
                           "  for (int i = 0; i < 6; ++i) {\n"));
  EXPECT_EQ(c.find("#pragma"), c.rfind("#pragma"));
}

// Image pipelines are compared on several threads: all of their outermost loops but those that count into a histogram
// are parallel.
TEST(PlainCTest, LoopsOfPipelinesAreParallel) {
  for (const kernels::Pipeline& pipeline : kernels::Pipelines()) {
    const ir::Function function = *kernels::PipelineFunction(pipeline, 512, 512);
    const absl::StatusOr<std::string> c = PlainC(function, {}, {.threads = 2});
    if (!c.ok()) continue;
    int outermost = 0, pragmas = 0;
    std::vector<bool> blocks;  // that are open: of loops or not
    for (const absl::string_view line : absl::StrSplit(*c, '\n')) {
      const absl::string_view text = absl::StripLeadingAsciiWhitespace(line);
      const bool is_loop = absl::StartsWith(text, "for (");
      const bool in_loop = std::find(blocks.begin(), blocks.end(), true) != blocks.end();
      pragmas += absl::StartsWith(text, "#pragma omp");
      outermost += is_loop && !in_loop;
      if (absl::StartsWith(text, "}")) blocks.pop_back();
      if (absl::EndsWith(text, "{")) blocks.push_back(is_loop);
    }
    EXPECT_EQ(outermost - pragmas, pipeline.name == "bilateral_grid" ? 1 : 0) << pipeline.name;
  }
}

// All kernels as one C file compute what their references do.
TEST(PlainCTest, KernelsAgreeWithReferences) {
  const auto compiler = codegen::FindCCompiler(false);
  if (!compiler.ok()) GTEST_SKIP() << "SKIPPED: " << compiler.status();
  std::string text;
  std::vector<ir::Function> functions;
  for (const kernels::PolyBenchKernel& kernel : kernels::PolyBenchKernels()) {
    functions.push_back(*kernels::PolyBenchFunction(kernel));
    // gramschmidt has more rows than columns.
    ir::IntValues values = Values(functions.back(), 9);
    for (auto& [var, value] : values) value += var.name() == "m" ? 2 : 0;
    const absl::StatusOr<std::string> c = PlainC(functions.back(), values);
    ASSERT_TRUE(c.ok()) << c.status();
    text += *c;
  }
  const auto code = codegen::LoadedCode::Create(
      text, {.compiler = *compiler, .flags = {"-O1", "-Wall", "-Werror"}});
  ASSERT_TRUE(code.ok()) << code.status();
  for (size_t k = 0; k < functions.size(); ++k) {
    const kernels::PolyBenchKernel& kernel = kernels::PolyBenchKernels()[k];
    std::vector<int64_t> sizes;
    for (const std::string_view name : kernel.parameters) sizes.push_back(name == "m" ? 11 : 9);
    ir::RandomArguments arguments =
        *kernels::PolyBenchArguments(kernel, functions[k], sizes, /*seed=*/3);
    const ir::RandomArguments expected(arguments);
    kernel.reference(expected.arguments());
    cases::Executable executable;
    executable.entry =
        reinterpret_cast<codegen::RawEntry>(*(*code)->Find(functions[k].name + "_entry"));
    executable.to_status = [](int32_t) { return absl::OkStatus(); };
    ASSERT_TRUE(cases::TimeRuns(executable, functions[k], arguments, {.seconds = 0}).ok());
    EXPECT_EQ(ir::FindDisagreement(functions[k], arguments, expected, kernel.tolerance), "")
        << kernel.name;
  }
}

}  // namespace
}  // namespace polynao::benchmarks
