#include "compiler/codegen/diannao/value_numbering.h"

#include <limits>
#include <random>

#include "absl/status/status.h"
#include "base/check.h"
#include "base/text.h"
#include "compiler/codegen/diannao/parse_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::diannao {
namespace {

// The code of one block behind `start`, without what is dead; registers are those that it makes.
std::string Numbered(std::string_view text) {
  Code code = ParseCode(text);
  NumberValues(code);
  RemoveDeadCode(code);
  return Print(code);
}

TEST(ValueNumberingTest, SharesEqualValues) {
  EXPECT_EQ(Numbered(R"(
      b0:
        arg v0, 8
        arg v1, 9
        min v2, v0, v1
        min v3, v1, v0
        store.i32.gmem v2, v3
        halt)"),
            "b0:\n  arg v4, 8\n  arg v5, 9\n  min v6, v4, v5\n  store.i32.gmem v6, v6\n  halt\n");
}

// Two loads of one address are two values: something may have been written between them.
TEST(ValueNumberingTest, LeavesMemory) {
  EXPECT_THAT(Numbered(R"(
      b0:
        arg v0, 8
        load.i32.gmem v1, v0
        load.i32.gmem v2, v0
        store.i32.gmem v1, v2
        halt)"),
              testing::HasSubstr("load.i32.gmem v2"));
}

// What one side of a branch computes is not there on the other, nor behind it.
TEST(ValueNumberingTest, StaysWithinWhatDominates) {
  EXPECT_EQ(Numbered(R"(
      b0:
        arg v0, 8
        beq v0, v0, b2
      b1:
        addi v1, v0, 5
        store.i32.gmem v1, v0
        jump b3
      b2:
        addi v2, v0, 5
        store.i32.gmem v2, v0
        jump b3
      b3:
        addi v3, v0, 5
        store.i32.gmem v3, v0
        halt)"),
            R"(b0:
  arg v4, 8
  beq v4, v4, b2
b1:
  addi v5, v4, 5
  store.i32.gmem v5, v4
  jump b3
b2:
  addi v6, v4, 5
  store.i32.gmem v6, v4
  jump b3
b3:
  addi v7, v4, 5
  store.i32.gmem v7, v4
  halt
)");
}

TEST(ValueNumberingTest, FoldsConstants) {
  EXPECT_EQ(Numbered(R"(
      b0:
        li v0, -7
        li v1, 2
        div v2, v0, v1
        mod v3, v0, v1
        slt v4, v2, v3
        mul v5, v2, v3
        addi v6, v5, 100
        select v7, v4, v6, v0
        muli v8, v7, 1
        addi v9, v8, 0
        mov v10, v9
        store.i32.gmem v10, v10
        halt)"),
            "b0:\n  li v15, 96\n  store.i32.gmem v15, v15\n  halt\n");
}

// A division by 0 stops the program when it gets there, and only then.
TEST(ValueNumberingTest, LeavesTraps) {
  EXPECT_THAT(Numbered(R"(
      b0:
        li v0, 5
        li v1, 0
        div v2, v0, v1
        halt)"),
              testing::HasSubstr("div v2, v3, v4"));
}

// ((i + 1) * 4 + c) * 2 + b, with the counter i of a loop and c and b from outside of it.
TEST(ValueNumberingTest, CollectsSums) {
  EXPECT_EQ(Numbered(R"(
      b0:
        arg v0, 8
        arg v1, 9
        li v2, 10
        mov v3, v2
        jump b1
      b1: (v3)
        addi v4, v3, 1
        muli v5, v4, 4
        add v6, v5, v1
        muli v7, v6, 2
        add v8, v7, v0
        store.i32.gmem v8, v8
        addi v3, v3, 1
        blt v3, v2, b1
      b2:
        halt)"),
            R"(b0:
  arg v9, 8
  arg v10, 9
  li v11, 10
  mov v3, v11
  jump b1
b1: (v3)
  muli v17, v10, 2
  muli v18, v3, 8
  add v21, v17, v9
  add v22, v21, v18
  addi v23, v22, 8
  store.i32.gmem v23, v23
  addi v3, v3, 1
  blt v3, v11, b1
b2:
  halt
)");
}

// Sums of any shape over two arguments have the values that they had, wrapping around.
TEST(ValueNumberingTest, SumsAreExact) {
  const uint64_t first = std::random_device{}();
  const auto evaluate = [](const Code& code, int64_t a, int64_t b) {
    std::vector<int64_t> values(code.home.size(), 0);
    for (const Op& op : code.blocks[0].ops) {
      if (op.instruction->mnemonic == "arg") {
        values[op.fields[0]] = op.fields[1] == 8 ? a : b;
      } else if (op.instruction->mnemonic == "store.i64.gmem") {
        return values[op.fields[1]];
      } else {
        std::vector<int64_t> operands(op.fields.begin(), op.fields.end());
        for (size_t i = 0; i < operands.size(); ++i) {
          if (IsRead(op.instruction->operands[i])) operands[i] = values[op.fields[i]];
        }
        std::vector<int64_t> written(operands.size());
        const absl::Status status =
            code.set->Execute(*op.instruction, operands, {}, absl::MakeSpan(written));
        POLYNAO_CHECK(status.ok()) << status;
        values[op.fields[0]] = written[0];
      }
    }
    POLYNAO_UNREACHABLE("no store");
  };
  for (uint64_t seed = first; seed < first + 300; ++seed) {
    std::mt19937_64 random(seed);
    std::string text = "b0:\n arg v0, 8\n arg v1, 9\n li v2, 3\n";
    int next = 3;
    const auto any = [&] { return StrCat("v", random() % next); };
    const auto constant = [&]() -> int64_t {
      switch (random() % 4) {
        case 0:
          return std::numeric_limits<int64_t>::min() + static_cast<int64_t>(random() % 2);
        case 1:
          return static_cast<int64_t>(random());
        default:
          return static_cast<int64_t>(random() % 7) - 3;
      }
    };
    for (int i = 0; i < 40; ++i, ++next) {
      const uint64_t kind = random() % 5;
      const char* name = kind < 1 ? "add" : kind < 2 ? "sub" : kind < 3 ? "mul" : "";
      if (kind < 3) {
        StrAppend(&text, " ", name, " v", next, ", ", any(), ", ", any(), "\n");
      } else {
        StrAppend(&text, kind == 3 ? " addi v" : " muli v", next, ", ", any(), ", ", constant(),
                  "\n");
      }
    }
    StrAppend(&text, " store.i64.gmem v0, v", next - 1, "\n halt\n");
    const Code before = ParseCode(text);
    Code after = before;
    NumberValues(after);
    RemoveDeadCode(after);
    for (int i = 0; i < 5; ++i) {
      const int64_t a = static_cast<int64_t>(random());
      const int64_t b = static_cast<int64_t>(random() % 16) - 8;
      ASSERT_EQ(evaluate(before, a, b), evaluate(after, a, b)) << "seed " << seed << "\n"
                                                               << Print(before) << Print(after);
    }
  }
}

}  // namespace
}  // namespace polynao::diannao
