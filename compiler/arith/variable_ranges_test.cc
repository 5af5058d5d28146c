#include "compiler/arith/variable_ranges.h"

#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "compiler/arith/evaluate_for_test.h"
#include "compiler/ir/text.h"
#include "gtest/gtest.h"

namespace polynao::arith {
namespace {

using ir::Context;
using ir::Expr;
using ir::ExprKind;
using ir::Type;
using ir::Var;

// Random integer expressions over `leaves`.
class Writer {
 public:
  Writer(Context& context, Type type, std::vector<Expr> leaves, uint64_t seed)
      : c_(context), type_(type), leaves_(std::move(leaves)), random_(seed) {}

  Expr Tree(int depth) {
    if (depth == 0 || Below(6) == 0) return leaves_[Below(leaves_.size())];
    constexpr ExprKind kBinary[] = {ExprKind::kAdd, ExprKind::kSub, ExprKind::kMul, ExprKind::kDiv,
                                    ExprKind::kMod, ExprKind::kMin, ExprKind::kMax};
    switch (Below(10)) {
      case 0:
        return c_.Select(Tree(depth - 1) < Tree(depth - 1), Tree(depth - 1), Tree(depth - 1));
      case 1: {
        const Var v = c_.NewVar("v", type_);
        return c_.Let(v, Tree(depth - 1), c_.Binary(ExprKind::kAdd, v, Tree(depth - 1)));
      }
      case 2: {
        const Type other = type_ == Type::kI8 ? Type::kI16 : Type::kI8;
        return c_.Cast(type_, c_.Cast(other, Tree(depth - 1)));
      }
      default:
        return c_.Binary(kBinary[Below(std::size(kBinary))], Tree(depth - 1), Tree(depth - 1));
    }
  }

 private:
  size_t Below(size_t n) { return random_() % n; }

  Context& c_;
  const Type type_;
  const std::vector<Expr> leaves_;
  std::mt19937_64 random_;
};

// Every value that `e` has, for `values` of a and b, is in its range.
void ExpectHolds(Expr e, VariableRanges& ranges, Var a, const std::vector<int64_t>& values_of_a,
                 Var b, const std::vector<int64_t>& values_of_b) {
  const ConstRange range = ranges.Range(e);
  for (const int64_t x : values_of_a) {
    for (const int64_t y : values_of_b) {
      const Outcome outcome = Evaluate(e, {{a.id(), x}, {b.id(), y}}, Mode::kData);
      if (outcome.kind != Outcome::kValue) continue;
      ASSERT_TRUE(range.Contains(outcome.value))
          << ir::Print(e) << " is " << outcome.value << " for " << x << " and " << y
          << ", its range is " << range.ToString();
    }
  }
}

TEST(VariableRangesTest, EveryValueOfNarrowTypes) {
  for (const Type type : {Type::kI8, Type::kU8}) {
    for (uint64_t seed = 0; seed < 150 && !HasFatalFailure(); ++seed) {
      Context c;
      Analyzer analyzer(c);
      VariableRanges ranges(analyzer);
      const Var a = c.NewVar("a", type);
      const Var b = c.NewVar("b", type);
      ranges.BindLoop(a, c.Int(type, 3), c.Int(type, 5));
      Writer writer(c, type, {a, b, c.Int(type, static_cast<int64_t>(seed % 7)), c.Int(type, 2)},
                    seed);
      std::vector<int64_t> all;
      const ConstRange of_type = ConstRange::OfType(type);
      for (int64_t y = of_type.min; y <= of_type.max; ++y) all.push_back(y);
      const Expr e = writer.Tree(3);
      ExpectHolds(e, ranges, a, {3, 4, 5, 6, 7}, b, all);
    }
  }
}

// The ends of i64 are its infinities, so a sum beyond them must not look like one that fits.
TEST(VariableRangesTest, EdgesOfWideTypes) {
  for (const Type type : {Type::kI32, Type::kI64}) {
    const ConstRange of_type = ConstRange::OfType(type);
    const std::vector<int64_t> edges = {
        of_type.min,         of_type.min + 1, -2,         -1, 0, 1, 2,
        of_type.max / 2 + 1, of_type.max - 1, of_type.max};
    for (uint64_t seed = 0; seed < 1000 && !HasFatalFailure(); ++seed) {
      Context c;
      Analyzer analyzer(c);
      VariableRanges ranges(analyzer);
      const Var a = c.NewVar("a", type);
      const Var b = c.NewVar("b", type);
      ranges.BindLoop(a, c.Int(type, -2), c.Int(type, 5));
      Writer writer(c, type, {a, b, c.Int(type, edges[seed % edges.size()]), c.Int(type, 2)}, seed);
      ExpectHolds(writer.Tree(3), ranges, a, {-2, -1, 0, 1, 2}, b, edges);
    }
  }
}

TEST(VariableRangesTest, LoopsAndLets) {
  Context c;
  Analyzer analyzer(c);
  VariableRanges ranges(analyzer);
  const Var i = c.NewVar("i");
  const Var n = c.NewVar("n");
  const Var x = c.NewVar("x");
  const Var none = c.NewVar("none");
  const Var some = c.NewVar("some");
  ranges.BindLoop(i, c.I32(0), c.I32(8));
  ranges.BindLet(x, i * 16 + 3);
  ranges.BindLoop(none, c.I32(4), c.I32(0));
  ranges.BindLoop(some, i, n % 5);
  EXPECT_EQ(ranges.Range(i).ToString(), "[0, 7]");
  EXPECT_EQ(ranges.Range(x / 4).ToString(), "[0, 28]");
  EXPECT_EQ(ranges.Range(none).ToString(), "[4, 4]");
  EXPECT_EQ(ranges.Range(some).ToString(), "[0, 10]");
  EXPECT_EQ(ranges.Range(n), ConstRange::OfType(Type::kI32));
  EXPECT_EQ(ranges.Range(n + 1), ConstRange::OfType(Type::kI32));  // it may wrap around
}

// All quotients of neighbours: the range holds every difference, and both its ends occur.
TEST(VariableRangesTest, DifferencesOfQuotients) {
  for (int64_t divisor = 1; divisor <= 9; ++divisor) {
    for (int64_t difference = -20; difference <= 20; ++difference) {
      Context c;
      Analyzer analyzer(c);
      const Var x = c.NewVar("x");
      const Expr a = (x + difference) / divisor;
      const Expr b = x / divisor;
      const auto range = DifferenceOfQuotients(analyzer, a, b);
      ASSERT_TRUE(range.has_value()) << ir::Print(a);
      ConstRange seen = ConstRange::Nothing();
      for (int64_t value = -30; value <= 30; ++value) {
        const Values values = {{x.id(), value}};
        seen = Union(seen, ConstRange::Point(Evaluate(a, values, Mode::kIndex).value -
                                             Evaluate(b, values, Mode::kIndex).value));
      }
      EXPECT_EQ(*range, seen) << difference << " / " << divisor;
      // The same inside a sum, with other atoms around.
      VariableRanges ranges(analyzer);
      const Var j = c.NewVar("j");
      ranges.BindLoop(j, c.I32(0), c.I32(3));
      LinearForm form = LinearForm::Atom(a, 4);
      ASSERT_TRUE(form.AddTerm(b, -4) && form.AddTerm(j, 1) && form.AddConstant(100));
      if (a == b) continue;
      EXPECT_EQ(ranges.Range(form), seen * ConstRange::Point(4) + (ConstRange{100, 102}));
    }
  }
}

TEST(VariableRangesTest, QuotientsThatCannotBeCompared) {
  Context c;
  Analyzer analyzer(c);
  const Var x = c.NewVar("x");
  const Var y = c.NewVar("y");
  EXPECT_FALSE(DifferenceOfQuotients(analyzer, x / 4, y / 4));
  EXPECT_FALSE(DifferenceOfQuotients(analyzer, x / 4, x / 5));
  EXPECT_FALSE(DifferenceOfQuotients(analyzer, x / y, x / y));
  EXPECT_FALSE(DifferenceOfQuotients(analyzer, x / -4, x / -4));
  EXPECT_FALSE(DifferenceOfQuotients(analyzer, x, x / 1));
  // x + 5 wraps around in i8: 127 + 5 is -124.
  const Var b = c.NewVar("b", Type::kI8);
  EXPECT_FALSE(DifferenceOfQuotients(analyzer, (b + 5) / 7, b / 7));
}

}  // namespace
}  // namespace polynao::arith
