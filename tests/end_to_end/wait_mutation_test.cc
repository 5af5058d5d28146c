// Every wait of the compiled benchmark programs is taken out once: either by some order of the queues an
// instruction then finds other bytes, or the simulator finds no hazard, so that the wait was redundant.
//
// In the test run that is done for the smallest case of each class. POLYNAO_RANDOM_CASES=48 takes all
// cases of tensorize48, in their full sizes and with their tuned schedules, and prints the counts.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

#include "base/check.h"
#include "base/text.h"
#include "benchmarks/suites.h"
#include "compiler/codegen/diannao/diannao.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/passes/queue_interpreter.h"
#include "compiler/passes/wait_mutation.h"
#include "compiler/registry/registry.h"
#include "gtest/gtest.h"
#include "kernels/operators.h"
#include "simulator/simulator.h"
#include "testing/machine.h"

namespace polynao {
namespace {

class Compiled {
 public:
  Compiled(const benchmarks::SuiteCase& suite_case, const Target& target) : target_(target) {
    kernels::OperatorCase c;
    c.op = suite_case.op;
    c.dtype = *ir::ParseType(suite_case.dtype);
    POLYNAO_CHECK(kernels::ParseShapes(suite_case.shape, c).ok()) << suite_case.shape;
    const absl::StatusOr<const kernels::Operator*> op = kernels::FindOperator(c);
    POLYNAO_CHECK(op.ok()) << op.status();
    absl::StatusOr<ir::Function> function = (*op)->build(c, target);
    POLYNAO_CHECK(function.ok()) << function.status();
    function_ = *std::move(function);
    const absl::Status status = RunPasses(function_, *PipelineFor(target), target, {});
    POLYNAO_CHECK(status.ok()) << status;
    // Small numbers: sums that saturate, or infinities, would hide differences.
    std::mt19937_64 random(1);
    for (const ir::Param& param : function_.params) {
      std::vector<int64_t> shape;
      for (ir::Expr extent : param.buffer->extents) shape.push_back(extent.int_value());
      ir::Tensor& tensor = inputs_.emplace_back(param.buffer->type, shape);
      for (int64_t i = 0; i < tensor.element_count(); ++i) {
        tensor.SetValue(i, static_cast<double>(random() % 17) - 8);
      }
    }
    expected_ = Run(function_, {.queues = {}});
  }

  const ir::Function& function() const { return function_; }

  // Whether by this schedule all instructions of `function` find and compute what those of the compiled
  // function find and compute if each takes effect at once.
  bool IsRight(const ir::Function& function, const QueueSchedule& schedule) const {
    const Result result = Run(function, schedule);
    return result.bytes == expected_.bytes && Difference(result.record, expected_.record).empty();
  }

  // What the simulator says.
  std::string Hazard(const ir::Function& function) const {
    const absl::StatusOr<isa::Program> program = GenerateDianNao(function, target_);
    if (!program.ok()) return std::string(program.status().message());
    std::vector<ir::Tensor> tensors = inputs_;
    std::vector<simulator::Argument> arguments;
    for (ir::Tensor& tensor : tensors) arguments.push_back(simulator::Argument::Of(&tensor));
    simulator::RunOptions options;
    options.machine = target_.machine;
    const auto result = simulator::Run(*target_.instructions, *program, arguments, options);
    return result.ok() ? "" : std::string(result.status().message());
  }

 private:
  struct Result {
    std::vector<std::vector<uint8_t>> bytes;  // of all tensors; none if the run ends with an error
    QueueRecord record;
  };
  Result Run(const ir::Function& function, const QueueSchedule& schedule) const {
    std::vector<ir::Tensor> tensors = inputs_;
    std::vector<ir::Argument> arguments;
    for (ir::Tensor& tensor : tensors) arguments.push_back(ir::Argument::Of(&tensor));
    const auto interpreter = QueueInterpreter::Create(function, target_);
    POLYNAO_CHECK(interpreter.ok()) << interpreter.status();
    Result result;
    if (!(*interpreter)->Run(arguments, schedule, &result.record).ok()) return {};
    for (ir::Tensor& tensor : tensors) result.bytes.push_back(std::move(tensor.bytes));
    return result;
  }

  const Target& target_;
  ir::Function function_;
  std::vector<ir::Tensor> inputs_;
  Result expected_;
};

int64_t Elements(const benchmarks::SuiteCase& c) {
  kernels::OperatorCase parsed;
  POLYNAO_CHECK(kernels::ParseShapes(c.shape, parsed).ok());
  int64_t count = 1;
  for (int64_t extent : parsed.shape) count *= extent;
  for (const auto& shape : parsed.operands) count *= shape[0];
  return count;
}

// `count` cases: the smallest one of each class, then the next ones.
std::vector<benchmarks::SuiteCase> Cases(size_t count) {
  const std::vector<benchmarks::SuiteCase>& all = (*benchmarks::FindSuite("tensorize48"))->cases;
  const auto key = [&](size_t i) { return std::pair(Elements(all[i]), i); };
  std::map<std::pair<int64_t, size_t>, size_t> by_rank;
  for (size_t i = 0; i < all.size(); ++i) {
    int64_t rank = 0;  // in its class
    for (size_t j = 0; j < all.size(); ++j) {
      rank += all[j].op_class == all[i].op_class && key(j) < key(i);
    }
    by_rank[{rank, i}] = i;
  }
  std::vector<benchmarks::SuiteCase> cases;
  for (const auto& [rank, i] : by_rank) {
    if (cases.size() < count) cases.push_back(all[i]);
  }
  return cases;
}

TEST(WaitMutationTest, EveryWaitOfTheSuiteIsNeededOrRedundant) {
  const char* const wanted = std::getenv("POLYNAO_RANDOM_CASES");
  const isa::Machine machine = TestMachine("mlu270");
  const Target target = {"diannao", &isa::DianNao(), &machine};
  int waits = 0;
  int caught = 0;
  for (const benchmarks::SuiteCase& c :
       Cases(wanted != nullptr ? static_cast<size_t>(std::atoi(wanted)) : 3)) {
    const Compiled compiled(c, target);
    const std::vector<QueueSchedule> schedules = QueueSchedules(2);
    for (const QueueSchedule& schedule : schedules) {
      EXPECT_TRUE(compiled.IsRight(compiled.function(), schedule))
          << c.Name() << ", " << schedule.Name();
    }
    const int count = CountWaits(compiled.function(), target);
    std::string redundant;
    for (int i = 0; i < count; ++i) {
      const ir::Function mutant = WithoutWait(compiled.function(), target, i);
      const bool is_caught = std::any_of(
          schedules.begin(), schedules.end(),
          [&](const QueueSchedule& schedule) { return !compiled.IsRight(mutant, schedule); });
      ++waits;
      caught += is_caught;
      if (is_caught) continue;
      EXPECT_EQ(compiled.Hazard(mutant), "")
          << c.Name() << ": " << WaitName(compiled.function(), target, i) << " " << i << " of\n"
          << ir::Print(compiled.function());
      StrAppend(&redundant, " ", i, ":", WaitName(compiled.function(), target, i));
    }
    std::printf("%s: %d waits%s%s\n", c.Name().c_str(), count,
                redundant.empty() ? "" : ", redundant:", redundant.c_str());
    std::fflush(stdout);
  }
  std::printf("%d waits, %d caught\n", waits, caught);
  EXPECT_GT(caught * 10, waits * 8);
}

}  // namespace
}  // namespace polynao
