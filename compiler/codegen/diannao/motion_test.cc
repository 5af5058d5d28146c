#include "compiler/codegen/diannao/motion.h"

#include "compiler/codegen/diannao/parse_code.h"
#include "gtest/gtest.h"

namespace polynao::diannao {
namespace {

std::string Moved(std::string_view text) {
  Code code = ParseCode(text);
  MoveCode(code);
  return Print(code);
}

// Addresses go above the syncs, also out of the branch behind them; the load's stays behind it.
TEST(MotionTest, AboveSyncs) {
  EXPECT_EQ(Moved(R"(
      b0:
        arg v0, 8
        sync.compute
        li v1, 1
        sync.io
        addi v2, v0, 64
        store.i32.gmem v2, v1
        beq v0, v1, b2
      b1:
        addi v3, v2, 64
        load.i32.gmem v4, v3
        addi v5, v4, 64
        store.i32.gmem v5, v4
        jump b2
      b2:
        halt)"),
            R"(b0:
  arg v0, 8
  li v1, 1
  addi v2, v0, 64
  addi v3, v2, 64
  sync.compute
  sync.io
  store.i32.gmem v2, v1
  beq v0, v1, b2
b1:
  load.i32.gmem v4, v3
  addi v5, v4, 64
  store.i32.gmem v5, v4
  jump b2
b2:
  halt
)");
}

// Out of the loop what does not depend on its counter; the rest above the sync in it.
TEST(MotionTest, OutOfLoops) {
  EXPECT_EQ(Moved(R"(
      b0:
        arg v0, 8
        li v1, 10
        mov v2, v0
        bge v0, v1, b2
      b1: (v2)
        sync
        li v3, 4
        muli v4, v0, 3
        div v5, v4, v3
        add v6, v5, v2
        div v7, v2, v0
        store.i32.gmem v6, v7
        addi v2, v2, 1
        blt v2, v1, b1
      b2:
        addi v8, v0, 5
        store.i32.gmem v8, v8
        halt)"),
            R"(b0:
  arg v0, 8
  li v1, 10
  mov v2, v0
  li v3, 4
  muli v4, v0, 3
  div v5, v4, v3
  bge v0, v1, b2
b1: (v2)
  add v6, v5, v2
  sync
  div v7, v2, v0
  store.i32.gmem v6, v7
  addi v2, v2, 1
  blt v2, v1, b1
b2:
  addi v8, v0, 5
  store.i32.gmem v8, v8
  halt
)");
}

// The result of a branch is known where its sides meet: nothing goes above that.
TEST(MotionTest, VariablesStay) {
  const std::string_view code = R"(b0:
  arg v0, 8
  sync
  mov v1, v0
  beq v0, v0, b2
b1:
  load.i32.gmem v2, v0
  mov v1, v2
  jump b2
b2: (v1)
  addi v3, v1, 7
  store.i32.gmem v3, v3
  halt
)";
  EXPECT_EQ(Moved(code), code);
}

}  // namespace
}  // namespace polynao::diannao
