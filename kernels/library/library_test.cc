// The hand-written kernels on the simulated card: values against plain loops, for shapes, types and
// machines at the edges; cycles against the bound.

#include "kernels/library/library.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/tensor.h"
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
  if (kernel.prepare) tensors[0] = kernel.prepare(tensors[0]);
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

std::string Name(const OperatorCase& c, std::string_view impl, const isa::Machine& machine) {
  return absl::StrCat(c.op, " ", ShapesText(c), " ", std::string(ir::TypeName(c.dtype)), " ",
                      std::string(impl), " ", machine.name);
}

// Runs the kernel and compares all values; returns cycles.
absl::StatusOr<int64_t> RunAndCompare(const OperatorCase& c, const HandWrittenKernel& kernel,
                                      const isa::Machine& machine) {
  std::vector<ir::Tensor> tensors = Tensors(c, 7);
  std::vector<ir::Tensor> expected = {tensors.back()};
  const Operator& op = **FindOperator(c);
  op.reference(c, absl::MakeSpan(tensors).subspan(0, tensors.size() - 1), absl::MakeSpan(expected));
  absl::StatusOr<int64_t> cycles = Simulate(kernel, machine, tensors);
  if (cycles.ok()) EXPECT_EQ(ir::Compare(tensors.back(), expected[0]).max_abs, 0);
  return cycles;
}

absl::StatusOr<HandWrittenKernel> Find(const OperatorCase& c, std::string_view impl,
                                       const isa::Machine& machine) {
  const Target target = Card(machine);
  if (impl == "library") return FindLibraryKernel(c, target);
  // Every plan that the expert tries is compared.
  return FindExpertKernel(c, target, [&](const HandWrittenKernel& kernel) {
    return RunAndCompare(c, kernel, machine);
  });
}

// Finds the kernel, runs it, compares all values; returns cycles.
int64_t MustAgree(const OperatorCase& c, std::string_view impl, const isa::Machine& machine) {
  SCOPED_TRACE(Name(c, impl, machine));
  const absl::StatusOr<HandWrittenKernel> kernel = Find(c, impl, machine);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  if (!kernel.ok()) return 0;
  const absl::StatusOr<int64_t> cycles = RunAndCompare(c, *kernel, machine);
  EXPECT_TRUE(cycles.ok()) << cycles.status();
  return cycles.value_or(0);
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

OperatorCase Conv(const std::string& shapes, ir::Type type = ir::Type::kI8,
                  std::map<std::string, std::string, std::less<>> attributes = {}) {
  OperatorCase c = {.op = "conv2d", .dtype = type, .attributes = std::move(attributes)};
  EXPECT_TRUE(ParseShapes(shapes, c).ok()) << shapes;
  return c;
}

constexpr const char* kConvImpls[] = {"library", "expert"};

TEST(Conv2dTest, StridesKernelsPaddingsChannels) {
  const isa::Machine machine = TestMachine("mlu270");
  for (const char* impl : kConvImpls) {
    for (const char* shapes : {"1x1x1,1x1x1x1", "5x5x3,7x1x1x3", "9x11x6,64x3x3x6",
                               "17x13x64,65x3x3x64", "20x7x33,128x5x5x33", "33x35x16,40x3x5x16",
                               "16x16x100,200x1x3x100", "40x3x64,32x3x3x64"}) {
      for (const char* stride : {"1", "2"}) {
        for (const char* pad : {"0", "same", "3"}) {
          for (const ir::Type type : {ir::Type::kI8, ir::Type::kI16}) {
            OperatorCase c = Conv(shapes, type, {{"stride", stride}, {"pad", pad}});
            SCOPED_TRACE(testing::Message() << "stride " << stride << " pad " << pad);
            if (!FindOperator(c).ok()) continue;  // larger than the image
            MustAgree(c, impl, machine);
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

// Several blocks of channels and several passes: each block's first pass needs its own zeros.
TEST(Conv2dTest, BlocksAndPassesWithPadding) {
  const isa::Machine machine =
      TestMachine("unit", {"core.nmem_kib=16", "core.wmem_kib=32", "card.clusters=1"});
  for (const char* impl : kConvImpls) {
    MustAgree(Conv("22x26x54,128x2x2x54", ir::Type::kI16, {{"dilation", "2"}}), impl, machine);
  }
}

TEST(Conv2dTest, RandomLayersAndMachines) {
  const char* seed_text = std::getenv("POLYNAO_SEED");
  const unsigned seed = seed_text != nullptr ? std::atoi(seed_text) : std::random_device{}();
  SCOPED_TRACE(testing::Message() << "POLYNAO_SEED=" << seed);
  std::mt19937 random(seed);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  int ran = 0;
  for (int round = 0; round < 60; ++round) {
    const char* config = std::array{"mlu270", "mlu290", "mlu370", "unit"}[pick(0, 3)];
    const std::vector<std::string> overrides = {absl::StrCat("core.nmem_kib=", 1 << pick(3, 8)),
                                                absl::StrCat("core.wmem_kib=", 1 << pick(5, 9)),
                                                absl::StrCat("cluster.smem_kib=", 1 << pick(4, 9)),
                                                absl::StrCat("card.clusters=", pick(1, 4)),
                                                absl::StrCat("cluster.cores=", pick(1, 5))};
    const isa::Machine machine = TestMachine(config, overrides);
    const int64_t ci = pick(1, 80);
    OperatorCase c = Conv(absl::StrCat(pick(1, 30), "x", pick(1, 30), "x", ci, ",", pick(1, 150),
                                       "x", pick(1, 4), "x", pick(1, 4), "x", ci),
                          pick(0, 1) == 0 ? ir::Type::kI8 : ir::Type::kI16,
                          {{"stride", absl::StrCat(pick(1, 3))},
                           {"dilation", absl::StrCat(pick(1, 2))},
                           {"scale", "0.37"}});
    if (pick(0, 1) == 0) c.attributes["pad"] = absl::StrCat(pick(0, 3));
    const char* impl = kConvImpls[pick(0, std::size(kConvImpls) - 1)];
    if (!FindOperator(c).ok()) continue;
    std::string attributes;
    for (const auto& [name, value] : c.attributes) {
      absl::StrAppend(&attributes, " ", name, "=", value);
    }
    SCOPED_TRACE(Name(c, impl, machine) + attributes + " " + absl::StrJoin(overrides, " "));
    if (const absl::Status status = Find(c, impl, machine).status(); !status.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
      continue;
    }
    MustAgree(c, impl, machine);
    if (HasFailure()) return;
    ++ran;
  }
  EXPECT_GE(ran, 10);
}

TEST(Conv2dTest, TheExpertIsFasterThanTheLibrary) {
  const isa::Machine machine = TestMachine("mlu270");
  const OperatorCase c = Conv("55x55x128,64x3x3x128");
  const int64_t bound = *isa::BoundCycles(machine, (*FindOperator(c))->work(c));
  const auto efficiency = [&](const char* impl) {
    return static_cast<double>(bound) / static_cast<double>(MustAgree(c, impl, machine));
  };
  EXPECT_GE(efficiency("library"), 0.5);
  EXPECT_GE(efficiency("expert"), 0.75);
  EXPECT_LE(efficiency("expert"), 1);
}

TEST(Conv2dTest, WhatIsMissingSaysSo) {
  const isa::Machine machine = TestMachine("mlu270");
  const isa::Machine small = TestMachine("unit");
  const std::string shapes = "8x8x64,32x3x3x64";
  for (const char* impl : kConvImpls) {
    const auto error = [&](const OperatorCase& c, const isa::Machine& m) {
      return Find(c, impl, m).status();
    };
    for (const auto& [name, value] :
         {std::pair{"groups", "2"}, {"bias", "1"}, {"relu", "1"}, {"out", "i8"}}) {
      const bool grouped = std::string_view(name) == "groups";
      const absl::Status status = error(
          Conv(grouped ? "8x8x64,32x3x3x32" : shapes, ir::Type::kI8, {{name, value}}), machine);
      EXPECT_TRUE(absl::IsNotFound(status)) << status;
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(absl::StrCat("has no conv2d with ", name, "=", value)));
    }
    EXPECT_TRUE(absl::IsNotFound(error(Conv(shapes, ir::Type::kF16), machine)));
    EXPECT_THAT(std::string(error(Conv(shapes), small).message()),
                HasSubstr("a filter needs 576 bytes of a bank of wmem, which has 256"));
  }
}

TEST(KernelTest, WhatIsMissingSaysSo) {
  const isa::Machine machine = TestMachine("mlu270");
  for (const char* impl : kImpls) {
    const absl::Status none = Find({.op = "clip", .shape = {4}}, impl, machine).status();
    EXPECT_TRUE(absl::IsNotFound(none)) << none;
    EXPECT_THAT(std::string(none.message()),
                HasSubstr(absl::StrCat("the ", impl, " has no kernel for 'clip'")));
    OperatorCase broadcast = {.op = "add", .shape = {4, 5}, .operands = {{1, 5}}};
    const absl::Status two = Find(broadcast, impl, machine).status();
    EXPECT_TRUE(absl::IsNotFound(two)) << two;
    broadcast.operands = {{4, 5}};
    EXPECT_TRUE(Find(broadcast, impl, machine).ok());
    EXPECT_THAT(
        std::string(Find({.op = "add", .shape = {4}, .dtype = ir::Type::kF64}, impl, machine)
                        .status()
                        .message()),
        HasSubstr("the card has no instruction add.f64"));
  }
}

}  // namespace
}  // namespace polynao::kernels
