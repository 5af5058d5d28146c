// Whole programs: what stands behind a sync, what leaves loops, what stays.
#include "compiler/codegen/diannao/diannao.h"

#include "base/check.h"
#include "base/text.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/instruction_set.h"
#include "testing/machine.h"

namespace polynao {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Target& Card() {
  static const auto* machine = new isa::Machine(TestMachine("unit"));
  static const auto* target = new Target{"diannao", &isa::DianNao(), machine};
  return *target;
}

absl::StatusOr<isa::Program> Compile(std::string_view text) {
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  POLYNAO_CHECK(function.ok()) << function.status();
  return GenerateDianNao(*function, Card());
}

// The mnemonics, labels as "name:".
std::vector<std::string> Mnemonics(std::string_view text) {
  const absl::StatusOr<isa::Program> program = Compile(text);
  POLYNAO_CHECK(program.ok()) << program.status();
  std::vector<std::string> mnemonics;
  for (size_t pc = 0; pc < program->code.size(); ++pc) {
    const auto label = program->labels.find(pc);
    if (label != program->labels.end()) mnemonics.push_back(label->second + ":");
    mnemonics.push_back(isa::DianNao().Decode(program->code[pc])->instruction->mnemonic);
  }
  return mnemonics;
}

// Those from the first `first` on, up to the next `last`.
std::vector<std::string> Between(std::string_view first, std::string_view last,
                                 const std::vector<std::string>& all) {
  const auto begin = std::find(all.begin(), all.end(), first);
  POLYNAO_CHECK(begin != all.end()) << first;
  const auto end = std::find(begin + 1, all.end(), last);
  POLYNAO_CHECK(end != all.end()) << last;
  return {begin, end + 1};
}

// A loop in which each tile is loaded to another place, computed, and stored under a condition.
constexpr std::string_view kPipeline = R"(
  func f(A: f16[8192] in, B: f16[8192] out, n: i32) {
    thread (tid, 1) {
      pragma "address" (i64(0)) {
        allocate L: f16[256] @nmem
        for (i, 0, n) {
          sync.compute()
          sync.io()
          relu.f16(&L[i % 2 * 128], &L[i % 2 * 128], 128)
          memcpy.f16.nmem.gmem.async(&L[(i + 1) % 2 * 128], &A[(i + 1) * 128], 128, 1, 0, 0)
          if (i % 3 == 0) {
            memcpy.f16.gmem.nmem.async(&B[i * 128 - 128], &L[(i + 1) % 2 * 128], 128, 1, 0, 0)
          }
        }
      }
    }
  })";

TEST(DianNaoTest, NothingComputesBehindASync) {
  EXPECT_THAT(Between("sync.compute", "blt", Mnemonics(kPipeline)),
              ElementsAre("sync.compute", "sync.io", "relu.f16", "memcpy.f16.nmem.gmem.async",
                          "beq", "memcpy.f16.gmem.nmem.async", "addi", "blt"));
}

TEST(DianNaoTest, LoopsThatAreCalledAsRegisters) {
  const absl::StatusOr<isa::Program> program =
      Compile("func f(A: f32[4] out, n: i32) { for (r0, 0, n) { A[r0] = 1.0 } }");
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::StatusOr<std::string> text = isa::Disassemble(isa::DianNao(), *program);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, testing::HasSubstr("loop_r0:"));
}

TEST(DianNaoTest, ConstantsLeaveTheLoop) {
  const std::vector<std::string> loop = Between("i:", "sync.compute", Mnemonics(kPipeline));
  EXPECT_EQ(std::count(loop.begin(), loop.end(), "li"), 0) << testing::PrintToString(loop);
}

// Equal addresses once, constants in them added in one step.
TEST(DianNaoTest, SharesAddresses) {
  EXPECT_THAT(Between("tid:", "halt", Mnemonics(R"(
                func f(A: i32[4096], n: i32) {
                  thread (cid, 2) {
                    thread (tid, 2) {
                      A[n * 8 + 3] = A[n * 8 + 3]
                      A[(n + 2) * 8 - 12] = A[(n + 2) * 8 - 13]
                    }
                  }
                })")),
              ElementsAre("tid:", "muli", "add", "addi", "load.i32.gmem", "store.i32.gmem",
                          "load.i32.gmem", "addi", "store.i32.gmem", "halt"));
}

// A load keeps its place among stores and syncs, and what depends on it stays behind it. (The last
// `addi` computes an address of B.)
TEST(DianNaoTest, MemoryKeepsItsOrder) {
  const std::vector<std::string> all = Mnemonics(R"(
      func f(A: i32[64], B: i32[64]) {
        thread (tid, 1) {
          sync.io()
          A[5] = A[7] + 1
          sync.compute()
          B[5] = A[5] * 3
        }
      })");
  EXPECT_THAT(Between("sync.io", "sync.compute", all),
              ElementsAre("sync.io", "load.i32.gmem", "addi", "wrap.i32", "store.i32.gmem", "addi",
                          "sync.compute"));
  EXPECT_THAT(Between("sync.compute", "store.i32.gmem", all),
              ElementsAre("sync.compute", "load.i32.gmem", "muli", "wrap.i32", "store.i32.gmem"));
}

// A division that may trap stays under its condition, behind the sync; by a constant it is moved.
TEST(DianNaoTest, TrapsStay) {
  const auto program = [](std::string_view divisor) {
    return StrCat(R"(
        func f(A: f16[8192] in, n: i32, m: i32) {
          thread (tid, 1) {
            pragma "address" (i64(0)) {
              allocate L: f16[128] @nmem
              sync.io()
              if (m > 0) {
                memcpy.f16.nmem.gmem.async(&L[0], &A[n / )",
                  divisor, R"(], 128, 1, 0, 0)
              }
            }
          }
        })");
  };
  // By a variable, which may be -1, the least value's quotient wraps.
  EXPECT_THAT(Between("sync.io", "memcpy.f16.nmem.gmem.async", Mnemonics(program("m"))),
              ElementsAre("sync.io", "beq", "div", "wrap.i32", "muli", "add",
                          "memcpy.f16.nmem.gmem.async"));
  EXPECT_THAT(Between("sync.io", "memcpy.f16.nmem.gmem.async", Mnemonics(program("7"))),
              ElementsAre("sync.io", "beq", "memcpy.f16.nmem.gmem.async"));
}

// A sum of `count` loads, computed from the right: all of them are live at once.
std::string SumOfLoads(int count) {
  std::string sum = StrCat("A[", count - 1, "]");
  for (int i = count - 2; i >= 0; --i) sum = StrCat("(A[", i, "] - ", sum, ")");
  return StrCat("func f(A: f32[200]) { A[0] = ", sum, " }");
}

TEST(DianNaoTest, RegistersRunOut) {
  EXPECT_TRUE(Compile(SumOfLoads(60)).ok());
  const absl::StatusOr<isa::Program> program = Compile(SumOfLoads(70));
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(std::string(program.status().message()),
              HasSubstr("function 'f': more than 64 values are live at once"));
}

// More constants than registers in one loop: those that do not fit are loaded where they are used.
TEST(DianNaoTest, MoreConstantsThanRegisters) {
  std::string body;
  for (int i = 0; i < 200; ++i) StrAppend(&body, "A[i * 200 + ", i, "] = ", i * i + 1000, "\n");
  const std::string text = StrCat("func f(A: i32[40000]) { for (i, 0, 200) { ", body, " } }");
  const std::vector<std::string> loop = Between("i:", "blt", Mnemonics(text));
  const int64_t loaded = std::count(loop.begin(), loop.end(), "li");
  EXPECT_GE(loaded, 136);
  EXPECT_LE(loaded, 150) << "registers are left over";
}

TEST(DianNaoTest, IsDeterministic) {
  const absl::StatusOr<isa::Program> once = Compile(kPipeline);
  ASSERT_TRUE(once.ok()) << once.status();
  EXPECT_EQ(*once, *Compile(kPipeline));
}

}  // namespace
}  // namespace polynao
