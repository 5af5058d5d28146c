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

namespace polynao {
namespace {

using ir::Expr;
using ir::Type;
using te::Axes;
using te::Graph;
using te::Shape;
using te::Tensor;

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int64_t Pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % (high - low + 1));
  }
  bool OneIn(int64_t n) { return Pick(1, n) == 1; }
  template <typename T>
  T Of(const std::vector<T>& values) {
    return values[Pick(0, values.size() - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

struct Result {
  std::vector<ir::Tensor> inputs;
  ir::Tensor output;
  simulator::RunResult run;
  ir::Function function;  // after the passes
};

std::vector<ir::Tensor> Inputs(const Tensor& y, unsigned seed, ir::Values values) {
  std::vector<ir::Tensor> inputs;
  for (const te::Operation& operation : y.graph()->operations) {
    if (operation.kind != te::Operation::Kind::kPlaceholder) continue;
    inputs.push_back(ir::RandomTensor(operation.outputs[0]->type, operation.shape,
                                      seed + inputs.size(), values));
  }
  return inputs;
}

// What the graph means: its computes one after the other, interpreted.
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

// Stands for the cheapest schedule that makes a group of each contraction.
constexpr size_t kCutChoice = -1;

// Compiles the graph under the schedule number `choice` of the cost model's list, and simulates it.
absl::StatusOr<Result> OnCard(const Tensor& y, const isa::Machine& machine, size_t choice,
                              std::vector<ir::Tensor> inputs) {
  Target target;
  target.name = "diannao";
  target.instructions = &isa::DianNao();
  target.machine = &machine;
  absl::StatusOr<te::CardProgram> group = te::CardProgram::Create(y, target);
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
  }
  absl::StatusOr<ir::Function> function = group->Build(schedules[at].choice);
  if (!function.ok()) return function.status();
  absl::Status status = RunPasses(*function, *PipelineFor(target), target);
  if (!status.ok()) return status;
  absl::StatusOr<isa::Program> program = GenerateDianNao(*function, target);
  const auto with_function = [&](const absl::Status& error) {
    return absl::Status(error.code(), StrCat(error.message(), "\n", ir::Print(*function)));
  };
  if (!program.ok()) return with_function(program.status());
  Result result = {.inputs = inputs,
                   .output = ir::Tensor(y.type(), y.shape()),
                   .run = {},
                   .function = *function};
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

// Statements that compute or copy element by element.
int Stores(const ir::Function& function) {
  int stores = 0;
  ir::ForEachStmt(function.body, [&](ir::Stmt s) {
    stores += s.Is(ir::StmtKind::kStore);
    return true;
  });
  return stores;
}

// What the compiler may do with a few graphs, but not with many.
struct Exceptions {
  int too_large = 0;  // the code generator has too few registers
  int scalar = 0;     // some nest became no instruction
};

void MustAgree(const Tensor& y, const isa::Machine& machine, size_t choice, unsigned seed,
               Exceptions& exceptions) {
  const std::vector<ir::Tensor> inputs = Inputs(y, seed, ir::Values::kAll);
  const absl::StatusOr<ir::Tensor> expected = Meaning(y, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const absl::StatusOr<Result> result = OnCard(y, machine, choice, inputs);
  if (absl::StrContains(result.status().message(), "values are live at once")) {
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

// Runs `run` with `count` random engines, or as many as POLYNAO_RANDOM_CASES says, and prints the seed of what fails.
// At most `most_scalar` of 50 programs may have a nest that becomes no instruction.
void ForRandomSeeds(int count, int most_scalar,
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
  EXPECT_LE(exceptions.too_large, 1 + count / 50);
  EXPECT_LE(exceptions.scalar, most_scalar * (1 + count / 50));
}

TEST(CardGraphsTest, RandomElementwiseGraphs) {
  ForRandomSeeds(150, /*most_scalar=*/0, [](Random& random, unsigned seed, Exceptions& exceptions) {
    const isa::Machine machine =
        TestMachine("mlu270", {StrCat("core.nmem_kib=", random.Pick(2, 8) * 32),
                               StrCat("card.clusters=", random.Pick(1, 4)),
                               StrCat("cluster.cores=", random.Pick(1, 4))});
    RandomGraph graph(random,
                      random.Of<Type>({Type::kF16, Type::kF32, Type::kI32, Type::kI16, Type::kI8}));
    const Tensor y = graph.Make();
    SCOPED_TRACE(graph.Text());
    MustAgree(y, machine, random.OneIn(2) ? 0 : random.Pick(0, 20), seed, exceptions);
  });
}

// A convolution of i8, in f16.
Tensor RandomConvolution(Random& random, Graph& g, const Tensor& x, const std::string& name) {
  const int64_t kh = random.Pick(1, std::min<int64_t>(3, x.shape()[0]));
  const int64_t kw = random.Pick(1, std::min<int64_t>(3, x.shape()[1]));
  const int64_t stride = random.Pick(1, 2);
  const int64_t pad = random.OneIn(2) ? 0 : random.Pick(1, 2);
  const int64_t h = x.shape()[0], w = x.shape()[1], ci = x.shape()[2];
  const int64_t co = random.Of<int64_t>({1, 24, 40, 64, 65, 128, 192});
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
  ForRandomSeeds(60, /*most_scalar=*/1, [](Random& random, unsigned seed, Exceptions& exceptions) {
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
  ForRandomSeeds(40, /*most_scalar=*/1, [](Random& random, unsigned seed, Exceptions& exceptions) {
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
  EXPECT_THAT(Error(g.Compute("Y", {32, 64}, [&](Expr i, Expr j) { return x(j, i) + x(j, i); })),
              testing::HasSubstr("is no elementwise compute"));
  EXPECT_THAT(Error(g.Compute("Y", {32, 32}, [&](Expr i, Expr j) { return x(i, j) + 1; })),
              testing::HasSubstr(
                  "expected that it reads all 64 elements of X along dimension 0, found 32"));
}

}  // namespace
}  // namespace polynao
