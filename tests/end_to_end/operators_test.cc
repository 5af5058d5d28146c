// Every operator on every target: values against the plain-loop reference, cycles against the
// bound.

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include "base/text.h"
#include "cases/machines.h"
#include "cases/run_case.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/operators.h"
#include "nlohmann/json.hpp"

namespace polynao::cases {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

struct Setting {
  const char* target;
  const char* impl;
};

CaseReport MustRun(const kernels::OperatorCase& c, const CaseSettings& settings) {
  absl::StatusOr<CaseReport> report = RunCase(c, settings);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return CaseReport();
  EXPECT_TRUE(report->ok) << report->max_abs_error << " " << report->max_rel_error;
  // Only the CPU's own math functions may differ, and by little.
  const bool is_exact = settings.target == "diannao" || settings.target == "interp" ||
                        (*kernels::FindOperator(c))->tolerance_steps == 0;
  if (is_exact) EXPECT_EQ(report->max_abs_error, 0);
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

// Every target sees an elementwise operator's tensors as flat, of whatever type: other types than f16 go without the
// shapes whose dimensions only make another length.
std::vector<std::vector<int64_t>> ShapesOf(ir::Type type) {
  std::vector<std::vector<int64_t>> shapes;
  for (const std::vector<int64_t>& shape : kShapes) {
    if (type == ir::Type::kF16 || shape.size() < 3) shapes.push_back(shape);
  }
  return shapes;
}

// What the card's vector unit computes each operator in.
const std::vector<ir::Type>& CardTypes(const kernels::Operator& op) {
  using enum ir::Type;
  static const auto* floats = new std::vector<ir::Type>{kF16, kF32};
  static const auto* wide = new std::vector<ir::Type>{kF16, kF32, kI32};
  static const auto* all = new std::vector<ir::Type>{kF16, kF32, kI32, kI16, kI8};
  static const auto* floats_and_bytes = new std::vector<ir::Type>{kF16, kF32, kI8};
  if (op.takes_i8) return *floats_and_bytes;
  if (op.floats_only) return *floats;
  return op.name == "relu" ? *wide : *all;
}

// Those that take any shape; the others have tests of their own.
std::vector<kernels::Operator> ElementwiseOperators() {
  std::vector<kernels::Operator> result;
  for (const kernels::Operator& op : kernels::Operators()) {
    if (op.shapes == std::vector<std::string>{"any"}) result.push_back(op);
  }
  return result;
}

// Hand-written, as library and as expert.
bool IsInLibrary(const kernels::Operator& op, ir::Type type) {
  if (op.takes_i8 && type == ir::Type::kI8) return false;
  for (const char* name :
       {"leaky_relu", "clip", "add_relu", "add_n", "silu", "gelu", "hard_swish"}) {
    if (op.name == name) return false;
  }
  return true;
}

TEST(OperatorsTest, EveryOperatorAndTypeOnTheCard) {
  for (const kernels::Operator& op : ElementwiseOperators()) {
    for (const ir::Type type : CardTypes(op)) {
      for (const std::vector<int64_t>& shape : ShapesOf(type)) {
        for (const char* impl : {"compiled", "library", "expert"}) {
          const kernels::OperatorCase c = {.op = op.name, .shape = shape, .dtype = type};
          CaseSettings settings;
          settings.impl = impl;
          if (settings.impl != "compiled" && !IsInLibrary(op, type)) continue;
          SCOPED_TRACE(Name(c, settings));
          MustRun(c, settings);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(OperatorsTest, TypesThatTheCardLacksSaySo) {
  for (const kernels::Operator& op : ElementwiseOperators()) {
    for (const ir::Type type : {ir::Type::kF64, ir::Type::kI8, ir::Type::kI32, ir::Type::kU8}) {
      const std::vector<ir::Type>& types = CardTypes(op);
      if (std::find(types.begin(), types.end(), type) != types.end()) continue;
      for (const char* impl : {"compiled", "library", "expert"}) {
        const kernels::OperatorCase c = {.op = op.name, .shape = {64}, .dtype = type};
        CaseSettings settings;
        settings.impl = impl;
        if (settings.impl != "compiled" && !IsInLibrary(op, type)) continue;
        SCOPED_TRACE(Name(c, settings));
        if (op.name == "relu" && settings.impl == "compiled" && ir::IsInt(type)) {
          MustRun(c, settings);  // `maxs` computes it.
          continue;
        }
        EXPECT_THAT(
            std::string(RunCase(c, settings).status().message()),
            AnyOf(HasSubstr("the card has no instruction"), HasSubstr("expected f16, bf16, f32")));
      }
    }
  }
}

// Functions of i8 are exact, of all 256 values, at scales that reach the whole range and that reach little of it.
TEST(OperatorsTest, FunctionsOfBytes) {
  for (const char* op : {"sigmoid", "tanh"}) {
    for (const char* scale : {"0.0625", "0.001", "0.37", "7", "1e30"}) {
      for (const char* target : {"diannao", "cpu", "c", "interp"}) {
        kernels::OperatorCase c = {.op = op, .shape = {40, 256}, .dtype = ir::Type::kI8};
        c.attributes["scale"] = scale;
        CaseSettings settings;
        settings.target = target;
        SCOPED_TRACE(Name(c, settings) + " " + scale);
        MustRun(c, settings);
        if (HasFailure()) return;
      }
    }
  }
  // One value by hand: sigmoid(16 / 16) is 0.7311, 187.2 steps of 1/256.
  const absl::StatusOr<const kernels::Operator*> sigmoid =
      kernels::FindOperator({.op = "sigmoid", .shape = {3}, .dtype = ir::Type::kI8});
  ASSERT_TRUE(sigmoid.ok());
  ir::Tensor x(ir::Type::kI8, {3}), y(ir::Type::kI8, {3});
  x.SetInt(0, 16), x.SetInt(1, 127), x.SetInt(2, -128);
  (*sigmoid)->reference({.op = "sigmoid", .shape = {3}, .dtype = ir::Type::kI8}, {x}, {&y, 1});
  EXPECT_EQ(y.Int(0), 59);
  EXPECT_EQ(y.Int(1), 127);
  EXPECT_EQ(y.Int(2), -128);
}

// Of each operator that takes a number: others than its default, on all targets.
TEST(OperatorsTest, Scalars) {
  for (const kernels::Operator& op : ElementwiseOperators()) {
    if (!op.scalar) continue;
    for (const double scalar : {0.0, 0.1, 1.0, 3.0, -2.5}) {
      const bool is_integer = scalar == static_cast<int64_t>(scalar);
      for (const ir::Type type : {ir::Type::kF16, ir::Type::kF32, ir::Type::kI32}) {
        if (ir::IsInt(type) && (op.floats_only || !is_integer)) continue;
        for (const char* target : {"diannao", "library", "expert", "cpu", "interp"}) {
          const kernels::OperatorCase c = {
              .op = op.name, .shape = {67}, .dtype = type, .scalar = scalar};
          CaseSettings settings;
          if (std::string_view(target) == "library" || std::string_view(target) == "expert") {
            if (!IsInLibrary(op, type)) continue;
            settings.impl = target;
          } else {
            settings.target = target;
          }
          SCOPED_TRACE(Name(c, settings) + " " + StrCat(scalar));
          MustRun(c, settings);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// An operator that overwrites its operand keeps one buffer on chip, with copies in and out; those that read the
// operand again behind other steps need another one.
TEST(OperatorsTest, OnChipResultsTakeThePlaceOfOperands) {
  for (const kernels::Operator& op : ElementwiseOperators()) {
    const kernels::OperatorCase c = {.op = op.name, .shape = {127, 55, 55}};
    const absl::StatusOr<isa::Machine> machine = LoadMachine("mlu270", {});
    ASSERT_TRUE(machine.ok());
    const absl::StatusOr<Target> target = MakeTarget("diannao", &*machine);
    absl::StatusOr<ir::Function> function = op.build(c, *target);
    ASSERT_TRUE(function.ok()) << function.status();
    ASSERT_TRUE(RunPasses(*function, *PipelineFor(*target), *target).ok());
    std::set<std::string> raw;
    int64_t bytes = 0;
    ir::ForEachStmt(function->body, [&](ir::Stmt s) {
      if (!s.Is(ir::StmtKind::kAllocate)) return true;
      raw.insert(s.buffer()->name);
      const int64_t size = s.buffer()->extents[0].int_value() * ir::ByteSize(s.buffer()->type);
      bytes = std::max(bytes, size);
      return true;
    });
    // The pipeline's two copies of a buffer are one place here.
    std::set<std::string> names;
    for (std::string name : raw) {
      const std::string base = name.substr(0, name.size() - 2);
      if (raw.contains(base + ".0") && raw.contains(base + ".1")) name = base;
      names.insert(name);
    }
    const bool reads_again = op.name == "leaky_relu" || op.name == "silu" || op.name == "gelu" ||
                             op.name == "hard_swish";
    const size_t buffers = reads_again ? 2 : op.tensors(c).size() - 1;
    EXPECT_EQ(names.size(), buffers) << op.name << "\n" << ir::Print(*function);
    EXPECT_LE(2 * bytes * static_cast<int64_t>(buffers), machine->nmem_bytes()) << op.name;
  }
}

TEST(OperatorsTest, EveryMachine) {
  for (const char* config : {"mlu270", "mlu290", "mlu370", "unit"}) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1}, {4097}, {255, 27, 27}}) {
      for (const char* impl : {"compiled", "library", "expert"}) {
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

// Of shapes and types every other pair is compiled; with POLYNAO_RANDOM_CASES all are.
TEST(OperatorsTest, ProcessorTargets) {
  const bool all = std::getenv("POLYNAO_RANDOM_CASES") != nullptr;
  int turn = 0;
  for (const kernels::Operator& op : ElementwiseOperators()) {
    for (const ir::Type type : {ir::Type::kF16, ir::Type::kBF16, ir::Type::kF32, ir::Type::kF64,
                                ir::Type::kI32, ir::Type::kU8, ir::Type::kI8}) {
      if (op.floats_only && !ir::IsFloat(type) && !(op.takes_i8 && type == ir::Type::kI8)) continue;
      for (const std::vector<int64_t>& shape : ShapesOf(type)) {
        ++turn;
        for (const std::string target : {"cpu", "interp"}) {
          if (!all && target == "cpu" && turn % 2 == 0) continue;
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
  for (const kernels::Operator& op : ElementwiseOperators()) {
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

// Random shapes on random machines; POLYNAO_RANDOM_CASES=20000 runs more of them, POLYNAO_SEED=7 the
// same ones again.
TEST(OperatorsTest, RandomCases) {
  const char* count_text = std::getenv("POLYNAO_RANDOM_CASES");
  const char* seed_text = std::getenv("POLYNAO_SEED");
  const int count = count_text != nullptr ? std::atoi(count_text) : 700;
  const unsigned seed = seed_text != nullptr ? std::atoi(seed_text) : std::random_device{}();
  SCOPED_TRACE(testing::Message() << "POLYNAO_SEED=" << seed);
  std::mt19937 random(seed);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  const int64_t primes[] = {2, 3, 5, 7, 13, 31, 61, 127, 251, 293};
  // Any extent up to 300, a prime, or just off a multiple of 16 or 64.
  const auto extent = [&] {
    switch (pick(0, 3)) {
      case 0:
        return pick(1, 300);
      case 1:
        return primes[pick(0, std::size(primes) - 1)];
      case 2:
        return std::max<int64_t>(1, pick(1, 18) * 16 + pick(-1, 1));
      default:
        return std::max<int64_t>(1, pick(1, 4) * 64 + pick(-1, 1));
    }
  };
  const std::vector<kernels::Operator> operators = ElementwiseOperators();
  for (int round = 0; round < count; ++round) {
    kernels::OperatorCase c;
    const kernels::Operator& op = operators[pick(0, operators.size() - 1)];
    const std::vector<ir::Type>& types = CardTypes(op);
    c.op = op.name;
    c.dtype = types[pick(0, types.size() - 1)];
    // Of large products one dimension is dropped after the other.
    for (int64_t rank = pick(0, 4); rank > 0; --rank) c.shape.push_back(extent());
    while (te::ElementCount(c.shape) > 40000) c.shape.pop_back();
    CaseSettings settings;
    settings.seed = random();
    settings.config = std::array{"mlu270", "mlu290", "mlu370", "unit"}[pick(0, 3)];
    settings.impl = "compiled";
    if (IsInLibrary(op, c.dtype) && pick(0, 3) == 0)
      settings.impl = pick(0, 1) == 0 ? "library" : "expert";
    settings.overrides = {StrCat("core.nmem_kib=", pick(1, 8) * 16),
                          StrCat("card.clusters=", pick(1, 4)),
                          StrCat("cluster.cores=", pick(1, 4))};
    SCOPED_TRACE(Name(c, settings) + " " + settings.overrides[0] + " " + settings.overrides[1] +
                 " " + settings.overrides[2]);
    MustRun(c, settings);
    if (HasFailure()) return;
  }
}

// The efficiency that compiled programs must reach on large shapes that no tile size divides.
TEST(OperatorsTest, LargeShapesRunNearTheBound) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{255, 27, 27}, {127, 55, 55}, {255, 55, 55, 7}}) {
    // The schedule of the cost model; a tuned one may have more and shorter tiles.
    const kernels::OperatorCase c = {
        .op = "add", .shape = shape, .dtype = ir::Type::kF16, .use_tuned = false};
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

TEST(OperatorsTest, ValuesAreNotCheckedIfNobodyAsks) {
  const kernels::OperatorCase c = {.op = "mul", .shape = {127, 27}, .dtype = ir::Type::kF32};
  for (const char* target : {"diannao", "cpu", "interp"}) {
    CaseSettings settings;
    settings.target = target;
    const CaseReport checked = MustRun(c, settings);
    settings.check_values = false;
    const CaseReport unchecked = MustRun(c, settings);
    EXPECT_EQ(checked.simulated, unchecked.simulated);
    EXPECT_EQ(checked.ToJson()["ok"], true);
    EXPECT_EQ(checked.ToJson()["values_checked"], true);
    const nlohmann::ordered_json json = unchecked.ToJson();
    EXPECT_TRUE(json["ok"].is_null());
    EXPECT_EQ(json["values_checked"], false);
    EXPECT_TRUE(json["max_abs_error"].is_null());
    EXPECT_TRUE(json["max_rel_error"].is_null());
  }
}

TEST(OperatorsTest, WhatDoesNotFitSaysSo) {
  const auto error = [](kernels::OperatorCase c, CaseSettings s) {
    const absl::StatusOr<CaseReport> report = RunCase(c, s);
    EXPECT_FALSE(report.ok());
    return std::string(report.status().message());
  };
  const kernels::OperatorCase add = {.op = "add", .shape = {64}, .dtype = ir::Type::kF16};
  // All names, with those of the TOPI table behind these.
  EXPECT_THAT(
      error({.op = "frobnicate", .shape = {1}, .dtype = ir::Type::kF16}, {}),
      AllOf(HasSubstr("no operator is named 'frobnicate'; there are: add, sub, mul, "),
            HasSubstr(", conv2d, matmul, max_pool2d, "), HasSubstr(", global_avg_pool, add_relu, "),
            HasSubstr(", batch_to_space_nd, ")));
  CaseSettings s;
  s.target = "tpu";
  EXPECT_EQ(error(add, s), "no target is named 'tpu'; there are: diannao, cpu, c, cuda, interp");
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
            "operator add: tensor C: the card has no instruction for A[i] + B[i] of f64");
  EXPECT_EQ(error({.op = "clip", .shape = {4}, .dtype = ir::Type::kF64}, {}),
            "operator clip: tensor Y: the card has no instruction for min(T0[i], 6.0) of f64");
  EXPECT_EQ(error({.op = "div", .shape = {4}, .dtype = ir::Type::kI32}, {}),
            "operator div of i32: expected f16, bf16, f32 or f64");
  EXPECT_EQ(error({.op = "add", .shape = {4}, .scalar = 2}, {}),
            "operator add takes no scalar, found 2");
  EXPECT_EQ(error({.op = "adds", .shape = {4}, .dtype = ir::Type::kI8, .scalar = 0.5}, {}),
            "operator adds, scalar 0.5: expected a value of i8");
  EXPECT_EQ(error({.op = "adds", .shape = {4}, .dtype = ir::Type::kI8, .scalar = 300}, {}),
            "operator adds, scalar 300: expected a value of i8");
  s = {};
  s.impl = "library";
  EXPECT_EQ(error({.op = "clip", .shape = {4}}, s), "the library has no kernel for 'clip'");
  s.impl = "expert";
  EXPECT_EQ(error({.op = "clip", .shape = {4}}, s), "the expert has no kernel for 'clip'");
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
}  // namespace polynao::cases
