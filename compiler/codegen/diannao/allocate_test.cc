#include "compiler/codegen/diannao/allocate.h"

#include "absl/status/status.h"
#include "base/text.h"
#include "compiler/codegen/diannao/parse_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::diannao {
namespace {

using ::testing::HasSubstr;

// The code with `registers` registers, or the error.
std::string Allocated(std::string_view text, int registers) {
  Code code = ParseCode(text);
  const absl::Status status = AllocateRegisters(code, registers);
  if (!status.ok()) return std::string(status.message());
  std::fill(code.home.begin(), code.home.end(), Code::kValue);
  return Print(code);
}

TEST(AllocateTest, ReusesWhatIsReadLast) {
  EXPECT_EQ(Allocated(R"(
      b0:
        arg v0, 8
        arg v1, 9
        add v2, v0, v1
        addi v3, v2, 1
        store.i32.gmem v1, v3
        halt)",
                      2),
            "b0:\n  arg v0, 8\n  arg v1, 9\n  add v0, v0, v1\n  addi v0, v0, 1\n"
            "  store.i32.gmem v1, v0\n  halt\n");
}

// One register fewer than values: an error, which names the limit.
TEST(AllocateTest, FailsWhereNothingCanBeComputedAgain) {
  const std::string_view code = R"(
      b0:
        arg v0, 8
        load.i32.gmem v1, v0
        load.i32.gmem v2, v0
        load.i32.gmem v3, v0
        add v4, v1, v2
        add v5, v4, v3
        store.i32.gmem v0, v5
        halt)";
  EXPECT_THAT(Allocated(code, 4), HasSubstr("store.i32.gmem v0, v"));
  EXPECT_THAT(Allocated(code, 3), HasSubstr("store.i32.gmem v0, v"))
      << "the address is computed again";
  EXPECT_THAT(Allocated(code, 2), HasSubstr("'test': more than 2 values are live at once"));
}

// All values are read before any of them is read last: one comes back right before it is read.
TEST(AllocateTest, ComputesAgainWhereNoValueEnds) {
  const std::string_view code = R"(
      b0:
        arg v0, 8
        li v1, 1
        li v2, 2
        li v3, 3
        store.i32.gmem v0, v1
        store.i32.gmem v0, v2
        store.i32.gmem v0, v3
        store.i32.gmem v0, v1
        store.i32.gmem v0, v2
        store.i32.gmem v0, v3
        halt)";
  EXPECT_THAT(Allocated(code, 3), HasSubstr("li v2, 3\n  store.i32.gmem v0, v2"));
  EXPECT_THAT(Allocated(code, 1), HasSubstr("more than 1 values are live at once"));
}

// A value from before a loop keeps its register to the loop's end, also behind its last use.
TEST(AllocateTest, ValuesLiveAroundLoops) {
  EXPECT_EQ(Allocated(R"(
      b0:
        arg v0, 8
        load.i32.gmem v1, v0
        mov v2, v0
        jump b1
      b1: (v2)
        load.i32.gmem v3, v1
        load.i32.gmem v4, v2
        store.i32.gmem v4, v3
        addi v2, v2, 1
        blt v2, v0, b1
      b2:
        load.i32.gmem v5, v0
        store.i32.gmem v0, v5
        halt)",
                      5),
            R"(b0:
  arg v0, 8
  load.i32.gmem v1, v0
  mov v2, v0
  jump b1
b1:
  load.i32.gmem v3, v1
  load.i32.gmem v4, v2
  store.i32.gmem v4, v3
  addi v2, v2, 1
  blt v2, v0, b1
b2:
  load.i32.gmem v2, v0
  store.i32.gmem v0, v2
  halt
)");
}

// Short of registers, the loop loads its constant itself, above the sync.
TEST(AllocateTest, ComputesAgainWhereItCostsLeast) {
  const std::string_view code = R"(
      b0:
        li v5, 0
        load.i32.nmem v0, v5
        li v1, 64
        mov v2, v0
        jump b1
      b1: (v2)
        load.i32.nmem v3, v2
        load.i32.nmem v4, v2
        store.i32.nmem v3, v4
        sync.io
        store.i32.nmem v2, v1
        addi v2, v2, 1
        blt v2, v0, b1
      b2:
        halt)";
  EXPECT_THAT(Allocated(code, 5), HasSubstr("li v1, 64\n  mov"));
  EXPECT_EQ(Allocated(code, 4), R"(b0:
  li v0, 0
  load.i32.nmem v0, v0
  mov v1, v0
  jump b1
b1:
  load.i32.nmem v2, v1
  load.i32.nmem v3, v1
  store.i32.nmem v2, v3
  li v3, 64
  sync.io
  store.i32.nmem v1, v3
  addi v1, v1, 1
  blt v1, v0, b1
b2:
  halt
)");
}

// Any number of constants fits: 100 of them, each used in two loops, in few registers.
TEST(AllocateTest, ManyConstantsInFewRegisters) {
  std::string text = "b0:\n arg v0, 8\n";
  for (int i = 1; i <= 100; ++i) StrAppend(&text, " li v", i, ", ", i, "\n");
  StrAppend(&text, " mov v101, v0\n jump b1\nb1: (v101)\n");
  for (int i = 1; i <= 100; ++i) StrAppend(&text, " store.i32.nmem v101, v", i, "\n");
  StrAppend(&text, " addi v101, v101, 1\n blt v101, v0, b1\nb2:\n mov v102, v0\n jump b3\n");
  StrAppend(&text, "b3: (v102)\n");
  for (int i = 100; i >= 1; --i) StrAppend(&text, " store.i32.nmem v102, v", i, "\n");
  StrAppend(&text, " addi v102, v102, 1\n blt v102, v0, b3\nb4:\n halt\n");
  for (int registers : {2, 3, 4, 10, 64, 101}) {
    EXPECT_THAT(Allocated(text, registers), HasSubstr("halt")) << registers;
  }
  EXPECT_THAT(Allocated(text, 1), HasSubstr("more than 1 values"));
}

TEST(AllocateTest, LeavesOutMovesToThemselves) {
  EXPECT_EQ(Allocated("b0: (v1)\n arg v0, 8\n mov v1, v0\n store.i32.nmem v1, v1\n halt", 4),
            "b0:\n  arg v0, 8\n  store.i32.nmem v0, v0\n  halt\n");
  EXPECT_THAT(Allocated("b0: (v1)\n arg v0, 8\n mov v1, v0\n store.i32.nmem v1, v0\n halt", 4),
              HasSubstr("mov v1, v0"));
}

}  // namespace
}  // namespace polynao::diannao
