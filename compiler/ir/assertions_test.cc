#include "compiler/ir/assertions.h"

#include "compiler/ir/random_arguments.h"
#include "compiler/ir/scalar_text.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

using ::testing::HasSubstr;

Function Parse(const std::string& conditions, const std::string& params) {
  absl::StatusOr<Function> function =
      ParseFunction("@assert(" + conditions + ")\nfunc f(" + params + ") { }");
  EXPECT_TRUE(function.ok()) << function.status();
  return *std::move(function);
}

std::string Check(const std::string& conditions, const std::string& params,
                  std::vector<Argument> arguments) {
  return std::string(CheckAssertions(Parse(conditions, params), arguments).message());
}

TEST(CheckAssertions, NamesTheConditionAndItsScalars) {
  const auto n = [](int64_t value) { return std::vector{Argument::Int(value)}; };
  EXPECT_EQ(Check("n % 64 == 0, 0 < n", "n: i32", n(128)), "");
  EXPECT_EQ(Check("n % 64 == 0, 0 < n", "n: i32", n(65)),
            "function 'f': '@assert(n % 64 == 0)' does not hold: n = 65");
  EXPECT_EQ(Check("n % 64 == 0, 0 < n", "n: i32", n(-64)),
            "function 'f': '@assert(0 < n)' does not hold: n = -64");
  EXPECT_EQ(Check("m == 2 * n", "n: i32, m: i32, k: i32",
                  {Argument::Int(3), Argument::Int(7), Argument::Int(0)}),
            "function 'f': '@assert(m == 2 * n)' does not hold: n = 3, m = 7");
}

// As the interpreter computes: at the ends of types, with quotients by zero, in floats.
TEST(CheckAssertions, MeansWhatTheInterpreterMeans) {
  const auto n = [](int64_t value) { return std::vector{Argument::Int(value)}; };
  EXPECT_EQ(Check("n < n + 1", "n: i32", n(INT32_MAX)),
            "function 'f': '@assert(n < n + 1)' does not hold: n = 2147483647");
  EXPECT_EQ(Check("n < n + 1", "n: i64", n(INT32_MAX)), "");
  EXPECT_EQ(Check("9223372036854775808 <= n", "n: u64", n(-1)), "");
  EXPECT_EQ(Check("n < 9223372036854775808", "n: u64", n(-1)),
            "function 'f': '@assert(n < 9223372036854775808)' does not hold: n = "
            "18446744073709551615");
  EXPECT_EQ(Check("8 / n == 2", "n: i32", n(4)), "");
  EXPECT_THAT(Check("8 / n == 2", "n: i32", n(0)), HasSubstr("does not hold: n = 0"));
  EXPECT_EQ(Check("n == 0 || 8 / n == 2", "n: i32", n(0)), "");
  EXPECT_EQ(Check("x * x < 2.0", "x: f32", {Argument::Float(1.25)}), "");
  EXPECT_THAT(Check("x * x < 2.0", "x: f32", {Argument::Float(-1.5)}),
              HasSubstr("does not hold: x = -1.5"));
}

TEST(CheckAssertions, AttributesMayStandSeveralTimes) {
  const Function f =
      *ParseFunction("@assert(0 < n) @assert(n < 9) func f(A: f32[n], n: i32) { A[0] = 1.0 }");
  EXPECT_EQ(Assertions(f).size(), 2);
  Argument tensor;
  EXPECT_TRUE(CheckAssertions(f, {tensor, Argument::Int(8)}).ok());
  EXPECT_FALSE(CheckAssertions(f, {tensor, Argument::Int(9)}).ok());
  EXPECT_FALSE(CheckAssertions(f, {tensor, Argument::Int(0)}).ok());
}

// What a search has to solve, for small and for any scalars, and with some that are given.
TEST(DrawScalars, KeepWhatIsAsserted) {
  const struct {
    const char* conditions;
    const char* params;
  } kCases[] = {
      {"n % 64 == 0, 0 < n", "n: i32"},
      {"n % 64 == 0, 0 < n", "n: u8"},
      {"n % 64 == 63", "n: i64"},
      {"m == 2 * n", "n: i32, m: i32"},
      {"m == 2 * n, 0 < m, m % 3 == 0", "n: i32, m: i32"},
      {"m == 2 * n && k == m + n", "n: i32, m: i32, k: i32"},
      {"1 <= m, m <= n, n <= k, k <= 12", "n: i32, m: i32, k: i32"},
      {"n + m == 1000, 10 <= n - m", "n: i32, m: i32"},
      {"n == 12345", "n: i32"},
      {"9223372036854775808 <= n", "n: u64"},
      {"n == -128", "n: i8"},
      {"n % 4 == 0 || n % 6 == 0, 9 < n", "n: i16"},
      {"0 < n, 96 % n == 0, 4 < n", "n: i32"},
      {"0.0 < x, x < 4.0, 0 < n", "n: i32, x: f32"},
      {"b, 3 < n", "n: i32, b: i1"},
  };
  for (const auto& c : kCases) {
    const Function f = Parse(c.conditions, c.params);
    for (const bool small : {true, false}) {
      for (uint64_t seed = 0; seed < 200; ++seed) {
        const auto drawn = RandomArguments::DrawScalars(f, seed, {.small_integers = small});
        ASSERT_TRUE(drawn.ok()) << drawn.status() << ", seed " << seed;
        EXPECT_EQ(CheckAssertions(f, *drawn), absl::OkStatus()) << "seed " << seed;
      }
    }
  }
  const Function f = Parse("m == 2 * n", "n: i32, m: i32");
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const auto drawn =
        RandomArguments::DrawScalars(f, seed, {.scalars = {{"m", Argument::Int(26)}}});
    ASSERT_TRUE(drawn.ok()) << drawn.status();
    EXPECT_EQ((*drawn)[0].int_value, 13);
    EXPECT_EQ((*drawn)[1].int_value, 26);
  }
}

TEST(DrawScalars, SayThatNoneWereFound) {
  const auto error = [](const Function& f, const std::map<std::string, Argument>& scalars) {
    return std::string(RandomArguments::DrawScalars(f, 1, {.scalars = scalars}).status().message());
  };
  EXPECT_EQ(error(Parse("n < 0, 0 < n", "n: i32"), {}),
            "function 'f': no scalars found that keep '@assert(n < 0, 0 < n)' in 16000 tries");
  const Function f = Parse("m == 2 * n", "n: i32, m: i32");
  EXPECT_EQ(error(f, {{"m", Argument::Int(27)}}),
            "function 'f': no scalars found that keep '@assert(m == 2 * n)' in 16000 tries, beside "
            "those that are given");
  EXPECT_EQ(error(f, {{"m", Argument::Int(27)}, {"n", Argument::Int(13)}}),
            "function 'f': '@assert(m == 2 * n)' does not hold: n = 13, m = 27");
}

TEST(ScalarText, ReadsWhatItWrites) {
  const auto parsed = [](Type type, std::string_view text) {
    const absl::StatusOr<Argument> value = ParseScalar(type, text);
    return value.ok() ? ScalarText(type, *value) : std::string(value.status().message());
  };
  EXPECT_EQ(parsed(Type::kU64, "18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(parsed(Type::kU64, "9223372036854775808"), "9223372036854775808");
  EXPECT_EQ(parsed(Type::kU64, "18446744073709551616"),
            "expected an integer of u64, found '18446744073709551616'");
  EXPECT_EQ(parsed(Type::kU64, "-1"), "expected an integer of u64, found '-1'");
  EXPECT_EQ(parsed(Type::kI64, "-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(parsed(Type::kI64, "9223372036854775808"),
            "expected an integer of i64, found '9223372036854775808'");
  EXPECT_EQ(parsed(Type::kU8, "300"), "expected an integer of u8, found '300'");
  EXPECT_EQ(parsed(Type::kF32, "1.5"), "1.5");
  EXPECT_EQ(parsed(Type::kF32, "1.5x"), "expected a number, found '1.5x'");
}

}  // namespace
}  // namespace polynao::ir
