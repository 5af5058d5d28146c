#include "compiler/passes/tensor_pattern.h"

#include <string>

#include "compiler/ir/text.h"
#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TensorPatternTest, Meanings) {
  auto context = std::make_shared<ir::Context>();
  const auto pattern = [&](std::string_view mnemonic) {
    return MakeTensorPattern(*isa::DianNao().Find(mnemonic), context);
  };
  const std::optional<TensorPattern> conv = pattern("conv.i8");
  ASSERT_TRUE(conv);
  EXPECT_EQ(conv->vars.size(), 7);
  EXPECT_EQ(conv->outer_loops, 4);
  EXPECT_TRUE(conv->init && conv->accumulates);
  EXPECT_EQ(conv->load_index.size(), 3);
  EXPECT_FALSE(conv->store_index.coefficients[4]);  // r does not move dst
  EXPECT_TRUE(conv->store_index.coefficients[2].IsInt(64));
  EXPECT_EQ(ir::Print(conv->store_index.coefficients[0]), "wo * co");

  const std::optional<TensorPattern> acc = pattern("conv_acc.i8");
  ASSERT_TRUE(acc);
  EXPECT_EQ(acc->outer_loops, 7);
  EXPECT_TRUE(!acc->init && acc->accumulates);

  const std::optional<TensorPattern> copy = pattern("memcpy3d.f16.nmem.gmem.async");
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->vars.size(), 3);
  EXPECT_TRUE(!copy->init && !copy->accumulates);
  EXPECT_FALSE(pattern("sync"));
}

// Whatever waits in a queue can be chosen by a compiler.
TEST(TensorPatternTest, AllQueuedInstructionsHavePatterns) {
  auto context = std::make_shared<ir::Context>();
  for (const isa::Instruction& instruction : isa::DianNao().instructions()) {
    if (instruction.queue == isa::Queue::kNone) continue;
    EXPECT_TRUE(MakeTensorPattern(instruction, context)) << instruction.mnemonic;
  }
}

struct Made {
  ir::Function function;
  std::optional<TensorNest> nest;
  std::string reason;
};

// The nest of a body, with D, S of 999 elements and n of unknown sign around it.
Made Nest(std::string body) {
  Made made{.function = ParseOrDie("func f(D: i32[999], S: i32[999] in, n: i32) { " + body + " }"),
            .nest = {},
            .reason = ""};
  arith::Analyzer analyzer(*made.function.context);
  made.nest = MakeTensorNest(made.function.body, analyzer, made.reason);
  return made;
}

std::string Extents(const TensorNest& nest) {
  std::string text;
  for (const NestLoop& loop : nest.loops) {
    text += std::string(loop.loop.var().name()) + ":" + ir::Print(loop.extent) + " ";
  }
  return text;
}

TEST(TensorPatternTest, NestOfOneStore) {
  const Made made =
      Nest("for (i, 2, 4) { for (j, 0, 1) { for (k, 0, n) { D[i * 8 + j + k * 2] = S[k + 3] } } }");
  ASSERT_TRUE(made.nest) << made.reason;
  // The loop of one iteration is left out; a count is not negative.
  EXPECT_EQ(Extents(*made.nest), "i:i64(4) k:cast(i64, max(n, 0)) ");
  EXPECT_EQ(made.nest->single.size(), 1);
  EXPECT_EQ(made.nest->max_around, 2);
  EXPECT_FALSE(made.nest->accumulates());
  EXPECT_TRUE(made.nest->target.coefficients[0].IsInt(8));
  EXPECT_TRUE(made.nest->target.coefficients[1].IsInt(2));
}

TEST(TensorPatternTest, JoinableLoops) {
  const auto joinable = [](std::string body) {
    const Made made = Nest(body);
    return made.nest ? made.nest->joinable : std::vector<bool>{};
  };
  EXPECT_THAT(joinable("for (i, 0, 4) { for (j, 0, 5) { D[i * 5 + j] = S[i * 5 + j] } }"),
              ElementsAre(true, false));
  EXPECT_THAT(joinable("for (i, 0, 4) { for (j, 0, 5) { D[i * 5 + j] = S[i * 6 + j] } }"),
              ElementsAre(false, false));
  EXPECT_THAT(joinable("for (i, 0, n) { for (j, 0, 5) { D[i * 10 + j * 2] = S[i * 5 + j] } }"),
              ElementsAre(true, false));
  // Loops around the initialisation and loops of the update are never one.
  EXPECT_THAT(
      joinable("for (i, 0, 4) { D[i * 0] = 0 for (j, 0, 5) { D[i * 0] = D[i * 0] + S[i * 5 + "
               "j] } }"),
      ElementsAre(false, false));
}

TEST(TensorPatternTest, InitialisationInLoopsOfItsOwn) {
  const Made made = Nest(
      "for (t, 0, 2) { for (i, 0, 4) { for (j, 0, 5) { D[t * 20 + i * 5 + j] = 0 } }"
      " for (r, 0, 3) { for (i2, 7, 4) { for (s, 0, 2) { for (j2, 0, 5) {"
      "   D[t * 20 + (i2 - 7) * 5 + j2] = D[t * 20 + (i2 - 7) * 5 + j2] + S[r + s] } } } } }");
  ASSERT_TRUE(made.nest) << made.reason;
  EXPECT_EQ(Extents(*made.nest), "t:i64(2) i2:i64(4) j2:i64(5) r:i64(3) s:i64(2) ");
  EXPECT_EQ(made.nest->outer_loops, 3);
  EXPECT_EQ(made.nest->max_around, 1);
}

TEST(TensorPatternTest, InitialisationOfOtherElements) {
  const auto reason = [](std::string init, std::string update) {
    const Made made =
        Nest("for (i, 0, 4) { " + init + " } for (i2, 0, 4) { for (r, 0, 3) { " + update + " } }");
    EXPECT_FALSE(made.nest);
    return made.reason;
  };
  const std::string update = "D[i2] = D[i2] + S[i2 * 3 + r]";
  EXPECT_THAT(reason("D[i + 1] = 0", update), HasSubstr("at different places"));
  EXPECT_THAT(reason("D[i * 2] = 0", update), HasSubstr("at different places"));
  EXPECT_THAT(reason("D[i] = n", update), HasSubstr("neither one store"));
  EXPECT_THAT(reason("D[i] = 0", "D[i2 + r] = D[i2 + r] + S[i2]"),
              HasSubstr("at different places"));
}

TEST(TensorPatternTest, WhatIsNoNest) {
  EXPECT_THAT(Nest("for (i, 0, 4) { if (i < n) { D[i] = 0 } }").reason,
              HasSubstr("a guard stands inside: if (i < n)"));
  EXPECT_THAT(Nest("for (i, 0, 4) { D[i] = 0 if (i < n) { D[i] = D[i] + S[i] } }").reason,
              HasSubstr("a guard stands inside"));
  EXPECT_THAT(Nest("for (i, 0, 4) { for (j, 0, i) { D[i + j] = 0 } }").reason,
              HasSubstr("the bounds of 'j' depend on 'i'"));
  EXPECT_THAT(Nest("for (i, 0, 4) { D[i * i] = 0 }").reason, HasSubstr("not linear"));
  EXPECT_THAT(Nest("for (i, 0, 4) { thread (tid, 2) { D[i + tid] = 0 } }").reason,
              HasSubstr("the thread loop 'tid'"));
}

TEST(TensorPatternTest, SortedLoopsKeepTheOrderOfUpdates) {
  const Made made = Nest(
      "for (r, 0, 3) { for (i, 0, 4) { for (s, 0, 2) { for (j, 0, 5) {"
      " D[i * 5 + j] = D[i * 5 + j] + S[r * 2 + s] } } } }");
  ASSERT_TRUE(made.nest) << made.reason;
  arith::Analyzer analyzer(*made.function.context);
  EXPECT_EQ(Extents(SortLoops(*made.nest, 0, analyzer)), "i:i64(4) j:i64(5) r:i64(3) s:i64(2) ");
  EXPECT_EQ(Extents(SortLoops(*made.nest, 1, analyzer)), "r:i64(3) i:i64(4) j:i64(5) s:i64(2) ");
  EXPECT_THAT(SortLoops(*made.nest, 0, analyzer).joinable, ElementsAre(true, false, true, false));
}

}  // namespace
}  // namespace polynao
