#include "compiler/passes/let_names.h"

#include <string>

#include "compiler/ir/ir.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pass_test_util.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

TEST(LetNamesTest, PartsAndNumbers) {
  const ir::Function function = ParseOrDie(
      "func f(A: i32[9], i: i32, j: i32, k: i32, l: i32, inv_k: i32) {\n"
      "  let inv_j = exp(f32(A[i + k]))\n"
      "  allocate inv_l: i32[1]\n"
      "}\n");
  LetNames names(function, "inv");
  ir::Context& context = *function.context;
  const ir::Expr i = function.params[1].var, j = function.params[2].var;
  const ir::Expr k = function.params[3].var, l = function.params[4].var;
  EXPECT_EQ(names.NewVar(i * 3 + i).name(), "inv_i");
  EXPECT_EQ(names.NewVar(i * 4).name(), "inv_i_1");
  EXPECT_EQ(names.NewVar(i * 5).name(), "inv_i_2");
  // Names that the function has.
  EXPECT_EQ(names.NewVar(j + 1).name(), "inv_j_1");
  EXPECT_EQ(names.NewVar(k + 1).name(), "inv_k_1");
  EXPECT_EQ(names.NewVar(l + 1).name(), "inv_l_1");
  EXPECT_EQ(names.NewVar(context.I32(7)).name(), "inv");
  // A buffer, a function; and no more than three parts.
  EXPECT_EQ(names.NewVar(function.body.value()).name(), "inv_exp_A");
  EXPECT_EQ(names.NewVar(l + k * j + i).name(), "inv_l_k_j");
  // What an own variable stands for.
  const ir::Var ij = names.NewVar(i + j);
  EXPECT_EQ(names.NewVar(ij + k).name(), "inv_i_j_k");
}

}  // namespace
}  // namespace polynao
