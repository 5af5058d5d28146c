
#include <cmath>
#include <limits>

#include "base/text.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/counts.h"
#include "compiler/ir/instruction_meanings.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

using ::testing::HasSubstr;

Function MustParse(std::string_view text) {
  absl::StatusOr<Function> f = ParseFunction(text, "test.nir");
  if (!f.ok()) std::cerr << f.status() << std::endl;
  return *std::move(f);
}

// Runs `func f(A: TYPE[N], ...scalars)` on zeros and returns A.
std::vector<double> Values(std::string_view text, std::vector<int64_t> scalars = {},
                           Counts* counts = nullptr) {
  const Function f = MustParse(text);
  const Buffer a = f.params[0].buffer;
  Tensor tensor(a->type, {a->extents[0].int_value()});
  std::vector<Argument> arguments = {Argument::Of(&tensor)};
  for (int64_t scalar : scalars) arguments.push_back(Argument::Int(scalar));
  const absl::Status status = Interpret(f, arguments, counts);
  EXPECT_TRUE(status.ok()) << status;
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.element_count(); ++i) values.push_back(tensor.Value(i));
  return values;
}

std::string Trap(std::string_view text, std::vector<int64_t> scalars = {}) {
  const Function f = MustParse(text);
  const Buffer a = f.params[0].buffer;
  Tensor tensor(a->type, {a->extents[0].int_value()});
  std::vector<Argument> arguments = {Argument::Of(&tensor)};
  for (int64_t scalar : scalars) arguments.push_back(Argument::Int(scalar));
  const absl::Status status = Interpret(f, arguments, nullptr, {.max_operations = 1000});
  EXPECT_FALSE(status.ok());
  return std::string(status.message());
}

using V = std::vector<double>;

TEST(InterpreterTest, OperationsOnBits) {
  EXPECT_EQ(Values("func f(A: i8[12], a: i8, n: i8) { A[0] = a << n A[1] = a >> n A[2] = a << 8"
                   " A[3] = a >> 8 A[4] = a >> -1 A[5] = a << -n A[6] = a & 15 A[7] = a | 3"
                   " A[8] = a ^ n A[9] = ~a A[10] = -a >> 100 A[11] = 1 << 7 }",
                   {-86, 1}),
            (V{84, -43, 0, -1, -1, 0, 10, -85, -85, 85, 0, -128}));
  EXPECT_EQ(
      Values("func f(A: u8[4], a: u8) { A[0] = a >> 1 A[1] = a << 1 A[2] = ~a A[3] = a >> 200 }",
             {170}),
      (V{85, 84, 85, 0}));
  // Bits that leave the type are dropped in an index too, but + - * must not wrap there.
  EXPECT_EQ(Values("func f(A: i32[1], a: i32) { A[(a << 1) + 2147483646 + 2] = 7 }", {1 << 30}),
            V{7});
  EXPECT_THAT(Trap("func f(A: i32[1], a: i32) { A[a * 2 + 2147483646 + 2] = 7 }", {1 << 30}),
              HasSubstr("the index arithmetic overflows i32"));
}

TEST(InterpreterTest, UnsignedTypes) {
  EXPECT_EQ(
      Values("func f(A: u64[12], x: u64, y: u64) { A[0] = x / y A[1] = x % y A[2] = min(x, y)"
             " A[3] = max(x, y) A[4] = cast(u64, x < y) A[5] = cast(u64, y <= x) A[6] = x - y - x"
             " A[7] = cast(u64, cast(f64, x)) A[8] = x >> 60 A[9] = cast(u64, f64(-1.0))"
             " A[10] = cast(u64, f64(1e30)) A[11] = cast(u64, i8(-1)) }",
             {-16, 3}),
      (V{6148914691236517200.0, 0, 3, 0x1p64, 0, 1, 0x1p64, 0x1p64, 15, 0, 0x1p64, 0x1p64}));
  EXPECT_EQ(Values("func f(A: u32[4], x: u32) { A[0] = x / 2 A[1] = x + 1 A[2] = cast(u32, x < 1)"
                   " A[3] = x >> 31 }",
                   {-1}),
            (V{2147483647, 0, 0, 1}));
  EXPECT_EQ(
      Values("func f(A: u16[4], n: u16) { for (i: u16, 65534, 1) { A[i - 65533] = i * i } }", {0}),
      (V{0, 4, 0, 0}));
}

TEST(InterpreterTest, FloorDivisionFollowsTheDivisor) {
  EXPECT_EQ(Values("func f(A: i32[8], a: i32, b: i32) { A[0] = a / b A[1] = a % b A[2] = a / -b"
                   " A[3] = a % -b A[4] = -a / b A[5] = -a % b A[6] = -a / -b A[7] = -a % -b }",
                   {7, 3}),
            (V{2, 1, -3, -2, -3, 2, 2, -1}));
}

TEST(InterpreterTest, DivisionAtTheEndOfTheRange) {
  EXPECT_EQ(Values("func f(A: i32[2], a: i32, b: i32) { A[0] = a / b A[1] = a % b }",
                   {std::numeric_limits<int32_t>::min(), -1}),
            (V{-2147483648.0, 0}));
}

TEST(InterpreterTest, StoredIntegersWrapAndIndicesTrap) {
  EXPECT_EQ(Values("func f(A: i32[2], a: i32) { A[0] = a + 1 A[1] = a * 2 }", {2147483647}),
            (V{-2147483648.0, -2}));
  EXPECT_EQ(Values("func f(A: i8[2], a: i8) { A[0] = a + 1 A[1] = 0 - a - 2 }", {127}),
            (V{-128, 127}));
  EXPECT_EQ(Trap("func f(A: i32[2], a: i32) { A[a + 1 - a] = 1 }", {2147483647}),
            "function 'f', in 'A[a + 1 - a] = 1': the index arithmetic overflows i32");
  EXPECT_THAT(Trap("func f(A: i32[2], a: i32) { if (a + 1 > a) { A[0] = 1 } }", {2147483647}),
              HasSubstr("the index arithmetic overflows i32"));
  EXPECT_THAT(
      Trap("func f(A: i32[2], a: i32) { A[0] = select(a + 1 > a, 1, a + 1) }", {2147483647}),
      HasSubstr("the index arithmetic overflows i32"));
}

TEST(InterpreterTest, FloatsRoundOncePerOperation) {
  EXPECT_EQ(
      Values("func f(A: f16[3]) { A[0] = f16(2048.0) + f16(1.0) A[1] = f16(2048.0) + f16(1.0) "
             "+ f16(1.0) A[2] = f16(60000.0) + f16(60000.0) }"),
      (V{2048, 2048, std::numeric_limits<double>::infinity()}));
  EXPECT_EQ(Values("func f(A: f32[1]) { A[0] = 16777216.0 + 1.0 }"), (V{16777216}));
}

TEST(InterpreterTest, MinAndMaxKeepANaNOnTheLeft) {
  const V values = Values(
      "func f(A: f32[4]) { A[0] = min(f32(nan), 1.0) A[1] = min(1.0, f32(nan))"
      " A[2] = max(f32(nan), 1.0) A[3] = max(1.0, f32(nan)) }");
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[1], 1);
  EXPECT_TRUE(std::isnan(values[2]));
  EXPECT_EQ(values[3], 1);
}

TEST(InterpreterTest, CastsSaturate) {
  EXPECT_EQ(Values("func f(A: i32[6]) { A[0] = cast(i32, 1e20) A[1] = cast(i32, -1e20)"
                   " A[2] = cast(i32, f32(nan)) A[3] = cast(i32, -2.7)"
                   " A[4] = cast(i32, cast(u8, -5.0)) A[5] = cast(i32, cast(i8, i32(200))) }"),
            (V{2147483647, -2147483648.0, 0, -2, 0, -56}));
}

TEST(InterpreterTest, OnlyTheNeededSideIsEvaluated) {
  EXPECT_EQ(Values("func f(A: i32[3], n: i32) { A[0] = select(n == 0, 7, 10 / n)"
                   " A[1] = select(n != 0 && 10 / n > 1, 1, 2)"
                   " A[2] = select(n == 0 || 10 / n > 1, 1, 2) }",
                   {0}),
            (V{7, 2, 1}));
}

TEST(InterpreterTest, LoopsWithEdgeExtents) {
  EXPECT_EQ(Values("func f(A: i32[4], n: i32) { for (i, 2, n) { A[i] = i } "
                   "parallel (j, 0, -3) { A[0] = 9 } thread (t, 1, 1) { A[t] = 5 } }",
                   {2}),
            (V{0, 5, 2, 3}));
  // The bounds are evaluated once.
  EXPECT_EQ(Values("func f(A: i32[4]) { A[0] = 2 for (i, 0, A[0]) { A[0] = 4 A[1] = A[1] + 1 } }"),
            (V{4, 2, 0, 0}));
}

// The last value must fit the variable's type, but nothing behind it.
TEST(InterpreterTest, LoopsToTheGreatestValue) {
  for (const Type type :
       {Type::kI8, Type::kI16, Type::kI32, Type::kI64, Type::kU8, Type::kU16, Type::kU32}) {
    const std::string name(TypeName(type));
    const auto loop = [&](int64_t first, int64_t extent) {
      return StrCat("func f(A: i64[2]) { for (i: ", name, ", ", first, ", ", extent,
                    ") { A[0] = A[0] + 1 A[1] = ", type == Type::kI64 ? "i" : "cast(i64, i)",
                    " } }");
    };
    const int64_t last = GreatestInt(type);
    EXPECT_EQ(Values(loop(last - 2, 3)), (V{3, static_cast<double>(last)})) << name;
    EXPECT_EQ(Values(loop(last, 0)), (V{0, 0})) << name;
    EXPECT_THAT(Trap(loop(last - 2, 4)),
                HasSubstr(StrCat("the loop's last value overflows ", name)));
  }
}

TEST(InterpreterTest, LetsAllocationsAndScalars) {
  EXPECT_EQ(Values("func f(A: i32[2], n: i32) { let x = n * 2 allocate L: i32[x, 2] @local "
                   "for (i, 0, x) { L[i, 1] = i + x } A[0] = L[x - 1, 1] "
                   "A[1] = (let y: i32 = x + 1 in y * y) }",
                   {3}),
            (V{11, 49}));
  EXPECT_EQ(Values("func f(A: f32[1]) { allocate cell: f32[] @reg cell[] = 2.5 A[0] = cell[] }"),
            (V{2.5}));
}

TEST(InterpreterTest, TrapsNameStatementAndLoopVariables) {
  EXPECT_EQ(Trap("func f(A: i32[4]) { for (i, 0, 2) { for (j, 0, 3) { A[i * 3 + j] = 1 } } }"),
            "function 'f', in 'A[i * 3 + j] = 1' with i = 1, j = 1: index 4 of dimension 0 is "
            "outside 0 .. 3");
  EXPECT_THAT(Trap("func f(A: i32[4]) { A[0] = A[0 - 1] }"),
              HasSubstr("index -1 of dimension 0 is outside 0 .. 3"));
  EXPECT_THAT(Trap("func f(A: i32[4]) { A[0] = 1 / A[0] }"), HasSubstr("division by zero"));
  EXPECT_THAT(Trap("func f(A: i32[4]) { A[0] = 1 % A[0] }"), HasSubstr("division by zero"));
  EXPECT_THAT(Trap("func f(A: i32[4]) { allocate L: i32[4] L[1] = 1 A[0] = L[0] }"),
              HasSubstr("element 0 of L is read before it is stored"));
  // Each pass through an allocation starts undefined again.
  EXPECT_THAT(Trap("func f(A: i32[4]) { for (i, 0, 2) { allocate L: i32[1] "
                   "if (i == 0) { L[0] = 1 } A[0] = L[0] } }"),
              HasSubstr("with i = 1: element 0 of L is read before it is stored"));
  // What is computed from it may stay in allocations, and decide nothing.
  const auto after_copy = [](std::string use) {
    return "func f(A: i32[4]) { allocate L: i32[4] allocate M: i32[4] for (i, 0, 4) { M[i] = L[i] "
           "* 2 + 1 } M[0] = 1 " +
           use + " }";
  };
  EXPECT_EQ(Values(after_copy("A[0] = M[0]")), (V{1, 0, 0, 0}));
  for (const std::string use : {"A[0] = M[1]", "A[M[1]] = 1", "if (M[1] == 0) { A[0] = 1 }",
                                "for (i, 0, M[1]) { A[0] = 1 }", "M[0] = 1 / M[1]",
                                "M[0] = 1 % M[1]", "let x: i32 = M[1] A[0] = x", "M[M[1]] = 1",
                                "M[0] = L[M[1]]", "M[0] = select(M[1] == 0, 1, 2)"}) {
    EXPECT_THAT(Trap(after_copy(use)), HasSubstr("element 1 of M is read before it is stored"))
        << use;
  }
  EXPECT_THAT(Trap("func f(A: i32[4]) { for (i, 0, 100000) { A[0] = 1 } }"),
              HasSubstr("more than 1000 loop iterations"));
  EXPECT_THAT(Trap("func f(A: i32[4], n: i32) { for (i, n, 2) { A[0] = i } }", {2147483647}),
              HasSubstr("the loop's last value overflows i32"));
  EXPECT_THAT(Trap("func f(A: i32[4], n: i32) { allocate L: i32[n] A[0] = 1 }", {-2}),
              HasSubstr("allocation of L with the extent -2"));
}

TEST(InterpreterTest, ChecksArguments) {
  const Function f = MustParse("func f(A: f32[n, 4] in, n: i32) { }");
  Tensor right(Type::kF32, {3, 4});
  Tensor wrong(Type::kF32, {4, 3});
  EXPECT_TRUE(Interpret(f, {Argument::Of(&right), Argument::Int(3)}).ok());
  EXPECT_EQ(Interpret(f, {Argument::Of(&wrong), Argument::Int(3)}).message(),
            "function 'f': parameter 'A' is f32[3, 4], found f32[4, 3]");
  EXPECT_EQ(Interpret(f, {Argument::Of(&right)}).message(),
            "function 'f' takes 2 arguments, found 1");
}

TEST(InterpreterTest, CountsWhatRan) {
  Counts counts;
  Values("func f(A: i32[8], n: i32) { for (i, 0, 8) { if (i < n) { A[i] = A[i] * 3 + i / 2 } } }",
         {5}, &counts);
  EXPECT_EQ(counts.loads, 5);
  EXPECT_EQ(counts.stores, 5);
  EXPECT_EQ(counts.int_mul, 5);
  EXPECT_EQ(counts.int_add, 5);
  EXPECT_EQ(counts.int_div, 5);
  EXPECT_EQ(counts.int_compare, 8);
  EXPECT_EQ(counts.iterations, 8);
  EXPECT_EQ(counts.branches, 8 + 9);  // ifs, and loop tests including the last
  EXPECT_EQ(counts.float_ops, 0);
}

class OneInstruction : public Intrinsics {
 public:
  explicit OneInstruction(Function meaning) : meaning_(std::move(meaning)) {}
  const Function* FindMeaning(std::string_view name) const override {
    return name == "vadd.f32" ? &meaning_ : nullptr;
  }

 private:
  Function meaning_;
};

TEST(InterpreterTest, InstructionsRunTheirMeaning) {
  const OneInstruction set(
      MustParse("func vadd(dst: f32[n] @nmem out, a: f32[n] @nmem in, b: f32[n] @nmem in, n: i64)"
                "{ for (i: i64, 0, n) { dst[i] = a[i] + b[i] } }"));
  // Only 3 of 4 lanes are defined; the instruction may compute all, the program may read 3.
  const auto program = [](int reads) {
    return MustParse(
        StrCat("func f(A: f32[4]) { allocate L: f32[2, 4] @nmem allocate M: f32[4] @nmem "
               "for (i, 0, 3) { L[0, i] = cast(f32, i) L[1, i] = 10.0 } "
               "vadd.f32(&M[0], &L[0, 0], &L[1, 0], 4) "
               "for (i, 0, ",
               reads, ") { A[i] = M[i] } }"));
  };
  Tensor a(Type::kF32, {4});
  Counts counts;
  const InterpreterOptions options = {.intrinsics = &set};
  ASSERT_TRUE(Interpret(program(3), {Argument::Of(&a)}, &counts, options).ok());
  EXPECT_EQ(a.Value(2), 12);
  EXPECT_EQ(counts.instructions, 1);
  EXPECT_THAT(std::string(Interpret(program(4), {Argument::Of(&a)}, nullptr, options).message()),
              HasSubstr("element 3 of M is read before it is stored"));
  EXPECT_THAT(std::string(Interpret(MustParse("func f(A: f32[4]) { vadd.f32(&A[0], &A[1], &A[0], "
                                              "4) }"),
                                    {Argument::Of(&a)}, nullptr, options)
                              .message()),
              HasSubstr("operand 'a' reaches element 4 of A, which has 4"));
  EXPECT_THAT(std::string(Interpret(MustParse("func f(A: f32[4]) { vsub.f32(&A[0]) }"),
                                    {Argument::Of(&a)}, nullptr, options)
                              .message()),
              HasSubstr("no instruction is named 'vsub.f32'"));
}

}  // namespace
}  // namespace polynao::ir
