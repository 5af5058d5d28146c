// Which width of vectors LlvmOptions::wide_vectors asks for.
#include <string>

#include "base/text.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Assembly(const std::string& cpu, bool wide) {
  const ir::Function function = *ir::ParseFunction(
      "func f(A: f64[n] in, B: f64[n], n: i32) { for (i, 0, n) { B[i] = B[i] + A[i] * 2.0 } }");
  return *EmitLlvm({function.context, {function}}, LlvmOutput::kAssembly,
                   {.cpu = cpu, .wide_vectors = wide});
}

TEST(WideVectorsTest, AreUsedWhereTheyCostNoClock) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "SKIPPED: needs an x86-64 machine";
#endif
  EXPECT_THAT(Assembly("sapphirerapids", true), HasSubstr("zmm"));
  EXPECT_THAT(Assembly("sapphirerapids", false), Not(HasSubstr("zmm")));
  EXPECT_THAT(Assembly("skylake-avx512", true), Not(HasSubstr("zmm")));
  EXPECT_THAT(Assembly("x86-64-v3", true), HasSubstr("ymm"));
}

TEST(WideVectorsTest, ElementsOfAShortRowArePermuted) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "SKIPPED: needs an x86-64 machine";
#endif
  const auto gathers = [](const std::string& cpu, int length) {
    const ir::Function function = *ir::ParseFunction(
        StrCat("func f(A: f32[9, ", length, "] in, I: i32[64] in, B: f32[64], n: i32) { ",
               "vectorize (i, 0, 64) { B[i] = A[n, I[i]] } }"));
    const std::string text = *EmitLlvm({function.context, {function}}, LlvmOutput::kAssembly,
                                       {.cpu = cpu, .wide_vectors = true});
    return text.find("gather") != std::string::npos;
  };
  EXPECT_FALSE(gathers("sapphirerapids", 14));
  EXPECT_FALSE(gathers("sapphirerapids", 32));
  EXPECT_TRUE(gathers("sapphirerapids", 33));
  EXPECT_FALSE(gathers("skylake", 16));
  EXPECT_TRUE(gathers("skylake", 17));
}

}  // namespace
}  // namespace polynao::codegen
