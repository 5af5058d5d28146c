// POLYNAO_RANDOM_CASES=5000 packs more random functions, POLYNAO_SEED=7 begins with that one.

#include "compiler/ir/packed.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/text.h"
#include "gtest/gtest.h"
#include "testing/fuzz.h"

namespace polynao::ir {
namespace {

std::vector<Function> Repack(const std::vector<Function>& functions) {
  PackedWriter writer;
  PackFunctions(functions, writer);
  PackedReader reader(writer.bytes());
  std::vector<Function> result = UnpackFunctions(reader, std::make_shared<Context>());
  EXPECT_TRUE(reader.AtEnd());
  return result;
}

TEST(PackedTest, NumbersAndTexts) {
  PackedWriter writer;
  const std::vector<int64_t> numbers = {0,
                                        1,
                                        -1,
                                        63,
                                        -64,
                                        64,
                                        1 << 20,
                                        std::numeric_limits<int64_t>::min(),
                                        std::numeric_limits<int64_t>::max()};
  for (const int64_t number : numbers) writer.Signed(number);
  writer.Unsigned(~uint64_t{0});
  writer.Float(-0.1);
  writer.Text("");
  writer.Text(std::string("a\0b", 3));
  PackedReader reader(writer.bytes());
  for (const int64_t number : numbers) EXPECT_EQ(reader.Signed(), number);
  EXPECT_EQ(reader.Unsigned(), ~uint64_t{0});
  EXPECT_EQ(reader.Float(), -0.1);
  EXPECT_EQ(reader.Text(), "");
  EXPECT_EQ(reader.Text(), std::string_view("a\0b", 3));
  EXPECT_TRUE(reader.AtEnd());
}

TEST(PackedDeathTest, BytesThatEndEarlyStop) {
  PackedWriter writer;
  writer.Text("abc");
  EXPECT_DEATH(PackedReader(writer.bytes().substr(0, 2)).Text(), "at byte");
  EXPECT_DEATH(PackedReader("").Unsigned(), "at byte 0");
}

// What instructions' meanings have and random functions lack: attributes, scopes of scalars, calls of
// instructions, addresses.
TEST(PackedTest, AttributesAndScopes) {
  const absl::StatusOr<Function> function = ParseFunction(R"(
@doc("two \"words\"")
@cost(n / 2 + scalar.start)
@flags(1, "x", n < 4)
func f(A: f16[n, 3] @nmem out, B: f16[n, 3] @gmem, n: i64 @imm, x: f16) {
  pragma "hint"(n, 3)
  for (i: i64, 0, n) {
    let y: f16 = x * 0.1
    if (i < n - 1) { A[i, 2] = B[i, 0] + y } else { move(&A[i, 0], &B[0, 0], i) }
  }
})");
  ASSERT_TRUE(function.ok()) << function.status();
  const std::vector<Function> copies = Repack({*function});
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(Print(copies[0]), Print(*function));
}

TEST(PackedTest, FunctionsOfOneContextShareExpressions) {
  const absl::StatusOr<Module> module = ParseModule(R"(
func f(A: i32[8] out) { A[0] = 1000 }
func g(A: i32[8] out) { A[1] = 1000 }
)",
                                                    "<text>");
  ASSERT_TRUE(module.ok()) << module.status();
  const std::vector<Function> copies = Repack(module->functions);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].body.value(), copies[1].body.value());
  EXPECT_NE(copies[0].params[0].buffer, copies[1].params[0].buffer);
}

TEST(PackedTest, RandomFunctionsPrintTheSame) {
  const uint64_t first = FuzzSeed();
  for (int64_t i = 0; i < FuzzCases(300); ++i) {
    const uint64_t seed = first + static_cast<uint64_t>(i);
    const Function function = RandomProgram(seed);
    const std::vector<Function> copies = Repack({function});
    ASSERT_EQ(copies.size(), 1u);
    ASSERT_EQ(Print(copies[0]), Print(function)) << "POLYNAO_SEED=" << seed;
  }
}

}  // namespace
}  // namespace polynao::ir
