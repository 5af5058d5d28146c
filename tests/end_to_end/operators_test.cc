// Every operator on every target: values against the plain-loop reference, cycles against the
// bound.

#include <random>

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/te/operators.h"
#include "tools/driver/case.h"

namespace polynao::driver {
namespace {

using ::testing::HasSubstr;

struct Setting {
  const char* target;
  const char* impl;
};

CaseReport MustRun(const kernels::OperatorCase& c, const CaseSettings& settings) {
  absl::StatusOr<CaseReport> report = RunCase(c, settings);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return CaseReport();
  EXPECT_TRUE(report->ok) << report->max_abs_error;
  EXPECT_EQ(report->max_abs_error, 0);
  return *std::move(report);
}

std::string Name(const kernels::OperatorCase& c, const CaseSettings& s) {
  return c.op + " " + kernels::ShapeText(c.shape) + " " + std::string(ir::TypeName(c.dtype)) + " " +
         s.target + " " + s.impl + " " + s.config;
}

// Shapes: nothing, one element, primes, multiples of the vector's 64 and their neighbours, four
// dimensions.
const std::vector<std::vector<int64_t>> kShapes = {
    {}, {0}, {1}, {7}, {63}, {64}, {65}, {3, 0, 5}, {63, 65}, {13, 17, 19}, {2, 3, 5, 7}, {1024}};

TEST(OperatorsTest, EveryOperatorAndTypeOnTheCard) {
  for (const kernels::Operator& op : kernels::Operators()) {
    for (const ir::Type type :
         {ir::Type::kF16, ir::Type::kF32, ir::Type::kI32, ir::Type::kI16, ir::Type::kI8}) {
      for (const std::vector<int64_t>& shape : kShapes) {
        for (const char* impl : {"compiled", "library"}) {
          const kernels::OperatorCase c = {.op = op.name, .shape = shape, .dtype = type};
          CaseSettings settings;
          settings.impl = impl;
          SCOPED_TRACE(Name(c, settings));
          MustRun(c, settings);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(OperatorsTest, EveryMachine) {
  for (const char* config : {"mlu270", "mlu290", "mlu370", "unit"}) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1}, {4097}, {255, 27, 27}}) {
      for (const char* impl : {"compiled", "library"}) {
        const kernels::OperatorCase c = {.op = "add", .shape = shape, .dtype = ir::Type::kF16};
        CaseSettings settings;
        settings.impl = impl;
        settings.config = config;
        SCOPED_TRACE(Name(c, settings));
        MustRun(c, settings);
      }
    }
  }
}

TEST(OperatorsTest, ProcessorTargets) {
  for (const kernels::Operator& op : kernels::Operators()) {
    for (const ir::Type type : {ir::Type::kF16, ir::Type::kBF16, ir::Type::kF32, ir::Type::kF64,
                                ir::Type::kI32, ir::Type::kU8}) {
      for (const std::vector<int64_t>& shape : kShapes) {
        for (const char* target : {"cpu", "interp"}) {
          const kernels::OperatorCase c = {.op = op.name, .shape = shape, .dtype = type};
          CaseSettings settings;
          settings.target = target;
          SCOPED_TRACE(Name(c, settings));
          MustRun(c, settings);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(OperatorsTest, ByWayOfC) {
  for (const kernels::Operator& op : kernels::Operators()) {
    const kernels::OperatorCase c = {.op = op.name, .shape = {63, 65}, .dtype = ir::Type::kF16};
    CaseSettings settings;
    settings.target = "c";
    SCOPED_TRACE(Name(c, settings));
    MustRun(c, settings);
  }
}

// A third of 16 KiB is no multiple of what buffers are aligned to, and tiles are as large as fits.
TEST(OperatorsTest, TilesThatFillTheMemory) {
  for (const ir::Type type : {ir::Type::kI8, ir::Type::kF16, ir::Type::kF32}) {
    const kernels::OperatorCase c = {.op = "sub", .shape = {100003}, .dtype = type};
    CaseSettings settings;
    settings.overrides = {"core.nmem_kib=16"};
    SCOPED_TRACE(Name(c, settings));
    MustRun(c, settings);
  }
}

// Random shapes on random machines.
TEST(OperatorsTest, RandomCases) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  for (int round = 0; round < 100; ++round) {
    kernels::OperatorCase c;
    const auto operators = kernels::Operators();
    c.op = operators[pick(0, operators.size() - 1)].name;
    c.dtype = std::array{ir::Type::kF16, ir::Type::kF32, ir::Type::kI32, ir::Type::kI8}[pick(0, 3)];
    for (int64_t rank = pick(0, 4); rank > 0; --rank) c.shape.push_back(pick(1, 12) * pick(1, 3));
    CaseSettings settings;
    settings.seed = random();
    settings.config = std::array{"mlu270", "mlu370", "unit"}[pick(0, 2)];
    settings.impl = pick(0, 3) == 0 ? "library" : "compiled";
    settings.overrides = {StrCat("core.nmem_kib=", pick(1, 8) * 16),
                          StrCat("card.clusters=", pick(1, 4)),
                          StrCat("cluster.cores=", pick(1, 4))};
    SCOPED_TRACE(Name(c, settings) + " " + settings.overrides[0] + " " + settings.overrides[1] +
                 " " + settings.overrides[2]);
    MustRun(c, settings);
    if (HasFailure()) return;
  }
}

// What the compiled program must reach on large shapes that nothing divides.
TEST(OperatorsTest, LargeShapesRunNearTheBound) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{255, 27, 27}, {127, 55, 55}, {255, 55, 55, 7}}) {
    const kernels::OperatorCase c = {.op = "add", .shape = shape, .dtype = ir::Type::kF16};
    SCOPED_TRACE(kernels::ShapeText(shape));
    const CaseReport report = MustRun(c, {});
    ASSERT_TRUE(report.simulated);
    EXPECT_GE(report.efficiency(), 0.6);
    EXPECT_LE(report.efficiency(), 1.0);
    // No element by element code: the work is done by tensor instructions.
    EXPECT_LT(report.simulated->instruction_count(), 5000);
  }
}

TEST(OperatorsTest, TheSameRunGivesTheSameCycles) {
  const kernels::OperatorCase c = {.op = "mul", .shape = {127, 27}, .dtype = ir::Type::kF32};
  const CaseReport a = MustRun(c, {});
  const CaseReport b = MustRun(c, {});
  EXPECT_EQ(*a.simulated, *b.simulated);
}

TEST(OperatorsTest, WhatDoesNotFitSaysSo) {
  const auto error = [](kernels::OperatorCase c, CaseSettings s) {
    const absl::StatusOr<CaseReport> report = RunCase(c, s);
    EXPECT_FALSE(report.ok());
    return std::string(report.status().message());
  };
  const kernels::OperatorCase add = {.op = "add", .shape = {64}, .dtype = ir::Type::kF16};
  EXPECT_EQ(error({.op = "frobnicate", .shape = {1}, .dtype = ir::Type::kF16}, {}),
            "no operator is named 'frobnicate'; there are: add, sub, mul, max, min");
  CaseSettings s;
  s.target = "tpu";
  EXPECT_EQ(error(add, s), "no target is named 'tpu'; there are: diannao, cpu, c, interp");
  s = {};
  s.config = "mlu999";
  EXPECT_THAT(error(add, s), HasSubstr("no config is named 'mlu999'"));
  s = {};
  s.impl = "handmade";
  EXPECT_THAT(error(add, s), HasSubstr("no implementation is named 'handmade'"));
  s = {};
  s.target = "cpu";
  s.impl = "library";
  EXPECT_THAT(error(add, s), HasSubstr("expected --target=diannao, found --target=cpu"));
  EXPECT_EQ(error({.op = "add", .shape = {4}, .dtype = ir::Type::kF64}, {}),
            "operator add of f64: the card has no instruction add.f64");
  EXPECT_THAT(error({.op = "add", .shape = {1 << 20, 1 << 20}, .dtype = ir::Type::kF16}, {}),
              HasSubstr("expected fewer than 2^40 elements"));
  s = {};
  s.overrides = {"gmem.mib=1"};
  EXPECT_EQ(error({.op = "add", .shape = {1 << 18}, .dtype = ir::Type::kF16}, s),
            "the case's tensors take 1.5 MiB: expected at most 1.0 MiB, the card's GMEM");
  s = {};
  s.target = "interp";
  EXPECT_THAT(error({.op = "add", .shape = {1 << 19, 1 << 20}, .dtype = ir::Type::kF16}, s),
              HasSubstr("half of this machine's memory"));
}

}  // namespace
}  // namespace polynao::driver
