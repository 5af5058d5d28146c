// The rows of isa/processor: each meaning becomes its instruction where the processor has it, and plain code elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "isa/processor/processor.h"

namespace polynao::codegen {
namespace {

using testing::HasSubstr;
using testing::Not;

// "vpdpbusd" of "vpdpbusd.512".
std::string Mnemonic(const isa::ProcessorInstruction& row) {
  return row.name.substr(0, row.name.find('.'));
}

// The function under a name that the back end takes.
ir::Function Named(const isa::ProcessorInstruction& row) {
  ir::Function function = row.meaning;
  function.name = Mnemonic(row);
  return function;
}

std::string Assembly(const ir::Function& function, const std::string& cpu) {
  const ir::Module module{.context = function.context, .functions = {function}};
  return EmitLlvm(module, LlvmOutput::kAssembly, {.cpu = cpu, .wide_vectors = true}).value();
}

// Processors with and without a feature.
std::pair<const char*, const char*> WithAndWithout(const std::string& feature) {
  if (feature == "avx2") return {"haswell", "sandybridge"};
  if (feature == "avxvnni") return {"alderlake", "haswell"};
  return {"sapphirerapids", "skylake-avx512"};
}

TEST(DotLoopTest, RowsAreInstructionsWhereTheProcessorHasThem) {
  for (const isa::ProcessorInstruction& row : isa::ProcessorInstructions()) {
    const std::string instruction = StrCat("\t", Mnemonic(row), "\t");
    const auto [with, without] = WithAndWithout(row.feature);
    EXPECT_THAT(Assembly(Named(row), with), HasSubstr(instruction)) << row.name;
    const std::string other = Assembly(Named(row), without);
    // Halves of a vector: LLVM's own.
    if (row.feature == "avx2") {
      EXPECT_THAT(other, Not(HasSubstr("ymm"))) << row.name;
    } else {
      EXPECT_THAT(other, Not(HasSubstr(instruction))) << row.name;
    }
  }
}

// On this machine, with the instruction if it has it, and as code for a processor that lacks it.
TEST(DotLoopTest, RowsComputeTheirMeaning) {
  for (const isa::ProcessorInstruction& row : isa::ProcessorInstructions()) {
    for (const char* cpu : {"", "x86-64-v3", "x86-64-v2"}) {
      const ir::Function function = Named(row);
      const auto compiled = Compile(function, {.cpu = cpu, .wide_vectors = true});
      ASSERT_TRUE(compiled.ok()) << compiled.status();
      for (uint64_t seed = 1; seed <= 50; ++seed) {
        const ir::RandomArguments arguments(function, seed);
        ASSERT_EQ(ir::Disagreement(function, arguments,
                                   [&](auto list) { return (*compiled)->Run(list); }),
                  "")
            << row.name << " on '" << cpu << "', seed " << seed;
      }
    }
  }
}

// A float near the least normal one, or zero: 2^-126, some steps above or below it, of either sign.
double NearTheLeast(std::mt19937_64& random) {
  const auto steps = static_cast<double>(random() % 12) - 4;
  const double value = std::ldexp(1 + steps * (steps < 0 ? 0.5 : 1) * 0x1p-23, -126);
  return random() % 8 == 0 ? 0 : random() % 2 == 0 ? value : -value;
}

// Sums that are, or nearly are, too small for normal numbers: the first products are about as large as the least one,
// later ones as a step of it.
TEST(DotLoopTest, FloatsAtTheLeastNormalNumber) {
  int rows = 0;
  for (const isa::ProcessorInstruction& row : isa::ProcessorInstructions()) {
    if (row.IsExact() || !isa::HostHas(row.feature)) continue;
    ++rows;
    const ir::Function function = Named(row);
    const auto compiled = Compile(function, {.wide_vectors = true});
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    std::mt19937_64 random(1);
    for (int run = 0; run < 400; ++run) {
      std::deque<ir::Tensor> tensors;
      for (const ir::Param& param : function.params) {
        std::vector<int64_t> shape;
        for (const ir::Expr extent : param.buffer->extents) shape.push_back(extent.int_value());
        ir::Tensor& tensor = tensors.emplace_back(param.buffer->type, shape);
        const bool is_sum = tensors.size() == 1;
        for (int64_t i = 0; i < tensor.element_count(); ++i) {
          const auto mantissa = 1 + static_cast<double>(random() % 128) / 128;
          const bool is_small = random() % 2 == 0;
          const int exponent = is_small ? -75 - static_cast<int>(random() % 4) : -63;
          const double value = is_small || random() % 4 == 0 ? mantissa : 1;
          tensor.SetValue(i, is_sum ? NearTheLeast(random)
                                    : std::ldexp(random() % 2 == 0 ? value : -value, exponent));
        }
      }
      const ir::RandomArguments arguments(std::move(tensors));
      ASSERT_EQ(
          ir::Disagreement(function, arguments, [&](auto list) { return (*compiled)->Run(list); }),
          "")
          << row.name << ", run " << run;
    }
  }
  if (rows == 0) GTEST_SKIP() << "this machine has no instructions for dot products of floats";
}

// Two operands of one type are found in either order.
TEST(DotLoopTest, OperandsInEitherOrder) {
  for (const char* product :
       {"cast(i32, A[q]) * cast(i32, B[l, q])", "cast(i32, B[l, q]) * cast(i32, A[q])"}) {
    const ir::Function function =
        ir::ParseFunction(
            StrCat("func f(S: i32[16], A: i16[2] in, B: i16[16, 2] in) {\n"
                   "vectorize (l: i64, 0, 16) { for (q: i64, 0, 2) {\n  S[l] = S[l] + ",
                   product, " } }\n}\n"))
            .value();
    EXPECT_THAT(Assembly(function, "sapphirerapids"), HasSubstr("\tvpdpwssd\t")) << product;
  }
}

// Loops that are not the meaning stay plain code: lanes of another layout, fewer products, other sums.
TEST(DotLoopTest, OtherLoopsStay) {
  const char* const bodies[] = {
      "vectorize (l: i64, 0, 16) { for (q: i64, 0, 4) {\n"
      "  S[l] = S[l] + cast(i32, A[q]) * cast(i32, B[q * 16 + l]) } }",
      "vectorize (l: i64, 0, 16) { for (q: i64, 0, 3) {\n"
      "  S[l] = S[l] + cast(i32, A[q]) * cast(i32, B[l * 4 + q]) } }",
      "vectorize (l: i64, 0, 16) { for (q: i64, 0, 4) {\n"
      "  S[l] = S[l] + cast(i32, A[l * 4 + q]) * cast(i32, B[l * 4 + q]) } }",
      "vectorize (l: i64, 0, 15) { for (q: i64, 0, 4) {\n"
      "  S[l] = S[l] + cast(i32, A[q]) * cast(i32, B[l * 4 + q]) } }",
      "vectorize (l: i64, 0, 16) { for (q: i64, 0, 4) {\n"
      "  S[l] = S[l + 1] + cast(i32, A[q]) * cast(i32, B[l * 4 + q]) } }",
  };
  for (const char* body : bodies) {
    const ir::Function function =
        ir::ParseFunction(
            StrCat("func f(S: i32[32], A: u8[64] in, B: i8[64] in) {\n", body, "\n}\n"))
            .value();
    EXPECT_THAT(Assembly(function, "sapphirerapids"), Not(HasSubstr("vpdpbusd"))) << body;
  }
}

}  // namespace
}  // namespace polynao::codegen
