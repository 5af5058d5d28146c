#include "compiler/codegen/diannao/code.h"

#include "compiler/codegen/diannao/parse_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::diannao {
namespace {

// A loop around a branch, with code behind it.
constexpr std::string_view kLoop = R"(b0:
  arg v0, 8
  li v1, 0
  li v2, 10
  mov v3, v1
  bge v1, v2, b4
b1: (v3)
  beq v3, v0, b3
b2:
  sync.io
  jump b3
b3:
  sync.compute
  add v4, v3, v0
  sync.io
  store.i32.gmem v4, v0
  addi v3, v3, 1
  blt v3, v2, b1
b4:
  halt
)";

TEST(CodeTest, PrintsWhatItParses) { EXPECT_EQ(Print(ParseCode(kLoop)), kLoop); }

TEST(CodeTest, FindsDominatorsAndLoops) {
  const Flow flow(ParseCode(kLoop));
  EXPECT_EQ(flow.dominator(0), -1);
  EXPECT_EQ(flow.dominator(1), 0);
  EXPECT_EQ(flow.dominator(2), 1);
  EXPECT_EQ(flow.dominator(3), 1) << "the branch may be skipped";
  EXPECT_EQ(flow.dominator(4), 0) << "the loop may be skipped";
  EXPECT_TRUE(flow.Dominates(0, 3));
  EXPECT_TRUE(flow.Dominates(3, 3));
  EXPECT_FALSE(flow.Dominates(2, 3));
  ASSERT_EQ(flow.loops().size(), 1u);
  EXPECT_EQ(flow.loops()[0].head, 1);
  EXPECT_EQ(flow.loops()[0].last, 3);
  EXPECT_EQ(flow.Depth(0), 0);
  EXPECT_EQ(flow.Depth(2), 1);
  EXPECT_EQ(flow.Depth(4), 0);
  EXPECT_TRUE(flow.IsBehindLoop(4));
  EXPECT_FALSE(flow.IsBehindLoop(3));
}

TEST(CodeTest, NestedLoops) {
  const Flow flow(ParseCode(R"(
      b0:
        li v0, 0
        mov v1, v0
        jump b1
      b1: (v1)
        mov v2, v0
        jump b2
      b2: (v2)
        addi v2, v2, 1
        blt v2, v0, b2
      b3:
        addi v1, v1, 1
        blt v1, v0, b1
      b4:
        halt)"));
  EXPECT_EQ(flow.Depth(1), 1);
  EXPECT_EQ(flow.Depth(2), 2);
  EXPECT_EQ(flow.Depth(3), 1);
  EXPECT_EQ(flow.Depth(4), 0);
  EXPECT_EQ(flow.loops()[flow.loop(2)].parent, flow.loop(1));
}

TEST(CodeTest, FindsPlaces) {
  const Code code = ParseCode(kLoop);
  const Flow flow(code);
  const Places places(code, flow, FindConstants(code));
  const int store = places.Begin(3) + 3;
  const int sync = places.Begin(3);
  EXPECT_EQ(places.Best(store, 0), 4) << "before the loop, where its operands are there";
  EXPECT_EQ(places.Best(store, places.Begin(1)), sync) << "above both syncs";
  EXPECT_TRUE(places.IsHidden(sync));
  EXPECT_EQ(places.Best(store, sync + 1), store) << "not above what it needs";
  EXPECT_FALSE(places.IsHidden(store));
  EXPECT_EQ(places.Best(places.Begin(3), places.Begin(1)), sync);
  EXPECT_EQ(places.Best(places.Begin(4), 0), places.Begin(4)) << "not above the loop before it";
}

TEST(CodeTest, WhatFloats) {
  const Code code = ParseCode(R"(
      b0: (v9)
        arg v0, 8
        li v1, 7
        li v2, 0
        div v3, v0, v1
        div v4, v0, v2
        div v5, v0, v0
        shr v6, v0, v1
        load.i32.nmem v7, v0
        math.exp.f32 v8, v0
        addi v9, v0, 1
        sync
        halt)");
  const Constants constants = FindConstants(code);
  std::vector<bool> floats;
  for (const Op& op : code.blocks[0].ops) floats.push_back(Floats(code, op, constants));
  EXPECT_THAT(floats, testing::ElementsAre(true, true, true, true, false, false, true, false, true,
                                           false, false, false));
}

TEST(CodeTest, RemovesDeadCode) {
  Code code = ParseCode(R"(
      b0:
        arg v0, 8
        addi v1, v0, 1
        muli v2, v1, 3
        load.i32.nmem v3, v0
        halt)");
  RemoveDeadCode(code);
  EXPECT_EQ(Print(code), "b0:\n  arg v0, 8\n  load.i32.nmem v3, v0\n  halt\n")
      << "a load may stop the program";
}

}  // namespace
}  // namespace polynao::diannao
