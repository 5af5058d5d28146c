#include "compiler/arith/analyzer.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/arith/evaluate_for_test.h"
#include "compiler/arith/random_expr_for_test.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "gtest/gtest.h"

namespace polynao::arith {
namespace {

using ir::Context;
using ir::Expr;
using ir::ExprKind;
using ir::Type;

// Expressions over a fixed set of names, parsed by the IR's own parser.
class Expressions {
 public:
  Expressions() : context_(std::make_shared<Context>()) {}

  // The stored value in a function with all names as parameters.
  Expr Parse(const std::string& text, const std::string& type = "i32") {
    const std::string source = absl::StrCat(
        "func f(i: i32, j: i32, k: i32, n: i32, m: i32, l: i64, b: i8, u: u8, p: i1, q: i1, x: "
        "f32, "
        "y: f32, A: i32[16] in, C: i8[16] in, R: ",
        type, "[1] out) { R[0] = ", text, " }");
    auto function = ir::ParseFunction(source, "test", context_);
    EXPECT_TRUE(function.ok()) << text << ": " << function.status();
    Expr e = function->body.value();
    // One set of names for all expressions.
    ir::VarMap vars;
    ir::BufferMap buffers;
    for (const ir::Param& param : function->params) {
      if (param.var) vars[param.var] = names_.emplace(param.name(), param.var).first->second;
      if (param.buffer) {
        buffers[param.buffer] = buffers_.emplace(param.name(), param.buffer).first->second;
      }
    }
    return ir::Substitute(e, vars, buffers);
  }
  Expr Condition(const std::string& text) { return Parse(text, "i1"); }
  Expr Name(const std::string& name) {
    Parse("0");
    return names_.at(name);
  }
  Context& context() { return *context_; }

 private:
  std::shared_ptr<Context> context_;
  std::map<std::string, Expr, std::less<>> names_;
  std::map<std::string, ir::Buffer, std::less<>> buffers_;
};

struct Case {
  std::string facts;
  std::string before;
  std::string after;
  std::string type = "i32";
  Mode mode = Mode::kIndex;
};

void Check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    Expressions names;
    Analyzer analyzer(names.context());
    if (!c.facts.empty()) analyzer.Assume(names.Condition(c.facts));
    const Expr before = names.Parse(c.before, c.type);
    const Expr after = analyzer.Simplify(before, c.mode);
    EXPECT_EQ(ir::Print(after), ir::Print(names.Parse(c.after, c.type)))
        << "from " << c.before << " with " << c.facts;
    EXPECT_EQ(ir::Print(analyzer.Simplify(after, c.mode)), ir::Print(after))
        << c.before << " is not simplified at once";
  }
}

TEST(AnalyzerTest, Sums) {
  Check({
      {"", "i + 0", "i"},
      {"", "i - i", "0"},
      {"", "i + 4 - i", "4"},
      {"", "(i + 4) - (i - 3)", "7"},
      {"", "i * 4 - i * 3", "i"},
      // i * n might wrap where the rest does not.
      {"", "(i + 1) * n - n * i", "(i + 1) * n - n * i"},
      {"0 <= i && 0 <= n", "(i + 1) * n - i * n", "n"},
      {"", "n * i - i * n", "0"},
      {"0 <= i && i < 4 && 0 <= j && j < 14", "j + i * 14 + 3 - 1", "i * 14 + j + 2"},
      {"0 <= i && i < 9", "8 - i + 0", "8 - i"},
  });
}

TEST(AnalyzerTest, Divisions) {
  const std::string box = "0 <= i && i < 10 && 0 <= j && j < 4";
  Check({
      {box, "(i * 4 + j) / 4", "i"},
      {box, "(i * 4 + j) % 4", "j"},
      {box, "(i * 4 + j + 4) / 4", "i + 1"},
      {box, "(i * 8 + j) / 4", "i * 2"},
      {box, "(i * 4 + j) / 8", "i / 2"},
      {box, "(i * 4 + j) % 8", "i % 2 * 4 + j"},
      {box, "(i / 2) / 3", "i / 6"},
      {box, "(i / 2 + 1) / 3", "(i + 2) / 6"},
      {box, "i / 1 + i % 1", "i"},
      {box, "(i % 4) % 2", "i % 2"},
      {box, "(i % 8) / 2", "i / 2 % 4"},
      {box, "i / 4 * 4 + i % 4", "i"},
      {box, "j / 4 + j % 4", "j"},
      {"", "i / 4 * 4 + i % 4", "i"},
      {"", "i % 4 / 4", "0"},
      {"", "i % 2 + (i + 1) % 2", "1"},
      {"", "i / 3 + (i + 1) / 3 + (i + 2) / 3", "i"},
      {"", "(i + 1) / 3 + i / 3 + (i - 1) / 3 - i", "-1"},
      {"", "i / 3 + (i + 1) / 3", "i / 3 + (i + 1) / 3"},
      {"", "i % 2 + (i + 1) % 2", "i % 2 + (i + 1) % 2", "i32", Mode::kData},
      // i + 8 may not fit.
      {"", "(i / 2 + 4) / 5", "(i / 2 + 4) / 5"},
      {"", "(i / 2 + 4) / 5", "(i / 2 + 4) / 5", "i32", Mode::kData},
      {"", "(b / i8(2) + 4) / i8(5)", "(b / i8(2) + 4) / i8(5)", "i8", Mode::kData},
      {"-128 <= b && b < 100", "(b / i8(2) + 4) / i8(5)", "(b + i8(8)) / i8(10)", "i8",
       Mode::kData},
      // The one quotient that does not fit wraps in an index, too.
      {"i == -2147483647 - 1", "i / -1 < 0", "i / -1 < 0", "i1"},
      {"", "(i * 6) / 4", "i * 6 / 4", "i32", Mode::kData},
      {"0 <= i && i < 100", "(i * 6 + 2) / 4", "i + (i + 1) / 2"},
      {"-8 <= i && i < 0", "(i + 8) / 8", "0"},
      {"", "0 % i", "0 % i"},  // may trap
      {"0 < i", "0 % i", "0"},
      {"", "i / i", "i / i"},
      {"0 < i", "i / i", "1"},
      {"0 < n && 0 <= i && i < n", "(k * n + i) / n", "k"},
      {"0 < n && 0 <= i && i < n", "(k * n + i) % n", "i"},
  });
}

// The indices that fusing axes makes are recovered, whatever the rank and association.
TEST(AnalyzerTest, FusedAxes) {
  Check({
      {"", "i / 729 * 729 + i / 27 % 27 * 27 + i % 27", "i"},
      {"", "i / 729 * 729 + (i / 27 % 27 * 27 + i % 27)", "i"},
      {"", "(i / 729 * 27 + i / 27 % 27) * 27 + i % 27", "i"},
      {"", "i % 27 + (i / 27 % 27 + i / 729 * 27) * 27", "i"},
      {"", "i % 729 / 27 * 27 + i % 27 + i / 729 * 729", "i"},
      {"", "(i % 729) % 27 + (i / 27) % 27 * 27 + (i / 27) / 27 * 729", "i"},
      {"", "i / 105 * 105 + i % 105 / 35 * 35 + i % 35 / 7 * 7 + i % 7", "i"},
      {"0 <= i && i < 3 && 0 <= j && j < 5 && 0 <= k && k < 7", "((i * 5 + j) * 7 + k) / 35", "i"},
      {"0 <= i && i < 3 && 0 <= j && j < 5 && 0 <= k && k < 7", "(((i * 5 + j) * 7 + k) / 7) % 5",
       "j"},
      {"0 <= i && i < 3 && 0 <= j && j < 5 && 0 <= k && k < 7", "((i * 5 + j) * 7 + k) % 7", "k"},
      // Other strides on the way out: one unit more for each 27.
      {"0 <= i && i < 8000", "i / 27 * 28 + i % 27", "i + i / 27"},
      {"", "i / 27 % 27 + i % 27 * 100", "i / 27 % 27 + i % 27 * 100"},
  });
}

TEST(AnalyzerTest, Comparisons) {
  Check({
      {"", "select(i + 4 < i + 7, 1, 0)", "1"},
      {"", "select(i * 2 == i * 2 + 1, 1, 0)", "0"},
      {"", "select(i * 4 + k * 2 == 3, 1, 0)", "0"},
      {"0 <= i && i < 4", "select(j * 4 + i < 16, 1, 0)", "select(j < 4, 1, 0)"},
      {"0 <= i && i < 4", "select(j * 4 + i < 14, 1, 0)", "select(i + j * 4 < 14, 1, 0)"},
      {"0 <= i && i < 4", "select(i * 4 < 14, 1, 0)", "1"},
      {"0 <= i && i < 5", "select(i * 4 < 14, 1, 0)", "select(i < 4, 1, 0)"},
      {"0 <= i && i < 9", "select(i <= 3, 1, 0)", "select(i < 4, 1, 0)"},
      {"0 <= i && i < 9", "select(3 < i, 1, 0)", "select(4 <= i, 1, 0)"},
      {"0 <= i && i < 9", "select(0 <= i - 3, 1, 0)", "select(3 <= i, 1, 0)"},
      {"i < n", "select(i * 4 + 3 < n * 4, 1, 0)", "1"},
      {"i < n && n < 10", "select(i < 9, 1, 0)", "1"},
      {"n < 10 && i < n", "select(i < 9, 1, 0)", "1"},
      {"i < j && j < k", "select(i + 1 < k, 1, 0)", "1"},
      {"i < j", "select(i + 1 < j, 1, 0)", "select(i + 1 < j, 1, 0)"},
      {"i == 3", "select(i < 4, i, 7)", "3"},
      {"!(i < 4)", "select(4 <= i, 1, 0)", "1"},
      {"i % 3 == 1", "select(i % 3 == 1, 1, 0)", "1"},
      {"!p", "select(p, 1, 0)", "0"},
      {"0 <= i && i < 4 && i != 3", "select(i < 3, 1, 0)", "1"},
      {"", "i / 5 < 4", "i < 20", "i1"},
      {"", "i / 5 <= 3", "i < 20", "i1"},
      {"", "3 < i / 5", "20 <= i", "i1"},
      {"", "(i + 3) / 5 < 4", "i < 17", "i1", Mode::kIndex},
      {"", "(i + 3) / 5 < 4", "i + 3 < 20", "i1", Mode::kData},
      {"", "b / i8(5) < i8(100)", "true", "i1"},
      {"", "b / i8(5) < i8(4)", "b < 20", "i1", Mode::kData},
      {"", "i / 1000000000 < 1000", "true", "i1"},
      {"", "i / 6 * 6 < i - 4", "5 <= i % 6", "i1"},
      {"", "i / 6 * 6 == i", "i % 6 == 0", "i1"},
  });
}

// A constant at an end of i64 is a number like others, though it is written as infinity in ranges.
TEST(AnalyzerTest, ComparisonsAtTheEndsOfI64) {
  Check({
      {"", "l >= 9223372036854775807", "9223372036854775807 <= l", "i1"},
      {"", "l > -9223372036854775808", "-9223372036854775808 < l", "i1"},
      {"", "l < -9223372036854775807", "l < -9223372036854775807", "i1"},
      {"", "l <= 9223372036854775806", "l <= 9223372036854775806", "i1"},
      {"", "l == 9223372036854775807", "l == 9223372036854775807", "i1"},
      {"l < 9223372036854775807", "l == 9223372036854775807", "false", "i1"},
      {"l < -9223372036854775806", "l < -9223372036854775805", "true", "i1"},
  });
}

TEST(AnalyzerTest, MinMaxSelect) {
  Check({
      {"", "min(i, i + 1)", "i"},
      {"", "max(i + 1, i)", "i + 1"},
      {"0 <= i && i < 4", "min(i, 7)", "i"},
      {"", "min(3, i)", "min(i, 3)"},
      {"", "min(min(i, 5), 3)", "min(i, 3)"},
      {"", "max(min(i, 3), 5)", "5"},
      {"", "min(i + j, k + j)", "j + min(i, k)"},
      {"", "select(i < j, i, j)", "min(i, j)"},
      {"", "min(j, i)", "min(i, j)"},
      {"", "select(j < i, j, i)", "min(i, j)"},
      {"", "select(i < 4, select(i < 5, j, k), n)", "select(i < 4, j, n)"},
      {"", "select(i < 4, min(i, 6), k)", "select(i < 4, i, k)"},
      {"", "select(i < 4 || 6 < i, j, j)", "j"},
      {"", "select(i == 3, 5, 7) + 7", "select(i == 3, 12, 14)"},
      {"", "20 - select(i == 3, 5, select(j == 2, 7, 9))",
       "select(i == 3, 15, select(j == 2, 13, 11))"},
      {"", "select(i == 3, 5, 7) < 6", "i == 3", "i1"},
      {"", "select(i == 3, 5, 0) / select(i == 3, 5, 0)",
       "select(i == 3, 5, 0) / select(i == 3, 5, 0)"},
      {"", "select(i == 3, b, b + 1) * i8(2)", "select(i == 3, b, b + 1) * 2", "i8", Mode::kData},
      {"", "select(b < 3, i8(100), i8(1)) + 100", "select(b < 3, i8(-56), i8(101))", "i8",
       Mode::kData},
      {"", "select(p, 1.5, 0.5) * 2.0", "select(p, 3.0, 1.0)", "f32", Mode::kData},
  });
}

TEST(AnalyzerTest, Logic) {
  Check({
      {"", "i < 10 && i < 5", "i < 5", "i1"},
      {"", "i < 5 && i < 10", "i < 5", "i1"},
      {"", "i < 5 || i < 10", "i < 10", "i1"},
      {"", "i < 3 && 5 < i", "false", "i1"},
      {"", "i < 3 || 2 <= i", "true", "i1"},
      {"", "!(i < 3 && j < 4)", "3 <= i || 4 <= j", "i1"},
      {"0 <= i && i < 4", "i < 4 && j < 4", "j < 4", "i1"},
      {"", "p && !p", "false", "i1"},
      {"", "p && (q && p)", "p && q", "i1"},
      {"", "i != 5 && i == 5", "false", "i1"},
      {"i != 5", "i == 5", "false", "i1"},
      {"i == 5", "5 != i", "false", "i1"},
      {"i == j && j != k", "i != k", "true", "i1"},
      {"i == j && j != k", "k == i", "false", "i1"},
      {"i != j + 2", "i - j == 2", "false", "i1"},
      {"i <= j && i != j", "i < j", "true", "i1"},
      {"i <= j && j != i", "j <= i", "false", "i1"},
      {"i != j", "i * 2 == j * 2", "false", "i1"},
      {"i != j", "i == k", "i == k", "i1"},
      // What follows may overflow, but is guarded by `i < 4` still.
      {"", "i < 5 && i < 4 && i + n < 9", "i < 4 && i + n < 9", "i1"},
      {"", "i < 5 && i < 4 && A[n] < 3", "i < 4 && A[n] < 3", "i1"},
      {"", "i < 5 && i + n < 9 && i < 4", "i < 5 && i + n < 9 && i < 4", "i1"},
      // A load that was not evaluated before must not be evaluated after.
      {"", "i < 16 && A[i] < 3", "i < 16 && A[i] < 3", "i1"},
      {"", "A[i] < 3 && false", "A[i] < 3 && false", "i1"},
      {"", "false && A[i] < 3", "false", "i1"},
  });
}

TEST(AnalyzerTest, KeepsWhatMayTrap) {
  Check({
      {"", "A[i] - A[i]", "A[i] - A[i]"},
      {"", "A[i] * 0", "A[i] * 0"},
      {"", "n / k - n / k", "n / k - n / k"},
      {"0 < k", "n / k - n / k", "0"},
      {"", "A[i] + 3 - A[i]", "A[i] + 3 - A[i]"},
      {"", "A[i + 2 - 1] * 3 - A[i + 1]", "A[i + 1] * 2"},
      {"", "select(A[i] < A[i] + 1, 1, 0)", "select(A[i] < A[i] + 1, 1, 0)"},
      {"", "select(i < 4, A[i], 0)", "select(i < 4, A[i], 0)"},
      // The arm's load is no replacement for one that is always evaluated.
      {"", "select(i < 4, 3, A[n]) + A[n] * 0", "select(i < 4, 3, A[n]) + A[n] * 0"},
      {"", "A[n] + A[n] * 0 + 1 - 1", "A[n]"},
  });
}

// As data, i8 arithmetic wraps: nothing cancels across a comparison unless ranges say so.
TEST(AnalyzerTest, DataWraps) {
  Check({
      {"", "b + 1 < b + 2", "b + 1 < b + 2", "i1", Mode::kData},
      {"", "b + 1 < b + 2", "b + 1 < b + 2", "i1", Mode::kIndex},
      {"b < 100 && -100 < b", "b + 1 < b + 2", "true", "i1", Mode::kData},
      {"", "i + 1 < i + 2", "i + 1 < i + 2", "i1", Mode::kData},
      {"", "i + 1 < i + 2", "true", "i1", Mode::kIndex},
      {"0 <= i && i < 8", "i + 1 < i + 2", "true", "i1", Mode::kData},
      {"", "(i * 4) / 4", "i * 4 / 4", "i32", Mode::kData},
      {"0 <= i && i < 8", "(i * 4) / 4", "i", "i32", Mode::kData},
      // Sums are exact modulo 2^32.
      {"", "i + n - i", "n", "i32", Mode::kData},
      {"", "b * 3 - b * 2", "b", "i8", Mode::kData},
      {"", "b * i8(64) * i8(4)", "0", "i8", Mode::kData},
      {"", "min(b + 1, b)", "min(b, b + 1)", "i8", Mode::kData},
      {"", "max(i + 1, i)", "max(i, i + 1)", "i32", Mode::kData},
      {"", "u < u8(0)", "false", "i1", Mode::kData},
      {"", "u + u8(1) <= u8(0)", "u + u8(1) < u8(1)", "i1", Mode::kData},  // 255 + 1 is 0
  });
}

TEST(AnalyzerTest, FloatsOnlyExactly) {
  Check({
      {"", "x * 1.0", "x", "f32", Mode::kData},
      {"", "x + 0.0", "x + 0.0", "f32", Mode::kData},
      {"", "x - 0.0", "x", "f32", Mode::kData},
      {"", "x * 0.0", "x * 0.0", "f32", Mode::kData},
      {"", "x + y - x", "x + y - x", "f32", Mode::kData},
      {"", "f32(0.1) + f32(0.2)", "f32(0.3)", "f32", Mode::kData},
      {"", "select(x <= y, 1, 0)", "select(x <= y, 1, 0)", "i32"},
      {"", "!(x < y)", "!(x < y)", "i1"},
      {"", "!(x == y)", "x != y", "i1"},
      {"", "x == x", "x == x", "i1"},
      {"", "min(x, x)", "x", "f32", Mode::kData},
      {"", "min(y, x)", "min(y, x)", "f32", Mode::kData},
      {"", "cast(f32, 3) * x", "3.0 * x", "f32", Mode::kData},
  });
}

TEST(AnalyzerTest, LetsAndCasts) {
  Check({
      {"", "(let t: i32 = i + 0 in t * 2)", "i * 2"},
      {"0 <= i && i < 8", "cast(i32, cast(i64, i))", "i"},
      {"", "cast(i32, cast(i8, i))", "cast(i32, cast(i8, i))"},
      {"0 <= i && i < 8", "cast(i32, cast(i8, i))", "i"},
      // Comparisons of what a cast to a wider type keeps are those of what it widens.
      {"i < 11", "i64(0) <= cast(i64, min(2048 - i * 192, 192))", "true", "i1"},
      {"i < j", "cast(i64, i) < cast(i64, j)", "true", "i1"},
      {"", "cast(i64, i) < cast(i64, b)", "cast(i64, i) < cast(i64, b)", "i1"},
      {"i < 11 && 0 <= i", "i64(0) <= min(i64(2048) - cast(i64, i) * i64(192), i64(192))", "true",
       "i1"},
      {"", "i64(0) <= cast(i64, i) * i64(2)", "0 <= i", "i1"},
      {"", "cast(i64, i) + cast(i64, j) < i64(9)", "cast(i64, i) + cast(i64, j) < i64(9)", "i1"},
      {"", "cast(i64, i) < i64(4)", "i < 4", "i1"},
      {"", "cast(i64, i) < i64(4294967296)", "true", "i1"},
      {"", "cast(i32, b) == 200", "false", "i1"},
      {"", "cast(i8, i) < i8(4)", "cast(i8, i) < i8(4)", "i1"},
      {"", "cast(i32, u) < cast(i32, b)", "cast(i32, u) < cast(i32, b)", "i1"},
  });
}

TEST(AnalyzerTest, RangesOfLoops) {
  Context context;
  const Expr n = context.NewVar("n"), i = context.NewVar("i"), j = context.NewVar("j");
  Analyzer analyzer(context);
  {
    Analyzer::Scope scope(analyzer);
    analyzer.BindLoop(i, context.I32(2), context.I32(5));
    EXPECT_EQ(analyzer.Range(i), (ConstRange{2, 6}));
    {
      Analyzer::Scope inner(analyzer);
      analyzer.BindLoop(j, i, context.I32(3));
      EXPECT_EQ(analyzer.Range(j), (ConstRange{2, 8}));
      EXPECT_TRUE(analyzer.CanProve(j - i < 3));
      EXPECT_FALSE(analyzer.CanProve(j - i < 2));
      EXPECT_EQ(analyzer.Range(j % 4 + i / 2), (ConstRange{1, 6}));
    }
    EXPECT_FALSE(analyzer.CanProve(j - i < 3));
  }
  EXPECT_EQ(analyzer.Range(i), ConstRange::OfType(Type::kI32));
  Analyzer::Scope scope(analyzer);
  analyzer.BindLoop(i, context.I32(0), n);
  EXPECT_TRUE(analyzer.CanProve(i < n));
  EXPECT_TRUE(analyzer.CanProve(1 <= n));
  EXPECT_TRUE(analyzer.CanProve(0 <= i));
  EXPECT_FALSE(analyzer.CanProve(i < n - 1));
  EXPECT_EQ(analyzer.ConstantDifference(i * 3 + n, n + i * 3 - 7), 7);
  EXPECT_EQ(analyzer.ConstantDifference(i, n), std::nullopt);
}

TEST(AnalyzerTest, LetVariablesAreKnownByTheirValue) {
  Context context;
  const Expr i = context.NewVar("i"), t = context.NewVar("t");
  Analyzer analyzer(context);
  analyzer.BindLoop(i, context.I32(0), context.I32(4));
  analyzer.BindLet(t, i * 4 + 1);
  EXPECT_EQ(analyzer.Range(t), (ConstRange{1, 13}));
  EXPECT_TRUE(analyzer.CanProve(Eq(t - i * 4, context.I32(1))));
  EXPECT_EQ(analyzer.Simplify(t + 1), t + 1);  // not put back
}

TEST(AnalyzerTest, LetVariablesInSumsWithFacts) {
  Context context;
  const Expr t = context.NewVar("t"), first = context.NewVar("first"), i = context.NewVar("i");
  Analyzer analyzer(context);
  analyzer.BindLoop(t, context.I32(0), context.I32(5));
  analyzer.BindLet(first, t * 16 + 7);
  analyzer.BindLoop(i, t * 16 + 8, context.I32(16));
  EXPECT_EQ(analyzer.Range(analyzer.Form(i - first)), (ConstRange{1, 16}));
  EXPECT_TRUE(analyzer.CanProve(i * 2 - first * 2 < 33));
}

// A fact about memory does not outlive a store, so Assume ignores it.
TEST(AnalyzerTest, FactsAboutMemoryAreNotKept) {
  Expressions names;
  Analyzer analyzer(names.context());
  const Expr condition = names.Condition("A[0] < 3");
  analyzer.Assume(condition);
  EXPECT_FALSE(analyzer.CanProve(condition));
}

TEST(AnalyzerTest, LongChainsStayLinear) {
  Context context;
  const ir::Buffer a = context.NewBuffer("A", Type::kF32, {context.I32(100000)});
  const Expr i = context.NewVar("i");
  Analyzer analyzer(context);
  analyzer.BindLoop(i, context.I32(0), context.I32(16));
  Expr floats = a(i);
  Expr ints = i;
  for (int k = 1; k < 20000; ++k) {
    floats = floats + a(i + k + 0);
    ints = Min(ints + k, i * k) - 1;
  }
  const Expr simple = analyzer.Simplify(floats, Mode::kData);
  EXPECT_EQ(analyzer.Simplify(simple, Mode::kData), simple);
  analyzer.Simplify(ints, Mode::kData);
}

// ---- random expressions of wide types; narrow ones are in narrow_test.cc -------------------------

// Simplified expressions keep value and traps at every point where the facts hold.
void CheckRandom(Type type, Mode mode, uint64_t first_seed, int programs) {
  for (uint64_t seed = first_seed; seed < first_seed + programs; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Context context;
    RandomExpr make(context, seed, {type});
    const std::vector<Expr>& vars = make.free_vars();
    Analyzer analyzer(context);
    std::vector<ConstRange> ranges;
    const ConstRange all = ConstRange::OfType(type);
    for (Expr var : vars) {
      const ConstRange kRanges[] = {{0, 3},
                                    {-5, 9},
                                    {0, 0},
                                    {2, 40},
                                    {-128, 127},
                                    {all.max - 40, all.max},
                                    {all.min, all.min + 3}};
      ranges.push_back(Intersect(kRanges[make.Pick(7)], all));
      const bool tell = make.Pick(4) != 0;
      if (tell) analyzer.BindRange(var, ranges.back());
    }
    Expr fact = context.Bool(true);
    if (make.Pick(2) == 0) {
      fact = make.Bool(1);
      analyzer.Assume(fact);
    }
    const Expr before = make.Pick(2) == 0 ? make.Int(4) : make.Bool(4);
    const Expr after = analyzer.Simplify(before, mode);
    ASSERT_EQ(before.type(), after.type());
    const ConstRange range = analyzer.Range(before, mode);
    for (int point = 0; point < 40; ++point) {
      Values values;
      for (size_t v = 0; v < vars.size(); ++v) {
        const ConstRange r = ranges[v];
        const int64_t value = point < 2 ? (point == 0 ? r.min : r.max)
                                        : r.min + make.Pick(static_cast<int>(r.max - r.min + 1));
        values[vars[v].id()] = value;
      }
      const Outcome holds = Evaluate(fact, values, Mode::kIndex);
      if (holds.kind != Outcome::kValue || holds.value == 0) continue;
      const Outcome expected = Evaluate(before, values, mode);
      if (expected.kind == Outcome::kOverflow) continue;
      const Outcome found = Evaluate(after, values, mode);
      // Where one stops the program, the other may have come to something else first that does.
      if (expected.kind == Outcome::kTrap && found.kind == Outcome::kOverflow) continue;
      ASSERT_EQ(expected, found) << ir::Print(before) << "\n--> " << ir::Print(after) << "\nwith "
                                 << ir::Print(fact) << "\nat " << values[vars[0].id()] << ", "
                                 << values[vars[1].id()];
      if (expected.kind == Outcome::kValue) {
        ASSERT_TRUE(range.Contains(expected.value))
            << ir::Print(before) << " is " << expected << ", not in " << range.ToString();
      }
    }
  }
}

TEST(AnalyzerTest, RandomIndexExpressions) { CheckRandom(Type::kI32, Mode::kIndex, 1, 2000); }
TEST(AnalyzerTest, RandomDataExpressions) { CheckRandom(Type::kI32, Mode::kData, 10001, 1000); }

// The ends of i64 are those of the analyzer's own numbers.
TEST(AnalyzerTest, RandomExpressionsOfOtherTypes) {
  for (const Type type : {Type::kI64, Type::kI16, Type::kU16, Type::kU32}) {
    SCOPED_TRACE(ir::TypeName(type));
    CheckRandom(type, Mode::kIndex, 20001, type == Type::kI64 ? 2000 : 500);
    CheckRandom(type, Mode::kData, 30001, type == Type::kI64 ? 1000 : 500);
  }
}

}  // namespace
}  // namespace polynao::arith
