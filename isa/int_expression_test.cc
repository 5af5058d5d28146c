#include "isa/int_expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "compiler/ir/text.h"

namespace polynao::isa {
namespace {

using ::testing::HasSubstr;

// Compiles the attribute of a function over operands a, b and buffer x; other names are parameters
// 0.
absl::StatusOr<IntExpression> Compile(const std::string& text) {
  using Source = IntExpression::Source;
  ASSIGN_OR_RETURN(
      const ir::Function f,
      ir::ParseFunction("@e(" + text + ") func f(a: i64, b: i64, x: i16[2, a], h: f16) {}"));
  IntExpression::Resolver resolver;
  resolver.variable = [](ir::Var var) -> absl::StatusOr<Source> {
    if (var.name() == "a") return Source{Source::Kind::kOperand, 0};
    if (var.name() == "b") return Source{Source::Kind::kOperand, 1};
    if (var.name() == "bad") return InvalidInput("bad is refused");
    return Source{Source::Kind::kParameter, 0};
  };
  resolver.address = [](const ir::BufferNode*) -> absl::StatusOr<Source> {
    return Source{Source::Kind::kOperand, 2};
  };
  resolver.load = [](const ir::BufferNode*) -> absl::StatusOr<Source> {
    return Source{Source::Kind::kBuffer, 0};
  };
  return IntExpression::Compile(std::get<ir::Expr>(f.attributes[0].values[0]), resolver);
}

constexpr int64_t kParameters[] = {1000};

std::optional<int64_t> Evaluate(const std::string& text, int64_t a, int64_t b) {
  const absl::StatusOr<IntExpression> e = Compile(text);
  EXPECT_TRUE(e.ok()) << text << ": " << e.status();
  if (!e.ok()) return std::nullopt;
  const int64_t operands[] = {a, b, 4096};
  int16_t memory[] = {0, 1, 2, 3, 4, -5, 6, 7};
  uint8_t* buffers[] = {reinterpret_cast<uint8_t*>(memory)};
  int64_t value = 0;
  const bool ok =
      e->Evaluate({.operands = operands, .parameters = kParameters, .buffers = buffers}, &value);
  return ok ? std::optional(value) : std::nullopt;
}

TEST(IntExpression, EvaluatesAsTheIrDoes) {
  EXPECT_EQ(Evaluate("a + b * 2 - 1", 3, 4), 10);
  EXPECT_EQ(Evaluate("min(a, b) * 10 + max(a, b)", 3, 4), 34);
  EXPECT_EQ(Evaluate("select(a < b, 1, 2)", 3, 4), 1);
  EXPECT_EQ(Evaluate("select(!(a < b), 1, 2)", 3, 4), 2);
  EXPECT_EQ(Evaluate("cast(i8, a)", 130, 0), -126);
  EXPECT_EQ(Evaluate("cast(i64, a == b || a <= b && b != 4)", 3, 4), 0);
  EXPECT_EQ(Evaluate("some.parameter + a", 3, 0), 1003);
  // Two elements of i16, rows of a = 3: row 1, element 2.
  EXPECT_EQ(Evaluate("&x[1, b]", 3, 2), 4096 + 2 * 5);
  EXPECT_EQ(Evaluate("x[1, b]", 3, 2), -5);
}

TEST(IntExpression, DividesTowardsMinusInfinity) {
  for (int64_t a = -9; a <= 9; ++a) {
    for (int64_t b = -4; b <= 4; ++b) {
      const auto quotient = Evaluate("a / b", a, b), remainder = Evaluate("a % b", a, b);
      if (b == 0) {
        EXPECT_FALSE(quotient || remainder);
        continue;
      }
      EXPECT_EQ(*quotient * b + *remainder, a);
      EXPECT_LT(std::abs(*remainder), std::abs(b));
      EXPECT_TRUE(*remainder == 0 || (*remainder < 0) == (b < 0)) << a << " % " << b;
    }
  }
  EXPECT_EQ(Evaluate("a / b", INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(Evaluate("a % b", INT64_MIN, -1), 0);
}

TEST(IntExpression, WrapsAround) {
  EXPECT_EQ(Evaluate("a + b", INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(Evaluate("a * b", INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(Evaluate("cast(i32, a) + cast(i32, b)", INT32_MAX, 1), INT32_MIN);
}

TEST(IntExpression, EvaluatesOnlyTheSideThatCounts) {
  EXPECT_EQ(Evaluate("select(b == 0, a, a / b)", 7, 0), 7);
  EXPECT_EQ(Evaluate("cast(i64, b == 0 || a / b == 1)", 7, 0), 1);
  EXPECT_EQ(Evaluate("cast(i64, b != 0 && a / b == 1)", 7, 0), 0);
  EXPECT_EQ(Evaluate("a / b + 1", 7, 0), std::nullopt);
}

TEST(IntExpression, RefusesFloatsAndUnknownLeaves) {
  EXPECT_THAT(std::string(Compile("h + 1.0").status().message()), HasSubstr("found a f16"));
  EXPECT_THAT(std::string(Compile("cast(i64, h)").status().message()), HasSubstr("found a f16"));
  EXPECT_THAT(std::string(Compile("bad + 1").status().message()), HasSubstr("bad is refused"));
}

}  // namespace
}  // namespace polynao::isa
