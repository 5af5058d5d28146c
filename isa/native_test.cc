// What the native routines take and what they must leave to the interpreter. That they agree with
// it on the built-in table is tested in instruction_set_test.
#include "isa/instruction_set.h"
#include "isa/simd_testing.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/text.h"
#include "isa/test_operands.h"

namespace polynao::isa {
namespace {

constexpr int64_t kBytes = 8192;
constexpr uint64_t kSeed = 20240611;

struct Case {
  const char* function;
  bool native;
};

std::unique_ptr<InstructionSet> LoadOne(const char* function) {
  auto set =
      InstructionSet::Load({{"t.nir", StrCat("@doc(\"d\") @opcode(1) @unit(vector) @cost(1)\n"
                                             "func op",
                                             function)}});
  POLYNAO_CHECK(set.ok()) << set.status().message();
  return *std::move(set);
}

constexpr Case kCases[] = {
    // Loops that merge, loops that do not, and a loop that starts elsewhere.
    {"(d: i32[n, m] @nmem out, s: i32[n, m] @smem in, n: i64, m: i64) { for (i: i64, 0, n) { "
     "for (j: i64, 0, m) { d[i, j] = s[i, j] } } }",
     true},
    {"(d: i32[n, m] @nmem out, s: i32[m, n] @smem in, n: i64, m: i64) { for (i: i64, 0, n) { "
     "for (j: i64, 0, m) { d[i, j] = s[j, i] + 1 } } }",
     true},
    {"(d: f32[n + 2] @nmem out, s: f32[n + 2] @smem in, n: i64) { for (i: i64, 2, n) { "
     "d[i] = s[i] * s[i - 2] - 0.5 } }",
     true},
    // Backwards.
    {"(d: i16[n] @nmem out, s: i16[n] @smem in, n: i64) { for (i: i64, 0, n) { "
     "d[n - 1 - i] = min(s[i], 100) } }",
     true},
    {"(d: u8[n] @nmem out, s: i32[n] @smem in, n: i64) { for (i: i64, 0, n) { "
     "d[i] = u8(select(s[i] < 3 && s[i] != 0, s[i] * 7, 0 - s[i])) } }",
     true},
    {"(d: i8[n] @nmem out, s: f32[n] @smem in, n: i64) { for (i: i64, 0, n) { "
     "d[i] = i8(exp(s[i]) / 3.0) } }",
     true},
    {"(d: f16[n] @nmem out, s: f16[n] @smem in, n: i64) { for (i: i64, 0, n) { "
     "d[i] = tanh(s[i] * 0.5) * 0.5 + 0.5 } }",
     true},
    // Several statements; a fold of each kind.
    {"(d: f16[n] @nmem out, s: f16[n, m] @smem in, n: i64, m: i64) { for (i: i64, 0, n) { d[i] = 1 "
     "for (j: i64, 0, m) { d[i] = d[i] * s[i, j] } d[i] = d[i] + s[i, 0] } }",
     true},
    {"(d: i8[n] @nmem, s: i8[n, m] @smem in, n: i64, m: i64) { for (i: i64, 0, n) { "
     "for (j: i64, 0, m) { d[i] = max(s[i, j], d[i]) } } }",
     true},
    {"(d: f32[n] @nmem, s: f32[n, m] @smem in, n: i64, m: i64) { for (i: i64, 0, n) { "
     "for (j: i64, 0, m) { d[i] = min(s[i, j], d[i]) } } }",
     true},
    {"(d: i32[1] @nmem, a: i8[n] @smem in, b: i8[2 * n] @wmem in, n: i64) { for (i: i64, 0, n) { "
     "d[0] = d[0] + i32(a[i]) * i32(b[2 * i]) } }",
     true},
    {"(d: i32[1] @nmem, a: i16[n] @smem in, b: i16[n] @wmem in, n: i64) { for (i: i64, 0, n) { "
     "d[0] = d[0] + i32(a[i]) * i32(b[i]) } }",
     true},
    // Grids of windows and lanes: a product of matrices, a convolution; the second one adds.
    {"(d: i32[n, 48] @nmem out, a: i8[n, m] @smem in, b: i8[48, m] @wmem in, n: i64, m: i64) { "
     "for (i: i64, 0, n) { for (l: i64, 0, 48) { d[i, l] = 0 for (k: i64, 0, m) { "
     "d[i, l] = d[i, l] + i32(a[i, k]) * i32(b[l, k]) } } } }",
     true},
    {"(d: i32[m, 2, 80] @nmem, a: i16[m + 2, 5, 3] @smem in, b: i16[80, 45] @wmem in, n: i64, "
     "m: i64) { for (i: i64, 0, m) { for (j: i64, 0, 2) { for (l: i64, 0, 80) { "
     "for (r: i64, 0, 3) { for (s: i64, 0, 3) { for (k: i64, 0, 3) { "
     "d[i, j, l] = d[i, j, l] + i32(b[l, (r * 3 + s) * 3 + k]) * i32(a[i + r, j + s, k]) } } } } } "
     "} }",
     true},
    {"(d: f32[n, 48] @nmem out, a: f16[n, m] @smem in, b: f16[48, m] @wmem in, n: i64, m: i64) { "
     "for (i: i64, 0, n) { for (l: i64, 0, 48) { d[i, l] = 0 for (k: i64, 0, m) { "
     "d[i, l] = d[i, l] + f32(a[i, k]) * f32(b[l, k]) } } } }",
     true},
    // Begins with a zero that has a sign: a sum of nothing but -0 keeps it.
    {"(d: f32[n, 48] @nmem out, a: f16[n, m] @smem in, b: f16[48, m] @wmem in, n: i64, m: i64) { "
     "for (i: i64, 0, n) { for (l: i64, 0, 48) { d[i, l] = -0.0 for (k: i64, 0, m) { "
     "d[i, l] = d[i, l] + f32(a[i, k]) * f32(b[l, k]) } } } }",
     true},
    {"(d: f32[m, 2, 80] @nmem, a: f32[m + 2, 5, 3] @smem in, b: f32[80, 45] @wmem in, n: i64, "
     "m: i64) { for (i: i64, 0, m) { for (j: i64, 0, 2) { for (l: i64, 0, 80) { "
     "for (r: i64, 0, 3) { for (s: i64, 0, 3) { for (k: i64, 0, 3) { "
     "d[i, j, l] = d[i, j, l] + b[l, (r * 3 + s) * 3 + k] * a[i + r, j + s, k] } } } } } "
     "} }",
     true},
    // The channels outermost: no rows in this order.
    {"(d: f32[m, 2, 80] @nmem, a: f16[m + 2, 5, 3] @smem in, b: f16[80, 45] @wmem in, n: i64, "
     "m: i64) { for (i: i64, 0, m) { for (j: i64, 0, 2) { for (l: i64, 0, 80) { "
     "for (k: i64, 0, 3) { for (r: i64, 0, 3) { for (s: i64, 0, 3) { "
     "d[i, j, l] = d[i, j, l] + f32(b[l, (r * 3 + s) * 3 + k]) * f32(a[i + r, j + s, k]) } } } } } "
     "} }",
     true},
    // A value of the iteration before.
    {"(d: i32[n + 1] @nmem, s: i32[n] @smem in, n: i64) { for (i: i64, 0, n) { "
     "d[i + 1] = d[i] + s[i] } }",
     false},
    // The same element many times, but no fold.
    {"(d: i32[1] @nmem, s: i32[n] @smem in, n: i64) { for (i: i64, 0, n) { d[0] = s[i] - d[0] } }",
     false},
    // Integer division can stop the program; f64 and i64 have no blocks; bounds are not a box.
    {"(d: i32[n] @nmem out, s: i32[n] @smem in, n: i64) { for (i: i64, 0, n) { d[i] = s[i] / 3 } }",
     false},
    {"(d: f64[n] @nmem out, s: f64[n] @smem in, n: i64) { for (i: i64, 0, n) { d[i] = s[i] + 1.0 } "
     "}",
     false},
    {"(d: i32[n, n] @nmem out, n: i64) { for (i: i64, 0, n) { for (j: i64, 0, i + 1) { "
     "d[i, j] = 3 } } }",
     false},
    {"(d: i32[n] @nmem out, s: i32[n] @smem in, n: i64) { for (i: i64, 0, n) { "
     "d[i] = s[i * i % n] } }",
     false},
};

TEST(Native, TakesWhatItCanAndAgreesWithTheInterpreter) {
  AtEachSimdLevel([] {
    std::mt19937_64 random(kSeed);
    SCOPED_TRACE(StrCat("seed ", kSeed));
    for (const Case& test : kCases) {
      const auto set = LoadOne(test.function);
      const Instruction& op = set->instructions()[0];
      EXPECT_EQ(set->HasNativeRoutine(op), test.native) << test.function;
      for (int64_t n : {0, 1, 2, 5, 19, 300}) {
        for (int64_t m : {0, 1, 3, 17}) {
          std::vector<int64_t> values;
          for (const Operand& operand : op.operands) {
            values.push_back(operand.kind == OperandKind::kAddress ? 64
                             : operand.name == "n"                 ? n
                                                                   : m);
          }
          // A row's first element is read even if it has none.
          if (m == 0 && StrCat(test.function).find("s[i, 0]") != std::string::npos) continue;
          int64_t end = 0;
          for (const ByteRanges& range : set->Footprint(op, values))
            end = std::max(end, range.end());
          if (end > kBytes) continue;
          TestMachine machine(kBytes);
          FillOperands(*set, op, values, &machine, random);
          TestMachine other = machine;
          std::vector<int64_t> written(values.size());
          const absl::Status native =
              set->Execute(op, values, machine.View(), absl::MakeSpan(written));
          const absl::Status meaning =
              set->Interpret(op, values, other.View(), absl::MakeSpan(written));
          ASSERT_EQ(native, meaning) << test.function;
          UnifyNans(*set, op, values, &machine);
          UnifyNans(*set, op, values, &other);
          for (int s = 0; s < kSpaceCount; ++s) {
            ASSERT_TRUE(machine.memory[s] == other.memory[s])
                << test.function << " n = " << n << " m = " << m;
          }
        }
      }
    }
  });
}

TEST(Native, RunsInPlace) {
  AtEachSimdLevel([] {
    const auto set = LoadOne(
        "(d: f16[n] @nmem out, a: f16[n] @nmem in, b: f16[n] @nmem in, n: i64) { "
        "for (i: i64, 0, n) { d[i] = a[i] - b[i] * a[i] } }");
    const Instruction& op = set->instructions()[0];
    std::mt19937_64 random(kSeed);
    for (const std::vector<int64_t>& values :
         {std::vector<int64_t>{0, 0, 2048, 1000}, {0, 2048, 0, 1000}, {0, 0, 0, 1000}}) {
      ASSERT_TRUE(set->CheckConstraints(op, values).ok());
      TestMachine machine(kBytes);
      FillOperands(*set, op, values, &machine, random);
      TestMachine other = machine;
      std::vector<int64_t> written(values.size());
      ASSERT_TRUE(set->Execute(op, values, machine.View(), absl::MakeSpan(written)).ok());
      ASSERT_TRUE(set->Interpret(op, values, other.View(), absl::MakeSpan(written)).ok());
      UnifyNans(*set, op, values, &machine);
      UnifyNans(*set, op, values, &other);
      EXPECT_TRUE(machine.memory[int(Space::kNmem)] == other.memory[int(Space::kNmem)]);
    }
  });
}

TEST(Native, ZeroDivisorsAreTheInterpretersErrors) {
  const auto set = LoadOne("(rd: i64[1] @reg out, a: i64, b: i64) { rd[0] = a / b }");
  const Instruction& op = set->instructions()[0];
  EXPECT_TRUE(set->HasNativeRoutine(op));
  TestMachine machine(64);
  std::vector<int64_t> written(3);
  EXPECT_TRUE(
      set->Execute(op, std::vector<int64_t>{0, 7, -2}, machine.View(), absl::MakeSpan(written))
          .ok());
  EXPECT_EQ(written[0], -4);
  const absl::Status status =
      set->Execute(op, std::vector<int64_t>{0, 7, 0}, machine.View(), absl::MakeSpan(written));
  EXPECT_FALSE(status.ok());
}

}  // namespace
}  // namespace polynao::isa
