#include "benchmarks/core_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/same_meaning.h"

namespace polynao::benchmarks {
namespace {

std::string Assembly(const ir::Function& function, const std::string& cpu) {
  const ir::Module module{.context = function.context, .functions = {function}};
  return codegen::EmitLlvm(module, codegen::LlvmOutput::kAssembly,
                           {.cpu = cpu, .wide_vectors = true})
      .value();
}

int64_t Count(const std::string& text, const std::string& what) {
  int64_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// What is timed is what it is said to be: there are as many instructions as an iteration has, or more (unrolled).
TEST(CoreRatesTest, ProgramsAreTheirInstructions) {
  const auto expect = [](const RateProgram& program, const std::string& cpu,
                         const std::string& instruction) {
    const std::string text = Assembly(program.function, cpu);
    const int64_t count = Count(text, instruction);
    EXPECT_GE(count, static_cast<int64_t>(program.count)) << instruction << " on " << cpu << "\n"
                                                          << text;
  };
  expect(MultiplyAdds(64), "sapphirerapids", "\tvfmadd");
  expect(MultiplyAdds(32), "haswell", "\tvfmadd");
  for (const isa::ProcessorInstruction& row : isa::ProcessorInstructions()) {
    const std::string mnemonic = row.name.substr(0, row.name.find('.'));
    const std::string cpu = row.feature == "avx2"      ? "haswell"
                            : row.feature == "avxvnni" ? "alderlake"
                                                       : "sapphirerapids";
    expect(Instructions(row), cpu, "\t" + mnemonic + "\t");
  }
}

TEST(CoreRatesTest, ProgramsAgreeWithTheInterpreter) {
  std::vector<RateProgram> programs = {MultiplyAdds(32), WaitingMultiplyAdds(64), Loads(32, 1024),
                                       Stores(64, 2048)};
  for (const isa::ProcessorInstruction& row : isa::ProcessorInstructions())
    programs.push_back(Instructions(row));
  for (const RateProgram& program : programs) {
    const auto compiled = codegen::Compile(program.function, {.wide_vectors = true});
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    for (const int64_t n : {0, 1, 3}) {
      ir::RandomArgumentOptions options;
      options.scalars["n"] = ir::Argument::Int(n);
      const auto arguments = ir::RandomArguments::Draw(program.function, 1, options);
      ASSERT_TRUE(arguments.ok()) << arguments.status();
      EXPECT_EQ(ir::Disagreement(program.function, *arguments,
                                 [&](auto list) { return (*compiled)->Run(list); }),
                "");
    }
  }
}

// Within what processors can be, not of this one's speed.
TEST(CoreRatesTest, ArePossible) {
  const auto rates = MeasureCore({}, 2e9);
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_GT(rates->operation, 0.01);
  EXPECT_GT(rates->latency, rates->operation);
  EXPECT_GT(rates->load, 0.01);
  EXPECT_GT(rates->store, 0.01);
  EXPECT_GT(rates->next_bytes, 0.01);
  for (const isa::ProcessorInstruction& row : isa::ProcessorInstructions())
    EXPECT_EQ(rates->instructions.contains(row.name), isa::HostHas(row.feature)) << row.name;
}

}  // namespace
}  // namespace polynao::benchmarks
