// Adding an instruction takes one text row: the compiler selects it and the simulator runs it, with
// no other source changed. docs/add_an_instruction.md walks through this.

#include "base/check.h"
#include "compiler/codegen/diannao/diannao.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/registry/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/instructions_text.h"
#include "isa/program.h"
#include "simulator/simulator.h"
#include "testing/machine.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;

// |lhs - rhs| in one instruction, twice as slow as an addition.
constexpr char kRow[] = R"(
@doc("dst = the distance of lhs and rhs, element by element.")
@opcode(200)
@variants(T, f16, f32)
@unit(vector)
@require(count % 64 == 0)
@require(&dst[0] % 128 == 0, &lhs[0] % 128 == 0, &rhs[0] % 128 == 0)
@cost(vector.start + 2 * ((count * sizeof(T) + vector.bytes - 1) / vector.bytes))
func absdiff(dst: T[count] @nmem out, lhs: T[count] @nmem in, rhs: T[count] @nmem in, count: i64) {
  for (i: i64, 0, count) { dst[i] = abs(lhs[i] - rhs[i]) }
}
)";

constexpr char kProgram[] = R"(
func distance(A: f16[1000] in, B: f16[1000] in, C: f16[1000] out) {
  thread (tid, 2) {
    allocate X: f16[500] @nmem
    allocate Y: f16[500] @nmem
    for (i, 0, 500) { X[i] = A[tid * 500 + i] }
    for (i, 0, 500) { Y[i] = B[tid * 500 + i] }
    pragma "tensorize" { for (i, 0, 500) { X[i] = abs(X[i] - Y[i]) } }
    for (i, 0, 500) { C[tid * 500 + i] = X[i] }
  }
}
)";

struct Outcome {
  std::string code;
  ir::Tensor values;
  int64_t cycles;
};

Outcome CompileAndSimulate(const isa::InstructionSet& set) {
  const isa::Machine machine = TestMachine("unit");
  Target target;
  target.name = "diannao";
  target.instructions = &set;
  target.machine = &machine;
  absl::StatusOr<ir::Function> function = ir::ParseFunction(kProgram);
  POLYNAO_CHECK(function.ok()) << function.status();
  PipelineOptions options;
  options.check = true;
  absl::Status status = RunPasses(*function, *PipelineFor(target), target, options);
  POLYNAO_CHECK(status.ok()) << status;
  absl::StatusOr<isa::Program> program = GenerateDianNao(*function, target);
  POLYNAO_CHECK(program.ok()) << program.status();
  ir::Tensor a = ir::RandomTensor(ir::Type::kF16, {1000}, 1);
  ir::Tensor b = ir::RandomTensor(ir::Type::kF16, {1000}, 2);
  ir::Tensor c(ir::Type::kF16, {1000});
  simulator::RunOptions run;
  run.machine = &machine;
  absl::StatusOr<simulator::RunResult> result = simulator::Run(
      set, *program,
      {simulator::Argument::Of(&a), simulator::Argument::Of(&b), simulator::Argument::Of(&c)}, run);
  POLYNAO_CHECK(result.ok()) << result.status();
  Outcome outcome = {
      .code = *isa::Disassemble(set, *program), .values = c, .cycles = result->cycles};
  ir::Tensor expected(ir::Type::kF16, {1000});
  for (int64_t i = 0; i < 1000; ++i) {
    // Rounded before the sign goes, as the instruction does.
    expected.SetValue(i, a.Value(i) - b.Value(i));
    expected.SetValue(i, std::abs(expected.Value(i)));
  }
  EXPECT_EQ(ir::FirstDifference(c, expected), -1);
  return outcome;
}

TEST(NewInstructionTest, OneRowIsCompiledAndSimulated) {
  const auto load = [](std::vector<std::pair<std::string, std::string>> tables) {
    absl::StatusOr<std::unique_ptr<isa::InstructionSet>> set = isa::InstructionSet::Load(tables);
    POLYNAO_CHECK(set.ok()) << set.status();
    return *std::move(set);
  };
  const std::pair<std::string, std::string> built_in = {"instructions.nir",
                                                        std::string(isa::InstructionsText())};
  const auto without = load({built_in});
  const auto with = load({built_in, {"row.nir", kRow}});

  const Outcome scalar = CompileAndSimulate(*without);
  EXPECT_THAT(scalar.code, testing::Not(HasSubstr("absdiff")));
  const Outcome tensor = CompileAndSimulate(*with);
  EXPECT_THAT(tensor.code, HasSubstr("absdiff.f16"));
  EXPECT_EQ(ir::FirstDifference(scalar.values, tensor.values), -1);
  // The row's instruction replaces a scalar loop.
  EXPECT_LT(tensor.cycles * 5, scalar.cycles);
}

}  // namespace
}  // namespace polynao
