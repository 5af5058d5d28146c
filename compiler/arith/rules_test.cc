// Every rule of the table is checked by enumeration: all values of its meta-variables out of a
// small set that holds the edges, each of which may also be a trap.
#include "compiler/arith/rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "compiler/arith/const_range.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::arith {
namespace {

using ir::ExprKind;

// Doubles hold the enumerated integers, conditions (0 and 1) and floats alike.
struct Value {
  double number = 0;
  bool trap = false;
};

bool SameValue(Value a, Value b) {
  if (a.trap || b.trap) return a.trap == b.trap;
  if (std::isnan(a.number) || std::isnan(b.number)) {
    return std::isnan(a.number) && std::isnan(b.number);
  }
  return a.number == b.number && std::signbit(a.number) == std::signbit(b.number);
}

enum class Arithmetic { kMath, kWrapI8, kFloat };

Value Compute(ExprKind kind, Value a, Value b, Arithmetic arithmetic) {
  if (a.trap || b.trap) return {0, true};
  const double x = a.number, y = b.number;
  switch (kind) {
    case ExprKind::kMin:
      return {y < x ? y : x};
    case ExprKind::kMax:
      return {x < y ? y : x};
    case ExprKind::kEq:
      return {x == y ? 1.0 : 0.0};
    case ExprKind::kNe:
      return {x != y ? 1.0 : 0.0};
    case ExprKind::kLt:
      return {x < y ? 1.0 : 0.0};
    case ExprKind::kLe:
      return {x <= y ? 1.0 : 0.0};
    default:
      break;
  }
  if (arithmetic == Arithmetic::kFloat) {
    switch (kind) {
      case ExprKind::kAdd:
        return {x + y};
      case ExprKind::kSub:
        return {x - y};
      case ExprKind::kMul:
        return {x * y};
      case ExprKind::kDiv:
        return {x / y};
      default:
        break;
    }
    ADD_FAILURE() << "float " << ir::ExprKindName(kind);
    return {0, true};
  }
  const auto i = static_cast<int64_t>(x), j = static_cast<int64_t>(y);
  int64_t result = 0;
  switch (kind) {
    case ExprKind::kAdd:
      result = i + j;
      break;
    case ExprKind::kSub:
      result = i - j;
      break;
    case ExprKind::kMul:
      result = i * j;
      break;
    case ExprKind::kDiv:
      if (j == 0) return {0, true};
      result = FloorDiv(i, j);
      break;
    case ExprKind::kMod:
      if (j == 0) return {0, true};
      result = FloorMod(i, j);
      break;
    default:
      ADD_FAILURE() << ir::ExprKindName(kind);
  }
  if (arithmetic == Arithmetic::kWrapI8) result = ir::WrapInt(ir::Type::kI8, result);
  return {static_cast<double>(result)};
}

using Assignment = std::map<std::string, Value>;

Value Evaluate(const Pattern& pattern, const Assignment& values, Arithmetic arithmetic) {
  if (pattern.kind == Pattern::Kind::kMeta) return values.at(pattern.meta);
  if (pattern.kind == Pattern::Kind::kLiteral) return {static_cast<double>(pattern.literal)};
  const Value first = Evaluate(pattern.operands[0], values, arithmetic);
  if (first.trap) return first;
  const bool is_true = first.number != 0;
  switch (pattern.operation) {
    case ExprKind::kNot:
      return {is_true ? 0.0 : 1.0};
    case ExprKind::kAnd:
      return is_true ? Evaluate(pattern.operands[1], values, arithmetic) : first;
    case ExprKind::kOr:
      return is_true ? first : Evaluate(pattern.operands[1], values, arithmetic);
    case ExprKind::kSelect:
      return Evaluate(pattern.operands[is_true ? 1 : 2], values, arithmetic);
    default:
      return Compute(pattern.operation, first, Evaluate(pattern.operands[1], values, arithmetic),
                     arithmetic);
  }
}

void CollectMetas(const Pattern& pattern, std::vector<std::string>& metas) {
  if (pattern.kind == Pattern::Kind::kMeta &&
      std::find(metas.begin(), metas.end(), pattern.meta) == metas.end()) {
    metas.push_back(pattern.meta);
  }
  for (const Pattern& operand : pattern.operands) CollectMetas(operand, metas);
}

std::vector<Value> ValuesOf(const std::string& meta, Arithmetic arithmetic, size_t metas) {
  std::vector<double> numbers;
  if (meta[0] >= 'p' && meta[0] <= 'r') {
    numbers = {0, 1};
  } else if (arithmetic == Arithmetic::kFloat) {
    const double inf = std::numeric_limits<double>::infinity();
    numbers = {std::nan(""), -inf, -2.5, -1, -0.0, 0.0, 1, 2.5, inf};
  } else if (arithmetic == Arithmetic::kWrapI8) {
    numbers = {-128, -127, -65, -64, -2, -1, 0, 1, 2, 63, 64, 126, 127};
  } else {
    const int edge = metas <= 3 ? 7 : 4;
    for (int i = -edge; i <= edge; ++i) numbers.push_back(i);
  }
  std::vector<Value> values;
  for (double number : numbers) values.push_back({number});
  return values;
}

// Calls `visit` for each assignment of values to `metas`.
template <typename Visit>
void Enumerate(const std::vector<std::string>& metas, size_t next, Assignment& assignment,
               Arithmetic arithmetic, std::string_view total, const Visit& visit) {
  if (next == metas.size()) {
    visit(assignment);
    return;
  }
  const std::string& meta = metas[next];
  std::vector<Value> values = ValuesOf(meta, arithmetic, metas.size());
  // Constants do not trap, nor does what the rule asks to be total.
  if (meta[0] != 'c' && total.find(meta) == std::string_view::npos) values.push_back({0, true});
  for (Value value : values) {
    assignment[meta] = value;
    Enumerate(metas, next + 1, assignment, arithmetic, total, visit);
  }
}

std::vector<Arithmetic> ArithmeticsOf(Domain domain) {
  switch (domain) {
    case Domain::kBool:
    case Domain::kIndex:
      return {Arithmetic::kMath};
    case Domain::kInt:
      return {Arithmetic::kMath, Arithmetic::kWrapI8};
    case Domain::kFloat:
      return {Arithmetic::kFloat};
    case Domain::kAny:
      return {Arithmetic::kMath, Arithmetic::kWrapI8, Arithmetic::kFloat};
  }
  return {};
}

// The first assignment for which the rule is wrong, or "".
std::string FindCounterexample(const Rule& rule, const Pattern& pattern, const Pattern& replacement,
                               const Pattern& condition, int64_t* applications) {
  std::vector<std::string> metas;
  CollectMetas(pattern, metas);
  std::string found;
  for (Arithmetic arithmetic : ArithmeticsOf(rule.domain)) {
    Assignment assignment;
    Enumerate(metas, 0, assignment, arithmetic, rule.total, [&](const Assignment& values) {
      if (!found.empty()) return;
      // A condition about an operand that traps was proven of the value it would have.
      const Value holds = Evaluate(condition, values, arithmetic);
      if (!holds.trap && holds.number == 0) return;
      ++*applications;
      const Value before = Evaluate(pattern, values, arithmetic);
      const Value after = Evaluate(replacement, values, arithmetic);
      if (SameValue(before, after)) return;
      for (const auto& [meta, value] : values) {
        found += meta + "=" + (value.trap ? "trap" : std::to_string(value.number)) + " ";
      }
    });
  }
  return found;
}

TEST(RulesTest, EveryRuleHoldsInEveryOrder) {
  size_t compiled = 0;
  for (int kind = 0; kind <= static_cast<int>(ExprKind::kCall); ++kind) {
    for (const CompiledRule& rule : RulesFor(static_cast<ExprKind>(kind))) {
      ++compiled;
      int64_t applications = 0;
      EXPECT_EQ(FindCounterexample(*rule.rule, rule.pattern, rule.replacement, rule.condition,
                                   &applications),
                "")
          << rule.rule->pattern << " --> " << rule.rule->replacement << " if '"
          << rule.rule->condition << "'";
      EXPECT_GT(applications, 0) << rule.rule->pattern << " never applies";
    }
  }
  EXPECT_GE(compiled, Rules().size());
}

TEST(RulesTest, AWrongRuleIsFound) {
  const Rule wrong_rules[] = {
      {Domain::kInt, "min(x, y)", "x"},
      {Domain::kInt, "x + z < y + z", "x < y"},                            // wraps
      {Domain::kAny, "x == x", "true", "", "x"},                           // NaN
      {Domain::kAny, "!(x < y)", "y <= x"},                                // NaN
      {Domain::kFloat, "x + 0", "x"},                                      // -0.0
      {Domain::kBool, "p && false", "false"},                              // drops a trap
      {Domain::kBool, "p && q", "q && p"},                                 // evaluates q too early
      {Domain::kIndex, "(x * y) / y", "x", "", "y"},                       // y == 0
      {Domain::kIndex, "(x / y) / z", "x / (y * z)", "y != 0 && z != 0"},  // negative z
  };
  for (const Rule& rule : wrong_rules) {
    int64_t applications = 0;
    EXPECT_NE(FindCounterexample(rule, *ParsePattern(rule.pattern), *ParsePattern(rule.replacement),
                                 *ParsePattern(rule.condition.empty() ? "true" : rule.condition),
                                 &applications),
              "")
        << rule.pattern << " --> " << rule.replacement;
  }
}

TEST(RulesTest, MatchesAndInstantiates) {
  ir::Context context;
  const ir::Expr i = context.NewVar("i"), j = context.NewVar("j");
  const auto pattern = ParsePattern("(x * y + z) / y");
  ASSERT_TRUE(pattern.ok());
  Bindings bindings;
  EXPECT_TRUE(Match(*pattern, (i * j + 3) / j, bindings));
  EXPECT_EQ(bindings.Find("x"), i);
  EXPECT_EQ(Instantiate(*ParsePattern("x + z / y"), bindings, ir::Type::kI32, context), i + 3 / j);
  Bindings other;
  EXPECT_FALSE(Match(*pattern, (i * j + 3) / i, other));  // y is j already
}

TEST(RulesTest, LiteralsMatchBitForBit) {
  ir::Context context;
  const ir::Expr x = context.NewVar("x", ir::Type::kF32);
  Bindings bindings;
  const auto pattern = ParsePattern("x - 0");
  EXPECT_TRUE(Match(*pattern, x - context.Float(ir::Type::kF32, 0.0), bindings));
  Bindings other;
  EXPECT_FALSE(Match(*pattern, x - context.Float(ir::Type::kF32, -0.0), other));
}

TEST(RulesTest, ParserNamesWhatItExpected) {
  EXPECT_THAT(ParsePattern("min(x").status().message(),
              testing::HasSubstr("column 6: expected ','"));
  EXPECT_THAT(ParsePattern("x + ").status().message(), testing::HasSubstr("expected an operand"));
  EXPECT_THAT(ParsePattern("foo").status().message(), testing::HasSubstr("no meta-variable"));
  EXPECT_THAT(ParsePattern("x y").status().message(), testing::HasSubstr("expected the end"));
}

}  // namespace
}  // namespace polynao::arith
