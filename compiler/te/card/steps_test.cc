#include "compiler/te/card/steps.h"

#include <string>
#include <tuple>

#include "base/check.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/instruction_set.h"
#include "isa/instructions_text.h"
#include "testing/machine.h"

namespace polynao::te {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StepsTest : public testing::Test {
 protected:
  Tensor In(const char* name, const Shape& shape, Type type = Type::kF16) {
    return g_.Placeholder(name, shape, type);
  }
  Steps Cut(const Tensor& y) {
    absl::StatusOr<Steps> steps = CutIntoSteps(y, instructions_);
    POLYNAO_CHECK(steps.ok()) << steps.status();
    return *std::move(steps);
  }
  // The instructions of the steps, without the tensors that they read.
  std::vector<std::string> Mnemonics(const Tensor& y) {
    std::vector<std::string> mnemonics;
    for (const Step& step : Cut(y).list) {
      if (step.instruction != nullptr) mnemonics.push_back(step.instruction->mnemonic);
    }
    return mnemonics;
  }

  Graph g_{"g"};
  const isa::Machine machine_ = TestMachine("mlu270");
  const LaneInstructions instructions_{isa::DianNao(), machine_};
};

TEST_F(StepsTest, EachStepIsTheCheapestInstruction) {
  const Tensor s = In("S", {7, 64}, Type::kI32), x = In("X", {7, 64});
  const auto cast = [&](Type type, Expr e) { return g_.context().Cast(type, e); };
  EXPECT_THAT(Mnemonics(g_.Compute(
                  "Y", {7, 64},
                  [&](const Axes& at) { return cast(Type::kF16, cast(Type::kF32, s(at)) * 0.5); })),
              ElementsAre("rescale.f16.i32"));
  EXPECT_THAT(
      Mnemonics(g_.Compute(
          "Y", {7, 64}, [&](const Axes& at) { return ir::Max(x(at) * x(at) + 2, 0.5 * x(at)); })),
      ElementsAre("mul.f16", "adds.f16", "muls.f16", "max.f16"));
  // A constant that an instruction cannot take is a tensor of its own.
  EXPECT_THAT(Mnemonics(g_.Compute(
                  "Y", {7, 64},
                  [&](const Axes& at) { return ir::Max(ir::ConstantLike(x(at), 3), x(at)); })),
              ElementsAre("fill.f16", "max.f16"));
  EXPECT_THAT(Mnemonics(g_.Compute("Y", {7, 64},
                                   [&](const Axes& at) {
                                     return Select(ir::And(x(at) < 1.0, ir::Ne(x(at), x(at))),
                                                   x(at), 0.0);
                                   })),
              ElementsAre("fill.f16", "lt.f16", "ne.f16", "mul.f16", "fill.f16", "select.f16"));
}

TEST_F(StepsTest, ComputesAreOneExpression) {
  const Tensor x = In("X", {5, 9}), z = In("Z", {5, 9});
  const Tensor t = g_.Compute("T", {5, 9}, [&](const Axes& at) { return x(at) - z(at); });
  const Tensor u = g_.Compute("U", {5, 9}, [&](const Axes& at) { return t(at) * t(at); });
  // T is computed once, though two computes read it.
  EXPECT_THAT(Mnemonics(g_.Compute("Y", {5, 9}, [&](const Axes& at) { return u(at) + t(at); })),
              ElementsAre("sub.f16", "mul.f16", "add.f16"));
  // What comes out as the same step needs no instruction, or another one.
  const Tensor copy = g_.Compute("C", {5, 9}, [&](const Axes& at) { return x(at); });
  EXPECT_THAT(Mnemonics(g_.Compute(
                  "Y", {5, 9}, [&](const Axes& at) { return ir::Min(copy(at), x(at)) + z(at); })),
              ElementsAre("add.f16"));
}

// Rows that somebody adds are taken where they are cheaper, in whatever computes the parts stand.
TEST_F(StepsTest, AddedRowsAreTakenByTheirCost) {
  const auto table = [](int cycles_of_fma) {
    std::string rows;
    for (const auto& [name, opcode, cost, value] :
         {std::tuple("fma", 200, cycles_of_fma, "a[i] * b[i] + c[i]"),
          {"add_relu", 201, 1, "max(a[i] + b[i], 0.0)"}}) {
      const bool has_c = std::string(name) == "fma";
      StrAppend(&rows, "@doc(\"A test.\")\n@opcode(", opcode, ")\n@unit(vector)\n",
                "@require(count % 64 == 0)\n@cost(vector.start + ", cost,
                " * ((count * 2 + vector.bytes - 1) / vector.bytes))\nfunc ", name,
                "(dst: f16[count] @nmem out, a: f16[count] @nmem in, b: f16[count] @nmem in, ",
                has_c ? "c: f16[count] @nmem in, " : "",
                "count: i64) { for (i: i64, 0, count) { dst[i] = ", value, " } }\n");
    }
    auto set = isa::InstructionSet::Load(
        {{"instructions.nir", std::string(isa::InstructionsText())}, {"rows.nir", rows}});
    POLYNAO_CHECK(set.ok()) << set.status();
    return *std::move(set);
  };
  const auto cut = [&](const Tensor& y, int cycles_of_fma) {
    const auto set = table(cycles_of_fma);
    const absl::StatusOr<Steps> steps = CutIntoSteps(y, LaneInstructions(*set, machine_));
    POLYNAO_CHECK(steps.ok()) << steps.status();
    std::string mnemonics;
    for (const Step& step : steps->list) {
      if (step.instruction == nullptr) continue;
      StrAppend(&mnemonics, mnemonics.empty() ? "" : " ", step.instruction->mnemonic);
    }
    return mnemonics;
  };
  const Tensor x = In("X", {500, 640}), y = In("Y", {500, 640}), z = In("Z", {500, 640});
  const Tensor scale = In("A", {640}), shift = In("B", {640});
  const Tensor sum =
      g_.Compute("S", {500, 640}, [&](const Axes& at) { return x(at) * y(at) + z(at); });
  EXPECT_EQ(cut(sum, 1), "fma");
  EXPECT_EQ(cut(sum, 3), "mul.f16 add.f16");  // slower than its parts
  // A row would have to be copied to all rows; row_mul and row_add read it as it is.
  EXPECT_EQ(cut(g_.Compute("N", {500, 640},
                           [&](Expr i, Expr c) { return x(i, c) * scale(c) + shift(c); }),
                1),
            "mul.f16 add.f16");
  // Over two computes, of which the first has one reader; with two it is computed once.
  EXPECT_EQ(cut(g_.Compute(
                    "R", {500, 640},
                    [&](const Axes& at) { return ir::Max(sum(at), ir::ConstantLike(sum(at), 0)); }),
                3),
            "mul.f16 add_relu");
  const Tensor both = g_.Compute("T", {500, 640}, [&](const Axes& at) { return x(at) + y(at); });
  const Tensor again =
      g_.Compute("U", {500, 640}, [&](const Axes& at) { return both(at) * z(at); });
  EXPECT_EQ(cut(g_.Compute("V", {500, 640},
                           [&](const Axes& at) {
                             return ir::Max(both(at), ir::ConstantLike(both(at), 0)) + again(at);
                           }),
                3),
            "add.f16 relu.f16 mul.f16 add.f16");
}

TEST_F(StepsTest, StepsVaryAsTheirOperandsDo) {
  const Tensor x = In("X", {5, 64}), gamma = In("G", {64}), shift = In("B", {1, 64});
  const Steps steps = Cut(g_.Compute(
      "Y", {5, 64}, [&](Expr i, Expr c) { return x(i, c) * (gamma(c) + 1) + shift(0, c); }));
  std::vector<std::string> rows, all;
  for (const Step& step : steps.list) {
    const std::string name =
        step.instruction != nullptr ? step.instruction->mnemonic : step.tensor->name;
    (step.varies[0] ? all : rows).push_back(name);
  }
  EXPECT_THAT(rows, ElementsAre("G", "adds.f16", "B"));
  EXPECT_THAT(all, ElementsAre("X", "mul.f16", "add.f16"));
  ASSERT_EQ(steps.list[steps.result].row_forms.size(), 1);
  EXPECT_EQ(steps.list[steps.result].row_forms[0].instruction->mnemonic, "row_add.f16");
  EXPECT_EQ(steps.list[steps.result].row_forms[0].operand, 1);
  EXPECT_THAT(steps.LastReaders(), ElementsAre(3, 2, 3, 5, 5, 6));
}

TEST_F(StepsTest, Errors) {
  const Tensor x = In("X", {4, 8}, Type::kF64), y = In("Z", {4, 8}, Type::kI8);
  const auto error = [&](const Tensor& t) {
    return std::string(CutIntoSteps(t, instructions_).status().message());
  };
  EXPECT_THAT(error(g_.Compute("Y", {4, 8}, [&](const Axes& at) { return x(at) + x(at); })),
              HasSubstr("tensor Y: the card has no instruction for "));
  EXPECT_THAT(error(g_.Compute("Y", {4, 8}, [&](const Axes& at) { return y(at) / y(at); })),
              HasSubstr("of i8"));
  EXPECT_THAT(error(g_.Compute("Y", {4, 3}, [&](const Axes& at) { return y(at) + 1; })),
              HasSubstr("expected that it reads all 8 elements of Z along dimension 1, found 3"));
}

}  // namespace
}  // namespace polynao::te
