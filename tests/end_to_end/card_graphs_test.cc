// Graphs without a schedule, compiled for the card and simulated: all values are those of the interpreter, on random
// graphs. POLYNAO_RANDOM_CASES=2000 runs more of them, POLYNAO_SEED=7 the same ones again.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
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
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/instruction_set.h"
#include "simulator/simulator.h"
#include "testing/machine.h"
#include "tests/end_to_end/card_graph_for_test.h"

namespace polynao {
namespace {

using ir::Expr;
using ir::Type;
using te::Axes;
using te::Graph;
using te::Shape;
using te::Tensor;

// ---- random elementwise graphs

class RandomGraph {
 public:
  RandomGraph(Random& random, Type type) : random_(random), g_("random"), type_(type) {
    const int64_t rank = random.Pick(0, 4);
    for (int64_t d = 0; d < rank; ++d)
      domain_.push_back(random.Of<int64_t>({1, 2, 3, 5, 7, 16, 31, 64, 65, 128}));
    while (te::ElementCount(domain_) > 20000) domain_.pop_back();
    if (random.OneIn(40) && !domain_.empty()) domain_[0] = 0;
    const int64_t inputs = random.Pick(1, 4);
    for (int64_t i = 0; i < inputs; ++i)
      tensors_.push_back(g_.Placeholder(StrCat("X", i), InputShape(), type));
  }

  // Further computes over the domain of `first`.
  RandomGraph(Random& random, const Graph& g, const Tensor& first)
      : random_(random), g_(g), type_(first.type()), domain_(first.shape()), tensors_({first}) {
    const int64_t inputs = random.Pick(0, 2);
    for (int64_t i = 0; i < inputs; ++i) {
      // Where channels are no whole groups, a step of which all operands are repeated is an error.
      const bool is_any = domain_.back() % 64 == 0 && random.OneIn(2);
      const Shape shape = is_any ? InputShape() : random.OneIn(2) ? Shape{domain_.back()} : domain_;
      tensors_.push_back(g_.Placeholder(StrCat("R", i, first.name()), shape, type_));
    }
  }

  // An expression that reads `first`.
  Tensor MakeOf(const Tensor& first, const std::string& name, int depth) {
    return g_.Compute(name, domain_, [&](const Axes& at) {
      const Expr value = Value(at, depth);
      return random_.OneIn(2) ? first(at) + value : ir::Max(value * first(at), Load(at));
    });
  }

  Tensor Make() {
    const int64_t computes = random_.Pick(1, 4);
    for (int64_t i = 0; i + 1 < computes; ++i) {
      // Of the shape of all, or of some of the last dimensions.
      const Shape shape(domain_.begin() + (random_.OneIn(3) ? random_.Pick(0, domain_.size()) : 0),
                        domain_.end());
      tensors_.push_back(Compute(StrCat("T", i), shape));
    }
    return Compute("Y", domain_);
  }
  std::string Text() const { return StrCat(ir::TypeName(type_), " ", absl::StrJoin(domain_, "x")); }

 private:
  Shape InputShape() {
    Shape shape(domain_.begin() + (random_.OneIn(2) ? random_.Pick(0, domain_.size()) : 0),
                domain_.end());
    for (int64_t& extent : shape) {
      if (random_.OneIn(4)) extent = 1;
    }
    return shape;
  }

  Tensor Compute(const std::string& name, const Shape& shape) {
    return g_.Compute(name, shape, [&](const Axes& at) { return Value(at, 4); });
  }

  // An element of a tensor that can be read at `at`, whose dimensions are the last ones of the domain.
  Expr Load(const Axes& at) {
    std::vector<Expr> loads;
    for (const Tensor& t : tensors_) {
      if (t.rank() > at.size()) continue;
      Axes own;
      for (size_t d = 0; d < t.rank(); ++d) {
        const bool is_one = t.shape()[d] == 1;
        own.push_back(is_one ? g_.context().Int(g_.index_type(), 0) : at[at.size() - t.rank() + d]);
      }
      loads.push_back(t(own));
    }
    return loads.empty() ? g_.context().Const(type_, 3) : random_.Of(loads);
  }

  Expr Value(const Axes& at, int depth) {
    if (depth == 0 || random_.OneIn(5)) {
      return random_.OneIn(6) ? g_.context().Const(type_, random_.Pick(-3, 3)) : Load(at);
    }
    const Expr a = Value(at, depth - 1);
    const auto b = [&] { return Value(at, depth - 1); };
    const bool is_float = ir::IsFloat(type_);
    // Conditions on integers may not overflow (they count as arithmetic on indices), as random ones do.
    switch (random_.Pick(0, is_float ? 10 : 5)) {
      case 0:
        return a + b();
      case 1:
        return a - b();
      case 2:
        return a * b();
      case 3:
        return ir::Max(a, b());
      case 4:
        return ir::Min(a, b());
      case 5:
        return ir::Max(a, g_.context().Const(type_, 0));
      case 6:
        return te::Select(a < b(), b(), b());
      case 7:
        return te::Select(ir::And(a <= b(), ir::Ne(b(), b())), b(), a);
      case 8:
        return g_.context().Call(
            type_, random_.Of<std::string>({"exp", "tanh", "sigmoid", "abs", "sqrt"}), {a});
      case 9:
        return a / b();
      default: {
        // By way of the other type of floats.
        const Type other = type_ == Type::kF16 ? Type::kF32 : Type::kF16;
        return g_.context().Cast(type_, g_.context().Cast(other, a) * 0.25);
      }
    }
  }

  Random& random_;
  Graph g_;
  const Type type_;
  Shape domain_;
  std::vector<Tensor> tensors_;
};

// What the analyzer makes of the whole value, within its limit of steps, it makes something else of, and so on.
TEST(CardGraphsTest, ValuesThatAreNotSimplifiedAtOnce) {
  Graph g("long");
  const Tensor x0 = g.Placeholder("X0", {}, Type::kI16), x1 = g.Placeholder("X1", {}, Type::kI16);
  const Tensor x2 = g.Placeholder("X2", {64, 16}, Type::kI16);
  const Expr a = x0(Axes()), b = x1(Axes());
  const auto i16 = [&](int64_t value) { return g.context().Const(Type::kI16, value); };
  const Expr none = i16(0);
  const Tensor t0 = g.Compute("T0", {64, 16}, [&](const Axes& at) -> Expr {
    const Expr c = x2(at);
    return ir::Max(a, b) * (a - -2) - ir::Max(c + b, none) + (ir::Max(c * b, c) + ir::Max(b, c));
  });
  const Tensor t1 =
      g.Compute("T1", {64, 16}, [&](const Axes& at) -> Expr { return x2(at) * x2(at); });
  const Tensor t2 = g.Compute("T2", {16}, [&](const Axes&) -> Expr {
    return ir::Max(none, i16(2)) + ir::Max(a, none) + ir::Min(ir::Max(b, none), b * none) +
           b * ir::Max(i16(3) + a, none);
  });
  const Tensor y = g.Compute("Y", {64, 16}, [&](const Axes& at) -> Expr {
    const Expr c = x2(at), t = t0(at);
    return ir::Min(t2(at[1]) + t1(at) + (b + -1) - c,
                   ir::Min(ir::Min(ir::Max(t, none), c - t), t1(at) * ir::Max(c, i16(-2))));
  });
  Exceptions exceptions;
  MustAgree(y, TestMachine("mlu270"), /*choice=*/0, /*seed=*/1, exceptions);
}

void RunElementwise(Random& random, unsigned seed, Exceptions& exceptions) {
  const isa::Machine machine =
      TestMachine("mlu270", {StrCat("core.nmem_kib=", random.Pick(2, 8) * 32),
                             StrCat("card.clusters=", random.Pick(1, 4)),
                             StrCat("cluster.cores=", random.Pick(1, 4))});
  RandomGraph graph(random,
                    random.Of<Type>({Type::kF16, Type::kF32, Type::kI32, Type::kI16, Type::kI8}));
  const Tensor y = graph.Make();
  SCOPED_TRACE(graph.Text());
  MustAgree(y, machine, random.OneIn(2) ? 0 : random.Pick(0, 20), seed, exceptions);
}

TEST(CardGraphsTest, RandomElementwiseGraphs) {
  ForRandomSeeds(150, /*scalar_rate=*/0, RunElementwise);
}

// Of a long expression a step is left that adds 0, of which the passes make a copy, and no instruction.
TEST(CardGraphsTest, StepsThatAddZero) {
  constexpr unsigned kSeed = 2290939886;
  Random random(kSeed);
  Exceptions exceptions;
  RunElementwise(random, kSeed, exceptions);
  EXPECT_EQ(exceptions.scalar, 0);
}

// Margins above and to the left alone, whose condition says nothing of the other end: where rows are made longer, so
// that each begins where the tensor unit may read (9 columns of 24 bytes: 16), nothing is read behind them.
TEST(CardGraphsTest, LongerRowsOfAMarginOnOneSide) {
  constexpr int64_t kRows = 5, kColumns = 7, kChannels = 24, kFilters = 64;
  Graph g("one_side");
  const Tensor x = g.Placeholder("X", {kRows, kColumns, kChannels}, Type::kI8);
  const Tensor f = g.ConstantPlaceholder("F", {kFilters, 3, 3, kChannels}, Type::kI8);
  const Tensor p =
      g.Compute("P", {kRows + 2, kColumns + 2, kChannels}, [&](Expr i, Expr j, Expr c) {
        return te::Select(ir::And(2 <= i, 2 <= j), x(i - 2, j - 2, c), 0.0);
      });
  const te::ReduceAxis r = g.ReduceAxisOf("r", 3), s = g.ReduceAxisOf("s", 3);
  const te::ReduceAxis k = g.ReduceAxisOf("k", kChannels);
  const auto wide = [&](Expr e) { return g.context().Cast(Type::kI32, e); };
  const Tensor sums = g.Compute("S", {kRows, kColumns, kFilters}, [&](Expr i, Expr j, Expr c) {
    return te::ReduceSum(wide(p(i + r, j + s, k)) * wide(f(c, r, s, k)), r, s, k);
  });
  const Tensor y = g.Compute("Y", sums.shape(), [&](const Axes& at) {
    return g.context().Cast(Type::kF16, g.context().Cast(Type::kF32, sums(at)) * 0.5);
  });
  const isa::Machine machine = TestMachine("mlu270");
  Target target;
  target.name = "diannao";
  target.instructions = &isa::DianNao(), target.machine = &machine;
  const auto program = te::CardProgram::Create(y, target);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto schedules = program->Schedules({{"stream", 1}, {"parts", 3}}, false);
  ASSERT_FALSE(schedules.empty());
  const absl::StatusOr<ir::Function> function = program->Build(schedules[0].choice);
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_THAT(ir::Print(*function), testing::HasSubstr(", 16, 24] @nmem"));
  std::vector<ir::Tensor> inputs = Inputs(y, /*seed=*/1, ir::Values::kAll);
  const ir::Tensor expected = *Meaning(y, inputs);
  // The host lays out filters row by row of their window.
  const ir::Tensor whole = inputs[1];
  for (int64_t i = 0; i < whole.element_count(); ++i) {
    const int64_t row = 3 * kChannels, filter = i / (3 * row), part = i / row % 3;
    inputs[1].SetInt((part * kFilters + filter) * row + i % row, whole.Int(i));
  }
  inputs[1].shape = {3, kFilters, 1, 3, kChannels};
  ir::Tensor output(y.type(), y.shape());
  auto interpreter = ir::Interpreter::Create(*function);
  ASSERT_TRUE(interpreter.ok()) << interpreter.status();
  const absl::Status status = (*interpreter)
                                  ->Run({ir::Argument::Of(&inputs[0]), ir::Argument::Of(&inputs[1]),
                                         ir::Argument::Of(&output)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ir::FirstDifference(output, expected), -1);
}

// A convolution of i8, in f16.
Tensor RandomConvolution(Random& random, Graph& g, const Tensor& x, const std::string& name,
                         int64_t channels = 0) {
  const int64_t kh = random.Pick(1, std::min<int64_t>(3, x.shape()[0]));
  const int64_t kw = random.Pick(1, std::min<int64_t>(3, x.shape()[1]));
  const int64_t stride = random.Pick(1, 2);
  const int64_t pad = random.OneIn(2) ? 0 : random.Pick(1, 2);
  const int64_t h = x.shape()[0], w = x.shape()[1], ci = x.shape()[2];
  const int64_t co = channels > 0 ? channels : random.Of<int64_t>({1, 24, 40, 64, 65, 128, 192});
  Tensor image = x;
  if (pad > 0) {
    image = g.Compute("P" + name, {h + 2 * pad, w + 2 * pad, ci}, [&](Expr i, Expr j, Expr c) {
      const Expr inside = ir::And(ir::And(pad <= i, i < h + pad), ir::And(pad <= j, j < w + pad));
      return te::Select(inside, x(i - pad, j - pad, c), 0.0);
    });
  }
  const Tensor f = g.Placeholder("F" + name, {co, kh, kw, ci}, Type::kI8);
  const te::ReduceAxis r = g.ReduceAxisOf("r", kh), s = g.ReduceAxisOf("s", kw);
  const te::ReduceAxis k = g.ReduceAxisOf("k", ci);
  const Shape shape = {(h + 2 * pad - kh) / stride + 1, (w + 2 * pad - kw) / stride + 1, co};
  const auto wide = [&](Expr e) { return g.context().Cast(Type::kI32, e); };
  const Tensor sums = g.Compute("S" + name, shape, [&](Expr i, Expr j, Expr c) {
    return te::ReduceSum(wide(image(i * stride + r, j * stride + s, k)) * wide(f(c, r, s, k)), r, s,
                         k);
  });
  return g.Compute("B" + name, shape, [&](const Axes& at) {
    return g.context().Cast(Type::kF16, g.context().Cast(Type::kF32, sums(at)) * 0.01);
  });
}

// One convolution or two, with elementwise computes behind each.
TEST(CardGraphsTest, RandomConvolutions) {
  ForRandomSeeds(60, /*scalar_rate=*/1, [](Random& random, unsigned seed, Exceptions& exceptions) {
    const isa::Machine machine =
        TestMachine("mlu270", {StrCat("core.nmem_kib=", random.Pick(3, 8) * 64),
                               StrCat("card.clusters=", random.Pick(1, 4)),
                               StrCat("cluster.cores=", random.Of<int64_t>({1, 2, 4}))});
    Graph g("random");
    const Tensor x = g.Placeholder(
        "X", {random.Pick(1, 13), random.Pick(1, 13), random.Of<int64_t>({1, 3, 8, 16, 32, 64})},
        Type::kI8);
    const Tensor one = RandomConvolution(random, g, x, "1");
    RandomGraph steps(random, g, one);
    Tensor y = steps.MakeOf(one, "Y", static_cast<int>(random.Pick(0, 2)));
    if (random.OneIn(2)) {
      const Tensor between = g.Compute(
          "T", y.shape(), [&](const Axes& at) { return g.context().Cast(Type::kI8, y(at)); });
      const Tensor two = RandomConvolution(random, g, between, "2");
      RandomGraph more(random, g, two);
      y = more.MakeOf(two, "Z", static_cast<int>(random.Pick(0, 2)));
    }
    SCOPED_TRACE(absl::StrJoin(x.shape(), "x") + " to " + absl::StrJoin(y.shape(), "x"));
    const size_t choice = random.OneIn(2) ? 0 : random.OneIn(3) ? kCutChoice : random.Pick(0, 400);
    MustAgree(y, machine, choice, seed, exceptions);
  });
}

// Results in blocks of channels: of convolutions of any window, stride and padding, with vectors of channels,
// scalars and inputs of the output's shape behind them, under any mapping and tiling.
TEST(CardGraphsTest, ResultsInBlocks) {
  ForRandomSeeds(40, /*scalar_rate=*/1, [](Random& random, unsigned seed, Exceptions& exceptions) {
    const isa::Machine machine =
        TestMachine("mlu270", {StrCat("core.nmem_kib=", random.Pick(2, 8) * 64),
                               StrCat("core.wmem_kib=", random.Of<int64_t>({128, 256, 1024})),
                               StrCat("card.clusters=", random.Pick(1, 5)),
                               StrCat("cluster.cores=", random.Of<int64_t>({1, 2, 4}))});
    Graph g("random");
    const Tensor x = g.Placeholder("X",
                                   {random.Pick(1, 13), random.OneIn(3) ? 1 : random.Pick(1, 13),
                                    random.Of<int64_t>({3, 16, 64, 100})},
                                   Type::kI8);
    const int64_t channels = random.Of<int64_t>({128, 192, 256, 320});
    const Tensor sums = RandomConvolution(random, g, x, "1", channels);
    RandomGraph steps(random, g, sums);
    const Tensor y = steps.MakeOf(sums, "Y", static_cast<int>(random.Pick(0, 3)));
    SCOPED_TRACE(absl::StrJoin(x.shape(), "x") + " to " + absl::StrJoin(y.shape(), "x"));
    MustAgree(y, machine, kBlocksChoice + random.Pick(0, 100000), seed, exceptions);
  });
  // Such schedules are there.
  Graph g("product");
  const Tensor x = g.Placeholder("X", {5, 7, 64}, Type::kI8);
  Random random(1);
  const Tensor y = RandomConvolution(random, g, x, "1", 256);
  const isa::Machine machine = TestMachine("mlu270");
  const auto result = OnCard(y, machine, kBlocksChoice, Inputs(y, 1, ir::Values::kExact));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->choice.at("blocks"), 1);
}

// A convolution of i8 by `channels` filters of window x window, its sums scaled and cast.
Tensor Convolve(Graph& g, const Tensor& x, const std::string& name, int64_t window,
                int64_t channels) {
  const int64_t rows = x.shape()[0], columns = x.shape()[1], ci = x.shape()[2], pad = window / 2;
  const Tensor padded =
      g.Compute("P" + name, {rows + 2 * pad, columns + 2 * pad, ci}, [&](Expr i, Expr j, Expr c) {
        const Expr inside = ir::And(pad <= i, i < rows + pad);
        return te::Select(ir::And(inside, ir::And(pad <= j, j < columns + pad)),
                          x(i - pad, j - pad, c), 0.0);
      });
  const Tensor f = g.Placeholder("F" + name, {channels, window, window, ci}, Type::kI8);
  const te::ReduceAxis r = g.ReduceAxisOf("r", window), s = g.ReduceAxisOf("s", window);
  const te::ReduceAxis k = g.ReduceAxisOf("k", ci);
  const auto wide = [&](Expr e) { return g.context().Cast(Type::kI32, e); };
  const Tensor sums = g.Compute("S" + name, {rows, columns, channels}, [&](Expr i, Expr j, Expr c) {
    return te::ReduceSum(wide(padded(i + r, j + s, k)) * wide(f(c, r, s, k)), r, s, k);
  });
  return g.Compute("Y" + name, sums.shape(), [&](const Axes& at) {
    return g.context().Cast(Type::kI8, g.context().Cast(Type::kF32, sums(at)) * 0.01);
  });
}

// The search by branch and bound finds what the list of all schedules begins with.
TEST(CardGraphsTest, TheFirstScheduleIsTheFirstOfAll) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  int compared = 0;
  for (int round = 0; round < 25; ++round) {
    const int64_t window = 2 * pick(0, 2) + 1;
    const Shape image = {pick(1, 30), pick(1, 30), pick(1, 4) * pick(1, 64)};
    const int64_t channels = pick(0, 1) ? 64 * pick(1, 8) : pick(1, 300);
    const isa::Machine machine = FlatMachine(
        {StrCat("core.nmem_kib=", 64 << pick(0, 3)), StrCat("core.wmem_kib=", 16 << pick(0, 5)),
         StrCat("cluster.smem_kib=", 64 << pick(0, 5)), StrCat("card.clusters=", 1 << pick(0, 2))});
    Target target;
    target.name = "diannao";
    target.instructions = &isa::DianNao();
    target.machine = &machine;
    Graph g("layer");
    const Tensor x = g.Placeholder("X", image, Type::kI8);
    const auto program = te::CardProgram::Create(Convolve(g, x, "1", window, channels), target);
    if (!program.ok()) continue;
    const std::vector<te::CardSchedule> first = program->Schedules({}, true);
    const std::vector<te::CardSchedule> all = program->Schedules({}, false);
    ASSERT_FALSE(first.empty());
    EXPECT_EQ(first[0].choice, all[0].choice);
    EXPECT_EQ(first[0].cycles, all[0].cycles);
    ++compared;
  }
  EXPECT_GT(compared, 15);
}

// A pair of convolutions is one group where that saves time. Where the filters of both do not fit WMEM, or each of many
// cores would copy them for a few pixels, each is a group of its own.
TEST(CardGraphsTest, PairsAreFusedWhereItPays) {
  const auto is_cut = [](int64_t size, int64_t channels, const isa::Machine& machine) {
    Graph g("pair");
    const Tensor x = g.Placeholder("X", {size, size, 4 * channels}, Type::kI8);
    const Tensor y = Convolve(g, Convolve(g, x, "1", 1, channels), "2", 3, channels);
    Target target;
    target.name = "diannao";
    target.instructions = &isa::DianNao();
    target.machine = &machine;
    const absl::StatusOr<te::CardProgram> program = te::CardProgram::Create(y, target);
    EXPECT_TRUE(program.ok()) << program.status();
    return program.ok() && program->Schedules({}, true)[0].choice.at("cut") == 1;
  };
  EXPECT_FALSE(is_cut(56, 64, FlatMachine()));
  EXPECT_TRUE(is_cut(14, 256, FlatMachine()));
  EXPECT_TRUE(is_cut(56, 64, FlatMachine({"core.wmem_kib=40"})));
}

// A number that is an integer from -8 to 8, so that sums in any order are the same.
Expr SmallInteger(Expr value) {
  Expr e = value.context().Call(value.type(), "floor", {value});
  e = ir::Min(ir::Max(e, ir::ConstantLike(e, -8)), ir::ConstantLike(e, 8));
  return value.context().Cast(Type::kF32, e);
}

// A convolution, or a tensor that is there, normalised by sums over its pixels: of its elements, of their squares, and
// of squared differences from the mean, which need a pass of their own.
TEST(CardGraphsTest, RandomColumnSums) {
  ForRandomSeeds(40, /*scalar_rate=*/1, [](Random& random, unsigned seed, Exceptions& exceptions) {
    const isa::Machine machine =
        TestMachine("mlu270", {StrCat("core.nmem_kib=", random.Pick(3, 8) * 64),
                               StrCat("card.clusters=", random.Pick(1, 4)),
                               StrCat("cluster.cores=", random.Of<int64_t>({1, 2, 4}))});
    Graph g("random");
    Tensor t;
    if (random.OneIn(3)) {
      t = g.Placeholder(
          "X",
          {random.Pick(1, 40), random.Pick(1, 13), random.Of<int64_t>({1, 24, 64, 65, 128, 200})},
          Type::kF16);
    } else {
      const Tensor x = g.Placeholder(
          "X", {random.Pick(1, 13), random.Pick(1, 13), random.Of<int64_t>({1, 3, 16, 64})},
          Type::kI8);
      t = RandomConvolution(random, g, x, "1");
      if (random.OneIn(4)) {
        const Tensor between = g.Compute(
            "T", t.shape(), [&](const Axes& at) { return g.context().Cast(Type::kI8, t(at)); });
        t = RandomConvolution(random, g, between, "2");
      }
    }
    const int64_t channels = t.shape()[2];
    const auto sum_of = [&](const std::string& name, const std::function<Expr(Expr, Expr)>& f) {
      const te::ReduceAxis y = g.ReduceAxisOf("y", t.shape()[0]);
      const te::ReduceAxis x = g.ReduceAxisOf("x", t.shape()[1]);
      return g.Compute(name, {channels},
                       [&](Expr c) { return te::ReduceSum(f(SmallInteger(t(y, x, c)), c), y, x); });
    };
    std::vector<Tensor> sums = {sum_of("S0", [](Expr e, Expr) { return e; })};
    if (random.OneIn(2)) sums.push_back(sum_of("S1", [](Expr e, Expr) { return e * e; }));
    if (random.OneIn(2)) {
      sums.push_back(sum_of("S2", [&](Expr e, Expr c) {
        const Expr from = e - SmallInteger(sums[0](c) * 0.01);
        return from * from;
      }));
    }
    const bool is_residual = random.OneIn(3);
    const Tensor r = is_residual ? g.Placeholder("R", t.shape(), Type::kF16) : Tensor();
    const Tensor y = g.Compute("Y", t.shape(), [&](Expr i, Expr j, Expr c) {
      Expr value = g.context().Cast(Type::kF32, t(i, j, c));
      for (const Tensor& sum : sums) value = value * (sum(c) * 0.125) + sum(c);
      value = g.context().Cast(Type::kF16, value);
      return r ? value + r(i, j, c) : value;
    });
    SCOPED_TRACE(absl::StrJoin(t.shape(), "x") + StrCat(" sums ", sums.size()));
    // Where channels are no whole groups, rows of sums have scalar code.
    Exceptions with_parts;
    MustAgree(y, machine, random.Pick(0, 3), seed, channels % 64 == 0 ? exceptions : with_parts);
  });
}

// Five rows on six cores: the last one computed with a row that nobody had loaded (POLYNAO_SEED=277123538).
TEST(CardGraphsTest, AnIdleCoreRunsNoScalarCode) {
  const isa::Machine machine = TestMachine("mlu270", {"card.clusters=3", "cluster.cores=2"});
  Graph g("rows");
  const Tensor x = g.Placeholder("X", {5, 12, 24}, Type::kF16);
  const te::ReduceAxis i = g.ReduceAxisOf("i", 5), j = g.ReduceAxisOf("j", 12);
  const Tensor sum =
      g.Compute("S", {24}, [&](Expr c) { return te::ReduceSum(SmallInteger(x(i, j, c)), i, j); });
  const Tensor y = g.Compute("Y", x.shape(), [&](Expr r, Expr s, Expr c) {
    return g.context().Cast(Type::kF16, g.context().Cast(Type::kF32, x(r, s, c)) * sum(c));
  });
  Exceptions with_parts;
  MustAgree(y, machine, 0, 1, with_parts);
}

// Sums of a convolution's results are taken along with it: the results cross GMEM twice, not three times.
TEST(CardGraphsTest, SumsAreTakenAlong) {
  const isa::Machine machine = TestMachine("mlu270");
  Graph g("norm");
  const Tensor x = g.Placeholder("X", {28, 28, 64}, Type::kI8);
  const te::ReduceAxis k = g.ReduceAxisOf("k", 64);
  const te::ReduceAxis r = g.ReduceAxisOf("r", 1), s = g.ReduceAxisOf("s", 1);
  const Tensor filter = g.Placeholder("F", {64, 1, 1, 64}, Type::kI8);
  const auto wide = [&](Expr e) { return g.context().Cast(Type::kI32, e); };
  const Tensor sums = g.Compute("S", {28, 28, 64}, [&](Expr i, Expr j, Expr c) {
    return te::ReduceSum(wide(x(i + r, j + s, k)) * wide(filter(c, r, s, k)), r, s, k);
  });
  const Tensor t = g.Compute("T", {28, 28, 64}, [&](const Axes& at) {
    return g.context().Cast(Type::kF16, g.context().Cast(Type::kF32, sums(at)) * 0.01);
  });
  const te::ReduceAxis py = g.ReduceAxisOf("y", 28), px = g.ReduceAxisOf("x", 28);
  const Tensor total = g.Compute(
      "TOTAL", {64}, [&](Expr c) { return te::ReduceSum(SmallInteger(t(py, px, c)), py, px); });
  const Tensor y = g.Compute("Y", {28, 28, 64}, [&](Expr i, Expr j, Expr c) {
    return g.context().Cast(Type::kF16, g.context().Cast(Type::kF32, t(i, j, c)) + total(c));
  });
  const std::vector<ir::Tensor> inputs = Inputs(y, 1, ir::Values::kAll);
  const absl::StatusOr<Result> along = OnCard(y, machine, 0, inputs);
  const absl::StatusOr<Result> apart = OnCard(y, machine, 1, inputs);
  ASSERT_TRUE(along.ok()) << along.status();
  ASSERT_TRUE(apart.ok()) << apart.status();
  const auto loaded = [](const Result& result) {
    return result.run
        .path_bytes[static_cast<int>(isa::Space::kGmem)][static_cast<int>(isa::Space::kNmem)];
  };
  EXPECT_EQ(loaded(*apart) - loaded(*along), 28 * 28 * 64 * 2);
  EXPECT_LT(along->run.cycles, apart->run.cycles);
  EXPECT_EQ(ir::FirstDifference(along->output, *Meaning(y, inputs)), -1);
  EXPECT_EQ(ir::FirstDifference(apart->output, along->output), -1);
}

// Chains of any number of tensors cross GMEM once.
TEST(CardGraphsTest, EachTensorCrossesGmemOnce) {
  Graph g("sum");
  std::vector<Tensor> x;
  for (int i = 0; i < 6; ++i) x.push_back(g.Placeholder(StrCat("X", i), {255, 27, 27}, Type::kF16));
  const Tensor a =
      g.Compute("A", {255, 27, 27}, [&](const Axes& at) { return x[0](at) * x[1](at) + x[2](at); });
  const Tensor b =
      g.Compute("B", {255, 27, 27}, [&](const Axes& at) { return ir::Max(a(at), x[3](at)) * 0.5; });
  const Tensor y = g.Compute("Y", {255, 27, 27},
                             [&](const Axes& at) { return b(at) - a(at) * x[4](at) + x[5](at); });
  const isa::Machine machine = TestMachine("mlu270");
  const std::vector<ir::Tensor> inputs = Inputs(y, 1, ir::Values::kAll);
  const absl::StatusOr<Result> result = OnCard(y, machine, 0, inputs);
  ASSERT_TRUE(result.ok()) << result.status();
  const int64_t tensor = 255 * 27 * 27 * 2;
  const auto& bytes = result->run.path_bytes;
  EXPECT_EQ(bytes[static_cast<int>(isa::Space::kGmem)][static_cast<int>(isa::Space::kNmem)],
            6 * tensor);
  EXPECT_EQ(bytes[static_cast<int>(isa::Space::kNmem)][static_cast<int>(isa::Space::kGmem)],
            tensor);
  EXPECT_EQ(ir::FirstDifference(result->output, *Meaning(y, inputs)), -1);
}

// What varies along the channels only is computed once for each core, not for each tile.
TEST(CardGraphsTest, RowsAreComputedOnce) {
  Graph g("norm");
  const Tensor x = g.Placeholder("X", {700, 128}, Type::kF16);
  const Tensor gamma = g.Placeholder("G", {128}, Type::kF16);
  const Tensor variance = g.Placeholder("V", {128}, Type::kF16);
  const Tensor y = g.Compute("Y", {700, 128}, [&](Expr i, Expr c) {
    return x(i, c) * (gamma(c) * g.context().Call(Type::kF16, "rsqrt", {variance(c) + 1}));
  });
  const isa::Machine machine =
      TestMachine("mlu270", {"core.nmem_kib=16", "cluster.cores=1", "card.clusters=1"});
  const std::vector<ir::Tensor> inputs = Inputs(y, 1, ir::Values::kAll);
  const absl::StatusOr<Result> result = OnCard(y, machine, 0, inputs);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(ir::FirstDifference(result->output, *Meaning(y, inputs)), -1);
  const std::string text = ir::Print(result->function);
  const auto count = [&text](const std::string& word) {
    int found = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count("rsqrt.f16"), 1) << text;
  EXPECT_GE(count("row_mul.f16"), 1) << text;
}

std::string Error(const Tensor& y, const std::vector<std::string>& overrides = {}) {
  const isa::Machine machine = TestMachine("mlu270", overrides);
  const absl::StatusOr<Result> result = OnCard(y, machine, 0, Inputs(y, 1, ir::Values::kAll));
  EXPECT_FALSE(result.ok());
  return std::string(result.status().message());
}

TEST(CardGraphsTest, WhatTheCardCannotComputeSaysSo) {
  Graph g("g");
  const Tensor x = g.Placeholder("X", {64, 32}, Type::kF16);
  const Tensor z = g.Placeholder("Z", {64, 32}, Type::kF64);
  EXPECT_THAT(Error(g.Compute("Y", {64, 32}, [&](const Axes& at) { return z(at) + z(at); })),
              testing::HasSubstr("tensor Y: the card has no instruction for "));
  const auto f16 = [&](Expr e) { return g.context().Cast(Type::kF16, e); };
  EXPECT_THAT(Error(g.Compute("Y", {64, 32}, [&](Expr i, Expr j) { return x(i, j) + f16(j); })),
              testing::HasSubstr("tensor Y: the card has no instruction for "));
  const Tensor at = g.Placeholder("AT", {8}, Type::kI32);
  EXPECT_THAT(Error(g.Compute("Y", {8, 32}, [&](Expr i, Expr j) { return x(at(i), j) + 1; })),
              testing::HasSubstr("tensor Y: expected an element of an input, at a place of other "
                                 "inputs: it is more than an element"));
  const te::ReduceAxis k = g.ReduceAxisOf("k", 32);
  EXPECT_THAT(Error(g.Compute("Y", {64}, [&](Expr i) { return te::ReduceProd(x(i, k), k); })),
              testing::HasSubstr("expected a sum, a minimum or a maximum"));
  const te::ReduceAxis r = g.ReduceAxisOf("r", 64);
  const Tensor largest = g.Compute("M", {1}, [&](Expr) { return te::ReduceMax(x(r, k), r, k); });
  const Tensor least = g.Compute("L", {1}, [&](Expr) { return te::ReduceMin(x(r, k), r, k); });
  EXPECT_THAT(Error(g.Compute("Y", {64, 32},
                              [&](Expr i, Expr j) { return x(i, j) - largest(0) - least(0); }),
                    {"core.nmem_kib=1"}),
              testing::HasSubstr("nmem has 1024 bytes"));
}

}  // namespace
}  // namespace polynao
