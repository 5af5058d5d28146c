// What the attributes of compiler/ir/float_rules.h change in compiled code.
#include "compiler/ir/float_rules.h"

#include <cmath>
#include <string>

#include "compiler/codegen/c/run_c.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

using ::testing::ContainsRegex;
using ::testing::Not;

// Of x * x - y, where x * x needs more bits than f64 has.
constexpr char kProductAndSum[] = "func f(A: f64[3]) { A[2] = A[0] * A[0] - A[1] }";
constexpr double kX = 1 + 0x1p-30;
constexpr double kY = 1 + 0x1p-29;
constexpr double kRoundedTwice = kX * kX - kY;  // 0

bool MachineHasFma() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

template <typename Run>
double Value(const Run& run) {
  ir::Tensor tensor(ir::Type::kF64, {3});
  tensor.SetValue(0, kX);
  tensor.SetValue(1, kY);
  EXPECT_TRUE(run(ir::Argument::Of(&tensor)).ok());
  return tensor.Value(2);
}

double CompiledValue(const std::string& text, const LlvmOptions& options = {}) {
  auto compiled = Compile(*ir::ParseFunction(text), options);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return Value([&](const ir::Argument& argument) { return (*compiled)->Run({argument}); });
}

TEST(FloatRulesTest, ContractionIsAllowedByAttributeOrOption) {
  if (!MachineHasFma()) GTEST_SKIP() << "SKIPPED: this machine has no fused multiplication";
  const double fused = std::fma(kX, kX, -kY);
  ASSERT_NE(fused, kRoundedTwice);
  EXPECT_EQ(CompiledValue(kProductAndSum), kRoundedTwice);
  EXPECT_EQ(CompiledValue(std::string("@reassociate ") + kProductAndSum), kRoundedTwice);
  EXPECT_EQ(CompiledValue(std::string("@contract ") + kProductAndSum), fused);
  EXPECT_EQ(CompiledValue(kProductAndSum, {.float_rules = {.contract = true}}), fused);
}

TEST(FloatRulesTest, ContractionInC) {
  if (!MachineHasFma()) GTEST_SKIP() << "SKIPPED: this machine has no fused multiplication";
  const ir::Function plain = *ir::ParseFunction(kProductAndSum);
  ir::Function contracted = plain;
  contracted.name = "g";
  ir::Allow(contracted, {.contract = true});
  const double fused = std::fma(kX, kX, -kY);
  // One function of a file that forbids it forbids it for all.
  for (const auto& [functions, expected] :
       {std::pair<std::vector<ir::Function>, double>{{contracted}, fused},
        {{contracted, plain}, kRoundedTwice}}) {
    auto compiled = CompiledC::Create(functions);
    if (absl::IsNotFound(compiled.status())) GTEST_SKIP() << "SKIPPED: " << compiled.status();
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    EXPECT_EQ(Value([&](const ir::Argument& argument) { return (*compiled)->Run(0, {argument}); }),
              expected);
  }
}

TEST(FloatRulesTest, SumsAreReorderedByAttributeOnly) {
  const std::string sum =
      "func f(A: f64[n] in, S: f64[1], n: i32) { for (i, 0, n) { S[0] = S[0] + A[i] } }";
  const auto code = [](const std::string& text) {
    const ir::Function function = *ir::ParseFunction(text);
    return *EmitLlvm({function.context, {function}}, LlvmOutput::kOptimizedIr);
  };
  const std::string reduction = "vector.reduce.fadd";
  EXPECT_THAT(code(sum), Not(ContainsRegex(reduction)));
  EXPECT_THAT(code("@contract " + sum), Not(ContainsRegex(reduction)));
  EXPECT_THAT(code("@reassociate " + sum), ContainsRegex(reduction));
}

TEST(FloatRulesTest, QuotientsByConstantsBecomeProducts) {
  const std::string divide = "func f(A: f64[1]) { A[0] = A[0] / 9.0 }";
  const auto code = [](const std::string& text) {
    const ir::Function function = *ir::ParseFunction(text);
    return *EmitLlvm({function.context, {function}}, LlvmOutput::kOptimizedIr);
  };
  EXPECT_THAT(code(divide), ContainsRegex("fdiv"));
  EXPECT_THAT(code("@reciprocal " + divide), Not(ContainsRegex("fdiv")));
}

}  // namespace
}  // namespace polynao::codegen
