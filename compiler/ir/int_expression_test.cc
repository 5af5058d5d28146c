#include "compiler/ir/int_expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"

namespace polynao::ir {
namespace {

using ::testing::HasSubstr;

// Compiles the attribute of a function over operands a, b and buffer x; other names are parameters
// 0.
absl::StatusOr<IntExpression> Compile(const std::string& text) {
  using Source = IntExpression::Source;
  ASSIGN_OR_RETURN(
      const Function f,
      ParseFunction("@e(" + text + ") func f(a: i64, b: i64, x: i16[2, a], h: f16) {}"));
  IntExpression::Resolver resolver;
  resolver.variable = [](Var var) -> absl::StatusOr<Source> {
    if (var.name() == "a") return Source{Source::Kind::kOperand, 0};
    if (var.name() == "b") return Source{Source::Kind::kOperand, 1};
    if (var.name() == "bad") return InvalidInput("bad is refused");
    return Source{Source::Kind::kParameter, 0};
  };
  resolver.address = [](const BufferNode*) -> absl::StatusOr<Source> {
    return Source{Source::Kind::kOperand, 2};
  };
  resolver.load = [](const BufferNode*) -> absl::StatusOr<Source> {
    return Source{Source::Kind::kBuffer, 0};
  };
  return IntExpression::Compile(std::get<Expr>(f.attributes[0].values[0]), resolver);
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

TEST(IntExpression, ConvertsToBoolByComparingWithZero) {
  EXPECT_EQ(Evaluate("cast(i64, cast(i1, a))", 2, 0), 1);
  EXPECT_EQ(Evaluate("cast(i64, cast(i1, a))", 0, 0), 0);
}

TEST(IntExpression, WorksOnBits) {
  EXPECT_EQ(Evaluate("a & b", -4, INT64_MAX), INT64_MAX - 3);
  EXPECT_EQ(Evaluate("a | b", 8, 1), 9);
  EXPECT_EQ(Evaluate("a ^ b", -1, 5), ~int64_t{5});
  EXPECT_EQ(Evaluate("~a", 7, 0), -8);
  EXPECT_EQ(Evaluate("a << b", 3, 62), int64_t{3} << 62);
  EXPECT_EQ(Evaluate("a >> b", -9, 1), -5);
  EXPECT_EQ(Evaluate("a << b", 3, 64), 0);
  EXPECT_EQ(Evaluate("a >> b", -9, -1), -1);
  EXPECT_EQ(Evaluate("i64(u8(a) << u8(b))", 0x81, 1), 2);
  EXPECT_EQ(Evaluate("i64(u64(a) >> u64(b))", -1, 60), 15);
}

TEST(IntExpression, U64HasNoSign) {
  EXPECT_EQ(Evaluate("i64(u64(a) / u64(b))", -1, 2), INT64_MAX);
  EXPECT_EQ(Evaluate("i64(u64(a) % u64(b))", -1, 10), 5);
  EXPECT_EQ(Evaluate("i64(u64(a) < u64(b))", 1, -1), 1);
  EXPECT_EQ(Evaluate("i64(u64(a) <= u64(b))", -1, 1), 0);
  EXPECT_EQ(Evaluate("i64(min(u64(a), u64(b)))", -1, 1), 1);
  EXPECT_EQ(Evaluate("i64(max(u64(a), u64(b)))", -1, 1), -1);
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

// ---- random expressions

class RandomExpressions {
 public:
  explicit RandomExpressions(uint64_t seed) : random_(seed) {}

  int64_t Value() {
    const int64_t edges[] = {0,   1,         -1,        2,         127,      -128,
                             255, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    const int pick = Pick(24);
    if (pick < 11) return edges[pick];
    return static_cast<int64_t>(random_()) >> Pick(64);
  }
  // An expression of some integer type over a and b, as text.
  std::string Typed(const std::string& type, int depth) {
    if (depth == 0) {
      const int leaf = Pick(4);
      if (leaf == 0) return Cast(type, "i32", StrCat(Pick(200) - 100));
      return Cast(type, "i64", leaf % 2 == 0 ? "a" : "b");
    }
    const auto operand = [&](const std::string& of) { return Typed(of, Pick(depth)); };
    const char* const operators[] = {"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"};
    switch (Pick(6)) {
      case 0: {
        const std::string from = Type();
        return Cast(type, from, operand(from));
      }
      case 1:
        return StrCat(Pick(2) == 0 ? "min(" : "max(", operand(type), ", ", operand(type), ")");
      case 2:
        return StrCat("select(", Condition(depth - 1), ", ", operand(type), ", ", operand(type),
                      ")");
      case 3:
        return StrCat("cast(", type, ", ", Condition(depth - 1), ")");
      default:
        return StrCat("(", operand(type), " ", operators[Pick(10)], " ", operand(type), ")");
    }
  }

 private:
  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  std::string Type() {
    const char* const types[] = {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"};
    return types[Pick(8)];
  }
  static std::string Cast(const std::string& to, const std::string& from, const std::string& e) {
    return to == from ? e : StrCat("cast(", to, ", ", e, ")");
  }
  std::string Condition(int depth) {
    const std::string type = Type();
    const char* const comparisons[] = {"==", "!=", "<", "<=", ">", ">="};
    switch (depth > 0 ? Pick(5) : 4) {
      case 0:
        return StrCat("!(", Condition(depth - 1), ")");
      case 1:
        return StrCat("(", Condition(depth - 1), " && ", Condition(depth - 1), ")");
      case 2:
        return StrCat("(", Condition(depth - 1), " || ", Condition(depth - 1), ")");
      case 3:
        return StrCat("cast(i1, ", Typed(type, depth - 1), ")");
      default:
        return StrCat("(", Typed(type, Pick(depth + 1)), " ", comparisons[Pick(6)], " ",
                      Typed(type, Pick(depth + 1)), ")");
    }
  }

  std::mt19937_64 random_;
};

// The interpreter stops where it divides by zero, and where arithmetic in a condition wraps around.
TEST(IntExpression, RandomExpressionsMeanWhatTheInterpreterSays) {
  const char* const wanted = std::getenv("POLYNAO_RANDOM_CASES");
  const int cases = wanted != nullptr ? std::atoi(wanted) : 2000;
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  RandomExpressions random(seed);
  int run = 0;
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    const std::string text = random.Typed("i64", 1 + i % 4);
    const absl::StatusOr<Function> f =
        ParseFunction(StrCat("func f(a: i64, b: i64, r: i64[1] out) { r[0] = ", text, " }"));
    ASSERT_TRUE(f.ok()) << f.status() << "\n" << text;
    const absl::StatusOr<IntExpression> e = Compile(text);
    ASSERT_TRUE(e.ok()) << e.status() << "\n" << text;
    for (int k = 0; k < 4; ++k) {
      const int64_t operands[] = {random.Value(), random.Value(), 0};
      Tensor out(Type::kI64, {1});
      const absl::Status status = Interpret(
          *f, {Argument::Int(operands[0]), Argument::Int(operands[1]), Argument::Of(&out)});
      int64_t value = 0;
      const bool ok = e->Evaluate({.operands = operands, .parameters = kParameters}, &value);
      EXPECT_TRUE(ok || !status.ok()) << text << " of " << operands[0] << ", " << operands[1];
      if (!status.ok()) continue;
      ++run;
      EXPECT_EQ(value, out.Int(0)) << text << " of " << operands[0] << ", " << operands[1];
    }
  }
  EXPECT_GT(run, cases * 2);
}

}  // namespace
}  // namespace polynao::ir
