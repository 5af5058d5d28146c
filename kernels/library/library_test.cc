// The hand-written kernels on the simulated card: values against plain loops, for shapes, types and
// machines at the edges; cycles against the bound.

#include "kernels/library/library.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/library/expert.h"
#include "simulator/simulator.h"
#include "testing/machine.h"

namespace polynao::kernels {
namespace {

using ::testing::HasSubstr;

Target Card(const isa::Machine& machine) {
  Target target;
  target.name = "diannao";
  target.instructions = &isa::DianNao();
  target.machine = &machine;
  return target;
}

std::vector<ir::Tensor> Tensors(const OperatorCase& c, uint64_t seed) {
  std::vector<ir::Tensor> tensors;
  const std::vector<TensorSpec> specs = (*FindOperator(c))->tensors(c);
  for (const TensorSpec& spec : specs) {
    tensors.push_back(tensors.size() + 1 < specs.size()
                          ? ir::RandomTensor(spec.type, spec.shape, seed + tensors.size())
                          : ir::Tensor(spec.type, spec.shape));
  }
  return tensors;
}

absl::StatusOr<int64_t> Simulate(const HandWrittenKernel& kernel, const isa::Machine& machine,
                                 std::vector<ir::Tensor>& tensors) {
  std::vector<simulator::Argument> arguments;
  size_t next = 0;
  for (size_t i = 0; i < kernel.program.params.size(); ++i) {
    arguments.push_back(kernel.program.params[i].is_tensor
                            ? simulator::Argument::Of(&tensors[next++])
                            : simulator::Argument::Scalar(kernel.scalars[i]));
  }
  simulator::RunOptions options;
  options.machine = &machine;
  const absl::StatusOr<simulator::RunResult> result =
      simulator::Run(isa::DianNao(), kernel.program, arguments, options);
  if (!result.ok()) return result.status();
  return result->cycles;
}

absl::StatusOr<HandWrittenKernel> Find(const OperatorCase& c, std::string_view impl,
                                       const isa::Machine& machine) {
  const Target target = Card(machine);
  if (impl == "library") return FindLibraryKernel(c, target);
  return FindExpertKernel(c, target, [&](const HandWrittenKernel& kernel) {
    std::vector<ir::Tensor> tensors = Tensors(c, 1);
    return Simulate(kernel, machine, tensors);
  });
}

std::string Name(const OperatorCase& c, std::string_view impl, const isa::Machine& machine) {
  return absl::StrCat(c.op, " ", ShapesText(c), " ", std::string(ir::TypeName(c.dtype)), " ",
                      std::string(impl), " ", machine.name);
}

// Finds the kernel, runs it, compares all values; returns cycles.
int64_t MustAgree(const OperatorCase& c, std::string_view impl, const isa::Machine& machine) {
  SCOPED_TRACE(Name(c, impl, machine));
  const absl::StatusOr<HandWrittenKernel> kernel = Find(c, impl, machine);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  if (!kernel.ok()) return 0;
  std::vector<ir::Tensor> tensors = Tensors(c, 7);
  std::vector<ir::Tensor> expected = {tensors.back()};
  const Operator& op = **FindOperator(c);
  op.reference(c, absl::MakeSpan(tensors).subspan(0, tensors.size() - 1), absl::MakeSpan(expected));
  const absl::StatusOr<int64_t> cycles = Simulate(*kernel, machine, tensors);
  EXPECT_TRUE(cycles.ok()) << cycles.status();
  if (!cycles.ok()) return 0;
  EXPECT_EQ(ir::Compare(tensors.back(), expected[0]).max_abs, 0);
  return *cycles;
}

constexpr const char* kImpls[] = {"library", "expert"};

TEST(ElementwiseTest, EdgesOfGroupsRunsAndTiles) {
  const isa::Machine machine = TestMachine("mlu270");
  for (const char* impl : kImpls) {
    for (const int64_t n : {0, 1, 63, 64, 65, 16 * 64 - 1, 16 * 64 + 1, 17 * 64, 40961, 262144}) {
      for (const ir::Type type : {ir::Type::kI8, ir::Type::kF16, ir::Type::kF32}) {
        MustAgree({.op = "add", .shape = {n}, .dtype = type}, impl, machine);
        MustAgree({.op = "muls", .shape = {n}, .dtype = type, .scalar = -3}, impl, machine);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(ElementwiseTest, RandomMachines) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  for (int round = 0; round < 60; ++round) {
    const isa::Machine machine = TestMachine(
        std::array{"mlu270", "mlu290", "mlu370", "unit"}[pick(0, 3)],
        {absl::StrCat("core.nmem_kib=", pick(1, 16) * 2),
         absl::StrCat("card.clusters=", pick(1, 4)), absl::StrCat("cluster.cores=", pick(1, 7))});
    const OperatorCase c = {.op = std::array{"sub", "relu", "adds", "max", "sigmoid"}[pick(0, 4)],
                            .shape = {pick(0, 40) * pick(1, 2000) + pick(0, 5)},
                            .dtype = pick(0, 1) == 0 ? ir::Type::kF16 : ir::Type::kF32};
    MustAgree(c, kImpls[pick(0, 1)], machine);
    if (HasFailure()) return;
  }
}

TEST(ElementwiseTest, TheExpertRunsNearTheBound) {
  const isa::Machine machine = TestMachine("mlu270");
  const auto efficiency = [&](const OperatorCase& c) {
    const int64_t bound = *isa::BoundCycles(machine, (*FindOperator(c))->work(c));
    return static_cast<double>(bound) / static_cast<double>(MustAgree(c, "expert", machine));
  };
  for (const char* op : {"add", "relu"}) {
    const OperatorCase small = {.op = op, .shape = {255, 27, 27}};
    const OperatorCase large = {.op = op, .shape = {255, 55, 55}};
    EXPECT_GE(efficiency(small), 0.9) << op;
    EXPECT_GE(efficiency(large), 0.97) << op;
    EXPECT_LE(efficiency(large), 1) << op;
  }
}

TEST(KernelTest, WhatIsMissingSaysSo) {
  const isa::Machine machine = TestMachine("mlu270");
  for (const char* impl : kImpls) {
    const absl::Status none = Find({.op = "clip", .shape = {4}}, impl, machine).status();
    EXPECT_TRUE(absl::IsNotFound(none)) << none;
    EXPECT_THAT(std::string(none.message()),
                HasSubstr(absl::StrCat("the ", impl, " has no kernel for 'clip'")));
    EXPECT_THAT(
        std::string(Find({.op = "add", .shape = {4}, .dtype = ir::Type::kF64}, impl, machine)
                        .status()
                        .message()),
        HasSubstr("the card has no instruction add.f64"));
  }
}

}  // namespace
}  // namespace polynao::kernels
