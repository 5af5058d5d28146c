#include "compiler/ir/assertions.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "compiler/ir/asserted_values.h"
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
      {"n == 2 * m, m == 3 * k, k == 5 * j, 1000 < j", "n: i32, m: i32, k: i32, j: i32"},
      {"n + m == 12", "n: i32, m: i32"},
      {"n + m == 1000, n - m == 10", "n: i32, m: i32"},
      {"n % 4 == 0 && n == 3 * k", "n: i32, k: i32"},
      {"2 * cast(i64, n) + 3 * cast(i64, m) == 7 * k, cast(i64, n) + cast(i64, m) + k == 10000",
       "n: u16, m: i16, k: i64"},
      {"6 * n + 10 * m + 15 * k == 1, n % 7 == 4", "n: i64, m: i64, k: i64"},
      {"n / 64 == m, n % 64 == k, 3 < m, 60 < k", "n: i32, m: i32, k: i32"},
      {"n == 18446744073709551615 - m, m == 5", "n: u64, m: u64"},
      {"min(n, m) == 77, max(n, 2 * m) == 500", "n: i32, m: i32"},
      {"n == 3 * m || n == 5 * m + 1, 100 < n, m % 11 == 4", "n: i16, m: i16"},
      {"!(n < 50) && !(n != 4 * m)", "n: u8, m: u8"},
      {"n * m == 391, n < m", "n: i32, m: i32"},
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

// Against all pairs of i8: the first value is as near as can be, the second one as near as the first one lets it be.
TEST(NearestValues, AreTheNearestOnes) {
  for (const char* conditions : {
           "N == 2 * M",
           "N * 3 + -5 * M == 7, N < M",
           "(N + M) / 3 == 5 || N % 4 == 3 && !(M < -9)",
           "min(N, M * 2) == -8, max(M, N - 3) != 4",
           "3 * ((N + 1) / 2) == M + 2, N != 9",
           "N <= -2 * (M + 1) * 3, 100 - M < N",
           "true, (0 - N) % 7 == 2, 5 == M",
           "N * M == 12, N + M == 7",  // the product is left out
           "N == 300",
       }) {
    const std::string text =
        absl::StrReplaceAll(conditions, {{"N", "cast(i32, n)"}, {"M", "cast(i32, m)"}});
    const Function f = Parse(text, "n: i8, m: i8");
    const Var n = f.params[0].var, m = f.params[1].var;
    std::vector<Expr> affine;
    for (const Expr condition : Assertions(f)) {
      if (!absl::StrContains(Print(condition), "n) * cast")) affine.push_back(condition);
    }
    for (const auto& [n_wanted, m_wanted] :
         {std::pair<int64_t, int64_t>{0, 0}, {5, -7}, {-100, 127}}) {
      std::optional<std::vector<int64_t>> nearest;
      // Of two that are as near, the greater one.
      const auto distance = [&](int64_t x, int64_t y) {
        return std::tuple(std::abs(x - n_wanted), x < n_wanted, std::abs(y - m_wanted),
                          y < m_wanted);
      };
      for (int64_t x = -128; x < 128; ++x) {
        for (int64_t y = -128; y < 128; ++y) {
          if (nearest && distance(x, y) >= distance((*nearest)[0], (*nearest)[1])) continue;
          const ScalarValues values = {{n, Argument::Int(x)}, {m, Argument::Int(y)}};
          const bool holds =
              std::all_of(affine.begin(), affine.end(), [&](Expr e) { return *Holds(e, values); });
          if (holds) nearest = {x, y};
        }
      }
      const auto found = NearestValues(Assertions(f), {n, m}, {n_wanted, m_wanted});
      ASSERT_EQ(found.has_value(), nearest.has_value()) << text;
      if (found) EXPECT_EQ(*found, *nearest) << text;
    }
  }
}

// Not always the same ones, and small ones where there are.
TEST(DrawScalars, Differ) {
  for (const char* conditions : {"n == 2 * m", "n + m == 12", "n % 4 == 0 && n == 3 * m",
                                 "n % 64 == 0, 0 < n, m == n / 2"}) {
    const Function f = Parse(conditions, "n: i32, m: i32");
    std::set<int64_t> seen;
    for (uint64_t seed = 0; seed < 60; ++seed) {
      const auto drawn = RandomArguments::DrawScalars(f, seed, {});
      ASSERT_TRUE(drawn.ok()) << drawn.status();
      seen.insert((*drawn)[0].int_value);
    }
    EXPECT_GT(seen.size(), 4) << conditions;
    EXPECT_LT(*seen.rbegin(), 1000) << conditions;
  }
}

// Random equalities and inequalities that a hidden point keeps, over types of all sizes.
TEST(DrawScalars, AffineConditionsThatSomeValuesKeep) {
  std::mt19937_64 random(1);
  const auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  for (int seed = 0; seed < 400; ++seed) {
    const int64_t count = between(1, 4);
    std::string params, conditions;
    std::vector<std::string> names;
    std::vector<int64_t> point;
    for (int64_t i = 0; i < count; ++i) {
      const char* const types[] = {"i32", "i64", "i16", "u32"};
      const int64_t type = between(0, 3);
      point.push_back(between(type == 3 ? 0 : -1000, 1000));
      StrAppend(&params, i > 0 ? ", x" : "x", i, ": ", types[type]);
      names.push_back(type == 1 ? StrCat("x", i) : StrCat("cast(i64, x", i, ")"));
    }
    for (int64_t c = between(1, count + 1); c > 0; --c) {
      std::string sum = "cast(i64, 0)";
      int64_t value = 0;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t factor = between(-7, 7);
        StrAppend(&sum, " + ", names[i], " * ", factor);
        value += factor * point[i];
      }
      const int64_t divisor = between(2, 60);
      const int64_t remainder = ((value % divisor) + divisor) % divisor;
      StrAppend(&conditions, conditions.empty() ? "" : ", ");
      switch (between(0, 3)) {
        case 0:
          StrAppend(&conditions, "(", sum, ") % ", divisor, " == ", remainder);
          break;
        case 1:
          StrAppend(&conditions, sum, " <= ", value, " && ", value - 3, " <= ", sum);
          break;
        default:
          StrAppend(&conditions, sum, " == ", value);
          break;
      }
    }
    const Function f = Parse(conditions, params);
    const auto drawn = RandomArguments::DrawScalars(f, static_cast<uint64_t>(seed),
                                                    {.small_integers = seed % 2 == 0});
    ASSERT_TRUE(drawn.ok()) << drawn.status() << ", seed " << seed;
    EXPECT_EQ(CheckAssertions(f, *drawn), absl::OkStatus());
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
