// Which width of vectors LlvmOptions::wide_vectors asks for.
#include <string>

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

}  // namespace
}  // namespace polynao::codegen
