// The rows of isa/processor: each meaning becomes its instruction where the processor has it, and plain code elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

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

TEST(DotLoopTest, RowsAreInstructionsWhereTheProcessorHasThem) {
  for (const isa::ProcessorInstruction& row : isa::ProcessorInstructions()) {
    const std::string instruction = StrCat("\t", Mnemonic(row), "\t");
    EXPECT_THAT(Assembly(Named(row), "sapphirerapids"), HasSubstr(instruction)) << row.name;
    EXPECT_THAT(Assembly(Named(row), "skylake-avx512"), Not(HasSubstr(instruction))) << row.name;
  }
}

// On this machine, with the instruction if it has it, and as code for a processor that lacks it.
TEST(DotLoopTest, RowsComputeTheirMeaning) {
  for (const isa::ProcessorInstruction& row : isa::ProcessorInstructions()) {
    for (const char* cpu : {"", "x86-64-v3"}) {
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
