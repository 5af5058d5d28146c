#include "compiler/ir/float_rules.h"

#include "compiler/ir/text.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

TEST(FloatRulesTest, AreAttributes) {
  Function f = *ParseFunction("@contract func f(A: f64[1]) { A[0] = A[0] * A[0] + A[0] }");
  EXPECT_EQ(FloatRulesOf(f), (FloatRules{.contract = true}));
  Allow(f, {.contract = true, .reassociate = true});
  EXPECT_EQ(FloatRulesOf(f), (FloatRules{.contract = true, .reassociate = true}));
  // None is added twice, and none is taken away.
  Allow(f, {.contract = true, .reassociate = true});
  Allow(f, {});
  EXPECT_EQ(f.attributes.size(), 2);
  Allow(f, {.reciprocal = true, .dots = true});
  EXPECT_EQ(FloatRulesOf(f),
            (FloatRules{.contract = true, .reassociate = true, .reciprocal = true, .dots = true}));
  // They survive the text form.
  EXPECT_EQ(FloatRulesOf(*ParseFunction(Print(f))), FloatRulesOf(f));
}

TEST(FloatRulesTest, AFunctionSaysThatItWasReassociated) {
  Function f = *ParseFunction("func f(A: f64[1]) { A[0] = 1.0 }");
  EXPECT_FALSE(IsReassociated(f));
  SayReassociated(f);
  SayReassociated(f);
  EXPECT_TRUE(IsReassociated(*ParseFunction(Print(f))));
  EXPECT_EQ(f.attributes.size(), 1);
  EXPECT_EQ(FloatRulesOf(f), FloatRules());
}

}  // namespace
}  // namespace polynao::ir
