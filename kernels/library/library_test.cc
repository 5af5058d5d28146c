// The hand-written kernels on the simulated card: values against plain loops, for shapes, types and
// machines at the edges; cycles against the bound.

#include "kernels/library/library.h"
#include "isa/bound.h"

#include <optional>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/library/conv2d.h"
#include "kernels/library/conv_shares.h"
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
                          ? ir::RandomTensor(spec.type, spec.shape, seed + tensors.size(),
                                             ValuesFor(**FindOperator(c)))
                          : ir::Tensor(spec.type, spec.shape));
  }
  return tensors;
}

absl::StatusOr<simulator::RunResult> Simulate(const HandWrittenKernel& kernel,
                                              const isa::Machine& machine,
                                              std::vector<ir::Tensor>& tensors) {
  kernel.Prepare(tensors);
  std::vector<simulator::Argument> arguments;
  size_t next = 0;
  for (size_t i = 0; i < kernel.program.params.size(); ++i) {
    arguments.push_back(kernel.program.params[i].is_tensor
                            ? simulator::Argument::Of(&tensors[next++])
                            : simulator::Argument::Scalar(kernel.scalars[i]));
  }
  simulator::RunOptions options;
  options.machine = &machine;
  return simulator::Run(isa::DianNao(), kernel.program, arguments, options);
}

std::string Name(const OperatorCase& c, std::string_view impl, const isa::Machine& machine) {
  return absl::StrCat(c.op, " ", ShapesText(c), " ", std::string(ir::TypeName(c.dtype)), " ",
                      std::string(impl), " ", machine.name);
}

// Inputs of a case and what its output must be, computed once for all kernels that are compared with it.
struct Data {
  std::vector<ir::Tensor> tensors;
  ir::Tensor expected;
};

Data MakeData(const OperatorCase& c) {
  Data data = {.tensors = Tensors(c, 7), .expected = {}};
  std::vector<ir::Tensor> expected = {data.tensors.back()};
  (*FindOperator(c))
      ->reference(c, absl::MakeSpan(data.tensors).subspan(0, data.tensors.size() - 1),
                  absl::MakeSpan(expected));
  data.expected = std::move(expected[0]);
  return data;
}

// Runs the kernel and compares all values; returns cycles.
absl::StatusOr<int64_t> RunAndCompare(const Data& data, const HandWrittenKernel& kernel,
                                      const isa::Machine& machine) {
  std::vector<ir::Tensor> tensors = data.tensors;
  const absl::StatusOr<simulator::RunResult> result = Simulate(kernel, machine, tensors);
  if (!result.ok()) return result.status();
  EXPECT_EQ(ir::Compare(tensors.back(), data.expected).max_abs, 0);
  return result->cycles;
}

absl::StatusOr<HandWrittenKernel> Find(const OperatorCase& c, std::string_view impl,
                                       const isa::Machine& machine) {
  const Target target = Card(machine);
  if (impl == "library") return FindLibraryKernel(c, target);
  // Every plan that the expert tries is compared.
  std::optional<Data> data;
  return FindExpertKernel(c, target, [&](const HandWrittenKernel& kernel) {
    if (!data) data = MakeData(c);
    return RunAndCompare(*data, kernel, machine);
  });
}

// Finds the kernel, runs it, compares all values; returns cycles.
int64_t MustAgree(const OperatorCase& c, std::string_view impl, const isa::Machine& machine) {
  SCOPED_TRACE(Name(c, impl, machine));
  const absl::StatusOr<HandWrittenKernel> kernel = Find(c, impl, machine);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  if (!kernel.ok()) return 0;
  const absl::StatusOr<int64_t> cycles = RunAndCompare(MakeData(c), *kernel, machine);
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
  const isa::Machine machine = FlatMachine();
  const auto efficiency = [&](const OperatorCase& c) {
    const int64_t bound = isa::BoundOf(machine, (*FindOperator(c))->work(c))->cycles;
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
  int count = 0;
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
            // The expert tries two dozen plans for each.
            if (impl == std::string_view("expert") && ++count % 5 > 1) continue;
            MustAgree(c, impl, machine);
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

// Every way to share a layer, whether it would be chosen or not: all grids of clusters and cores, filters by way
// of SMEM or not, several blocks of channels, shares that have no rows, columns or channels.
TEST(Conv2dTest, AllShares) {
  struct Layer {
    const char* shapes;
    const char* stride;
    std::vector<std::string> overrides;
  };
  for (const auto& [shapes, stride, overrides] :
       {Layer{"9x7x33,200x3x2x33", "1", {}},
        Layer{"12x13x16,70x3x3x16", "2", {"card.clusters=2", "cluster.cores=6"}},
        Layer{"7x7x20,300x1x1x20", "1", {"core.wmem_kib=8", "cluster.smem_kib=8"}}}) {
    const isa::Machine machine = TestMachine("mlu270", overrides);
    const Target target = Card(machine);
    const OperatorCase c = Conv(shapes, ir::Type::kI8, {{"stride", stride}});
    const absl::StatusOr<ConvCase> k = ReadConvCase(c, target, "the test");
    ASSERT_TRUE(k.ok()) << k.status();
    const Data data = MakeData(c);
    int ran = 0;
    for (const ConvShares& s : AllShares(*k, machine, 2)) {
      for (const bool expert : {false, true}) {
        SCOPED_TRACE(absl::StrCat(Name(c, expert ? "expert" : "library", machine), " stride ",
                                  stride, ", clusters ", s.cluster_rows, "x", s.cluster_columns,
                                  "x", s.cluster_channels, ", cores ", s.core_rows, "x",
                                  s.core_columns, "x", s.core_channels, ", by smem ", s.by_smem));
        const absl::StatusOr<HandWrittenKernel> kernel =
            expert ? ExpertConv2d(*k, target, s) : LibraryConv2d(*k, target, s);
        if (absl::IsResourceExhausted(kernel.status())) continue;
        ASSERT_TRUE(kernel.ok()) << kernel.status();
        const absl::StatusOr<int64_t> cycles = RunAndCompare(data, *kernel, machine);
        ASSERT_TRUE(cycles.ok()) << cycles.status();
        if (HasFailure()) return;
        ++ran;
      }
    }
    EXPECT_GE(ran, 70);
  }
}

// What the estimate chooses on mlu270.
TEST(Conv2dTest, TheBestShares) {
  const isa::Machine machine = TestMachine("mlu270");
  const auto best = [&](const char* shapes) {
    const ConvCase k = *ReadConvCase(Conv(shapes), Card(machine), "the test");
    return AllShares(k, machine, 2)[0];
  };
  // 16 runs of rows would leave two cores without work.
  const ConvShares wide = best("56x56x256,128x3x3x256");
  EXPECT_EQ(wide.grid_rows() * wide.grid_columns(), 16);
  EXPECT_EQ(wide.grid_columns(), 2);
  EXPECT_TRUE(wide.by_smem);
  // The filters weigh 94 times as much as the image.
  const ConvShares deep = best("7x7x512,512x3x3x512");
  EXPECT_GE(deep.grid_channels(), 4);
}

// Each cluster reads the filters from GMEM once.
TEST(Conv2dTest, FiltersComeOnce) {
  const isa::Machine machine = TestMachine("mlu270");
  const OperatorCase c = Conv("56x56x64,64x3x3x64");
  const Target target = Card(machine);
  const ConvCase k = *ReadConvCase(c, target, "the test");
  const ConvShares shares = AllShares(k, machine, 2)[0];
  for (const bool expert : {false, true}) {
    const absl::StatusOr<HandWrittenKernel> kernel =
        expert ? ExpertConv2d(k, target, shares) : LibraryConv2d(k, target, shares);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    std::vector<ir::Tensor> tensors = Tensors(c, 7);
    const absl::StatusOr<simulator::RunResult> result = Simulate(*kernel, machine, tensors);
    ASSERT_TRUE(result.ok()) << result.status();
    const auto gmem = static_cast<int>(isa::Space::kGmem),
               smem = static_cast<int>(isa::Space::kSmem);
    EXPECT_EQ(result->path_bytes[gmem][smem], shares.clusters() * 64 * 3 * 3 * 64) << expert;
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
  const isa::Machine machine = FlatMachine();
  const OperatorCase c = Conv("55x55x128,64x3x3x128");
  const int64_t bound = isa::BoundOf(machine, (*FindOperator(c))->work(c))->cycles;
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
