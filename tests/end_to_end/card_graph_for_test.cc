#include "tests/end_to_end/card_graph_for_test.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>

#include "absl/strings/match.h"
#include "base/text.h"
#include "compiler/codegen/diannao/diannao.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "compiler/te/card/card_program.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "gtest/gtest.h"
#include "isa/instruction_set.h"
#include "testing/chance.h"

namespace polynao {

using te::Tensor;

std::vector<ir::Tensor> Inputs(const Tensor& y, unsigned seed, ir::Values values) {
  std::vector<ir::Tensor> inputs;
  for (const te::Operation& operation : y.graph()->operations) {
    if (operation.kind != te::Operation::Kind::kPlaceholder) continue;
    inputs.push_back(ir::RandomTensor(operation.outputs[0]->type, operation.shape,
                                      seed + inputs.size(), values));
  }
  return inputs;
}

absl::StatusOr<ir::Tensor> Meaning(const Tensor& y, std::vector<ir::Tensor> inputs) {
  te::Schedule plain(y);
  absl::StatusOr<ir::Function> function = te::Lower(plain);
  if (!function.ok()) return function.status();
  ir::Tensor output(y.type(), y.shape());
  std::vector<ir::Argument> arguments;
  for (ir::Tensor& input : inputs) arguments.push_back(ir::Argument::Of(&input));
  arguments.push_back(ir::Argument::Of(&output));
  absl::StatusOr<std::unique_ptr<ir::Interpreter>> interpreter = ir::Interpreter::Create(*function);
  if (!interpreter.ok()) return interpreter.status();
  const absl::Status status = (*interpreter)->Run(arguments);
  if (!status.ok()) return status;
  return output;
}

absl::StatusOr<Result> OnCard(const Tensor& y, const isa::Machine& machine, size_t choice,
                              std::vector<ir::Tensor> inputs, bool by_vector) {
  Target target;
  target.name = "diannao";
  target.instructions = &isa::DianNao();
  target.machine = &machine;
  absl::StatusOr<te::CardProgram> group = te::CardProgram::Create(y, target, by_vector);
  if (!group.ok()) return group.status();
  const std::vector<te::CardSchedule> schedules = group->Schedules({}, false);
  size_t at = std::min(choice, schedules.size() - 1);
  if (choice == kCutChoice) {
    const auto is_cut = [](const te::CardSchedule& schedule) {
      const auto cut = schedule.choice.find("cut");
      return cut != schedule.choice.end() && cut->second == 1;
    };
    at = std::find_if(schedules.begin(), schedules.end(), is_cut) - schedules.begin();
    if (at == schedules.size()) at = 0;
  } else if (choice >= kBlocksChoice) {
    std::vector<size_t> in_blocks;
    for (size_t i = 0; i < schedules.size(); ++i) {
      if (schedules[i].choice.contains("blocks")) in_blocks.push_back(i);
    }
    at = in_blocks.empty() ? 0 : in_blocks[(choice - kBlocksChoice) % in_blocks.size()];
  }
  // Floats whose sum is cut into parts are added in another order than the expression says.
  for (size_t i = 0; i < schedules.size() && ir::IsFloat(y.type()); ++i) {
    const size_t next = (at + i) % schedules.size();
    if (te::CardProgram::ReordersSums(schedules[next].choice)) continue;
    at = next;
    break;
  }
  const auto with_choice = [&](const absl::Status& error) {
    std::string text = StrCat(error.message(), "\nschedule ", at);
    for (const auto& [name, value] : schedules[at].choice) StrAppend(&text, " ", name, "=", value);
    return absl::Status(error.code(), text);
  };
  absl::StatusOr<ir::Function> function = group->Build(schedules[at].choice);
  if (!function.ok()) return with_choice(function.status());
  const auto with_function = [&](const absl::Status& error) {
    return absl::Status(error.code(),
                        StrCat(with_choice(error).message(), "\n", ir::Print(*function)));
  };
  const ir::Function written = *function;
  const absl::Status status = RunPasses(*function, *PipelineFor(target), target);
  if (!status.ok()) {
    *function = written;
    return with_function(status);
  }
  absl::StatusOr<isa::Program> program = GenerateDianNao(*function, target);
  if (!program.ok()) return with_function(program.status());
  Result result = {.inputs = inputs,
                   .output = ir::Tensor(y.type(), y.shape()),
                   .run = {},
                   .function = *function,
                   .choice = schedules[at].choice};
  std::vector<simulator::Argument> arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs[i].shape = program->params[i].shape;
    arguments.push_back(simulator::Argument::Of(&inputs[i]));
  }
  result.output.shape = program->params[inputs.size()].shape;
  arguments.push_back(simulator::Argument::Of(&result.output));
  simulator::RunOptions options;
  options.machine = &machine;
  absl::StatusOr<simulator::RunResult> run =
      simulator::Run(*target.instructions, *program, arguments, options);
  if (!run.ok()) return with_function(run.status());
  result.run = *std::move(run);
  result.output.shape = y.shape();
  return result;
}

int Stores(const ir::Function& function) {
  int stores = 0;
  ir::ForEachStmt(function.body, [&](ir::Stmt s) {
    stores += s.Is(ir::StmtKind::kStore);
    return true;
  });
  return stores;
}

void MustAgree(const Tensor& y, const isa::Machine& machine, size_t choice, unsigned seed,
               Exceptions& exceptions, bool by_vector) {
  const std::vector<ir::Tensor> inputs = Inputs(y, seed, ir::Values::kAll);
  const absl::StatusOr<ir::Tensor> expected = Meaning(y, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  absl::StatusOr<Result> result = OnCard(y, machine, choice, inputs, by_vector);
  // A schedule may need more than its cost model says, where a tile is a part of a row whose place Lower does not see:
  // users get the next one then.
  constexpr size_t kMostFailures = 100;
  const auto is_too_large = [&result] {
    return absl::IsResourceExhausted(result.status()) &&
           absl::StartsWith(result.status().message(), "pass storage: ");
  };
  for (size_t next = 1; choice == 0 && is_too_large() && next < kMostFailures; ++next) {
    result = OnCard(y, machine, next, inputs, by_vector);
  }
  // Single elements of weights that are turned around take whole groups of lanes each.
  const bool is_estimate = choice != 0 && absl::IsResourceExhausted(result.status());
  if (is_estimate || absl::StrContains(result.status().message(), "values are live at once") ||
      absl::StrContains(result.status().message(), "its smallest tile does not fit")) {
    ++exceptions.too_large;
    return;
  }
  ASSERT_TRUE(result.ok()) << result.status();
  const int64_t at = ir::FirstDifference(result->output, *expected);
  ASSERT_EQ(at, -1) << "element " << at << ": " << result->output.Value(at) << ", expected "
                    << expected->Value(at) << "\n"
                    << ir::Print(result->function);
  if (Stores(result->function) > 0) {
    ++exceptions.scalar;
    std::cout << "scalar code in the program of POLYNAO_RANDOM_CASES=1 POLYNAO_SEED=" << seed
              << "\n"
              << ir::Print(result->function);
  }
}

void ForRandomSeeds(int count, double scalar_rate,
                    const std::function<void(Random&, unsigned seed, Exceptions&)>& run) {
  if (const char* text = std::getenv("POLYNAO_RANDOM_CASES")) count = std::atoi(text);
  const char* seed_text = std::getenv("POLYNAO_SEED");
  const unsigned first = seed_text != nullptr ? std::atoi(seed_text) : std::random_device{}();
  Exceptions exceptions;
  for (int round = 0; round < count; ++round) {
    const unsigned seed = first + round;
    SCOPED_TRACE(testing::Message() << "POLYNAO_RANDOM_CASES=1 POLYNAO_SEED=" << seed);
    Random random(seed);
    run(random, seed, exceptions);
    if (testing::Test::HasFailure()) return;
  }
  std::cout << exceptions.scalar << " of " << count << " programs have scalar code, "
            << exceptions.too_large << " are too large\n";
  EXPECT_LE(exceptions.too_large, MostByChance(count, 1));
  EXPECT_LE(exceptions.scalar, MostByChance(count, scalar_rate));
}

}  // namespace polynao
