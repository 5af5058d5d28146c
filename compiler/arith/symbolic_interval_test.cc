#include "compiler/arith/symbolic_interval.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/ir/text.h"
#include "gtest/gtest.h"

namespace polynao::arith {
namespace {

using ir::Context;
using ir::Expr;
using ir::ExprKind;
using ir::Type;

class SymbolicIntervalTest : public ::testing::Test {
 protected:
  SymbolicIntervalTest() {
    ranges_[xo_] = {0, 3};
    ranges_[xi_] = {0, 3};
    ranges_[k_] = {-1, 1};
  }

  // "start, size" of the values of e while xi and k run and xo stays.
  std::string Values(Expr e) {
    const std::optional<SymbolicInterval> interval = IntervalOf(e, ranges_, {xo_});
    if (!interval) return "unknown";
    return absl::StrCat(ir::Print(ToExpr(interval->min, context_, Type::kI32)), ", ",
                        interval->size);
  }

  Context context_;
  Expr xo_ = context_.NewVar("xo");
  Expr xi_ = context_.NewVar("xi");
  Expr k_ = context_.NewVar("k");
  Expr n_ = context_.NewVar("n");  // a parameter: no range
  VarRanges ranges_;
};

TEST_F(SymbolicIntervalTest, LinearForms) {
  auto text = [&](Expr e) { return ir::Print(ToExpr(Decompose(e), context_, Type::kI32)); };
  EXPECT_EQ(text(xi_ + xo_ * 4), "xo * 4 + xi");
  EXPECT_EQ(text((xi_ + 1) * 2 - xi_ * 2), "2");
  EXPECT_EQ(text(3 - xi_), "3 - xi");
  EXPECT_EQ(text(xo_ - xi_ - 3), "xo - xi - 3");
  EXPECT_EQ(text(xo_ - xo_), "0");
  EXPECT_EQ(text(xo_ * xi_ + xo_ * xi_), "xo * xi * 2");
  EXPECT_EQ(text((xo_ * 4 + xi_) / 3), "(xo * 4 + xi) / 3");
}

TEST_F(SymbolicIntervalTest, Intervals) {
  EXPECT_EQ(Values(xo_ * 4 + xi_), "xo * 4, 4");
  EXPECT_EQ(Values(xo_ * 4 + xi_ + k_), "xo * 4 - 1, 6");
  EXPECT_EQ(Values(xo_), "xo, 1");
  EXPECT_EQ(Values(n_ + xi_), "n, 4");
  EXPECT_EQ(Values(10 - xi_), "7, 4");
  EXPECT_EQ(Values(xi_ * 2), "0, 7");
  EXPECT_EQ(Values(xi_ * -2), "-6, 7");
  EXPECT_EQ(Values(xo_ * xo_ + xi_), "xo * xo, 4");
  EXPECT_EQ(Values(xi_ * k_), "-3, 7");
  EXPECT_EQ(Values(ir::Max(xo_ * 4 + xi_ - 1, context_.I32(0))), "max(xo * 4 - 1, 0), 4");
  EXPECT_EQ(Values(context_.Select(xi_ < 2, xo_ + 1, xo_ + 5)), "xo + 1, 5");
}

// Division and remainder of a fused loop: blocks that start at multiples do not wrap.
TEST_F(SymbolicIntervalTest, DivisionAndRemainder) {
  EXPECT_EQ(Values((xo_ * 4 + xi_) / 4), "xo, 1");
  EXPECT_EQ(Values((xo_ * 4 + xi_) % 4), "0, 4");
  EXPECT_EQ(Values((xo_ * 4 + xi_) / 8), "xo * 4 / 8, 1");
  EXPECT_EQ(Values((xo_ * 4 + xi_) % 8), "xo * 4 % 8, 4");
  EXPECT_EQ(Values((xo_ * 4 + xi_) / 3), "xo * 4 / 3, 2");
  EXPECT_EQ(Values((xo_ * 4 + xi_) % 3), "0, 3");
  EXPECT_EQ(Values((xo_ * 4 + xi_ + 2) / 4), "xo, 2");
  EXPECT_EQ(Values((xo_ * 4 + xi_ + 2) % 4), "0, 4");
  // Multiples of the divisor are no reason to wrap.
  EXPECT_EQ(Values((xo_ * 8 + xi_ * 4 + n_) % 4), "n % 4, 1");
  EXPECT_EQ(Values((n_ * 4 + xi_ + 6) % 4), "0, 4");
  EXPECT_EQ(Values((xi_ * 4 + 6) % 4), "2, 1");
  // The whole is small.
  EXPECT_EQ(Values((xo_ * 4 + xi_) / 16), "0, 1");
  EXPECT_EQ(Values((xo_ * 4 + xi_) % 16), "xo * 4, 4");
  // A divisor that may be zero is never evaluated ahead.
  EXPECT_EQ(Values(xi_ / n_), "unknown");
  EXPECT_EQ(Values(n_ % xo_), "unknown");
}

TEST_F(SymbolicIntervalTest, WhatDependsOnDataIsUnknown) {
  const ir::Buffer b = context_.NewBuffer("B", Type::kI32, {context_.I32(16)});
  EXPECT_EQ(Values(b(xo_)), "unknown");
  EXPECT_EQ(Values(b(xo_) + xi_), "unknown");
  EXPECT_EQ(Values(b(xo_) % 5), "unknown");
}

TEST_F(SymbolicIntervalTest, Differences) {
  auto difference = [&](Expr a, Expr b) {
    const ConstRange range = DifferenceRange(Decompose(a), Decompose(b), ranges_);
    return absl::StrCat(range.min, " ", range.max);
  };
  const Expr zero = context_.I32(0);
  EXPECT_EQ(difference(xo_ + 2, xo_), "2 2");
  EXPECT_EQ(difference(xi_, xo_), "-3 3");
  EXPECT_EQ(difference(ir::Max(n_ + 2, zero), ir::Max(n_, zero)), "0 2");
  EXPECT_EQ(difference(ir::Min(n_, zero), ir::Min(n_ + 2, zero)), "-2 0");
  EXPECT_EQ(difference((n_ + 5) / 4, n_ / 4), "1 2");
  EXPECT_EQ(difference((n_ + 4) / 4, n_ / 4), "1 1");
  EXPECT_FALSE(DifferenceRange(Decompose(n_), Decompose(xo_), ranges_).IsBounded());
}

// Coefficients and sizes that leave int64_t make an answer that says less, not one that wrapped.
TEST_F(SymbolicIntervalTest, BeyondInt64) {
  const Expr far = context_.NewVar("far", Type::kI64), big = context_.I64(int64_t{1} << 62);
  EXPECT_EQ(Decompose(far * big * big), LinearForm::Atom(far * big * big));
  EXPECT_EQ(Decompose(far * big + far * big), LinearForm::Atom(far * big + far * big));
  const Expr wide = context_.NewVar("wide", Type::kI64);
  ranges_[wide] = {0, int64_t{1} << 60};
  EXPECT_EQ(Values(wide * 4), "unknown");
  EXPECT_EQ(Values(wide * big * big), "unknown");
  EXPECT_EQ(RangeOf(wide * big, ranges_), (ConstRange{0, kInfinity}));
  EXPECT_FALSE(
      DifferenceRange(Decompose(far * big), Decompose(far * -4 * (big / 2)), ranges_).IsBounded());
}

// ---- against enumeration ------------------------------------------------------------------------

int64_t Evaluate(Expr e, const std::map<std::string, int64_t>& vars) {
  auto operand = [&](size_t i) { return Evaluate(e.operand(i), vars); };
  switch (e.kind()) {
    case ExprKind::kIntImm:
      return e.int_value();
    case ExprKind::kVar:
      return vars.at(std::string(e.name()));
    case ExprKind::kAdd:
      return operand(0) + operand(1);
    case ExprKind::kSub:
      return operand(0) - operand(1);
    case ExprKind::kMul:
      return operand(0) * operand(1);
    case ExprKind::kDiv:
      return FloorDiv(operand(0), operand(1));
    case ExprKind::kMod:
      return operand(0) - FloorDiv(operand(0), operand(1)) * operand(1);
    case ExprKind::kMin:
      return std::min(operand(0), operand(1));
    case ExprKind::kMax:
      return std::max(operand(0), operand(1));
    case ExprKind::kLt:
      return operand(0) < operand(1) ? 1 : 0;
    case ExprKind::kSelect:
      return operand(0) != 0 ? operand(1) : operand(2);
    case ExprKind::kCast:
      return ir::WrapInt(e.type(), operand(0));
    default:
      POLYNAO_UNREACHABLE(ir::ExprKindName(e.kind()));
  }
}

TEST_F(SymbolicIntervalTest, NothingLeavesItsIntervalOrRange) {
  constexpr uint64_t kCases = 3000;
  for (uint64_t seed = 1; seed <= kCases && !HasFailure(); ++seed) {
    std::mt19937_64 random(seed);
    auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
    std::function<Expr(int)> make = [&](int depth) -> Expr {
      if (depth == 0 || below(6) == 0) {
        const std::vector<Expr> leaves = {xo_, xi_, k_, xo_ * 4 + xi_, context_.I32(below(9) - 4)};
        return leaves[below(leaves.size())];
      }
      const Expr a = make(depth - 1);
      const Expr b = make(depth - 1);
      switch (below(11)) {
        case 0:
        case 1:
          return a + b;
        case 2:
          return a - b;
        case 3:
          return a * (below(7) - 3);
        case 4:
          return a * b;
        case 5:
        case 6:
          return a / (below(6) + 1);
        case 7:
          return a % (below(8) + 1);
        case 8:
          return ir::Min(a, b);
        case 9:
          return below(2) ? ir::Max(a, b) : context_.Cast(Type::kI32, context_.Cast(Type::kI8, a));
        default:
          return context_.Select(a < b, a, b + 1);
      }
    };
    const Expr e = make(3);
    const Expr other = below(2) ? make(3) : e + 1 + below(5);
    const std::optional<SymbolicInterval> interval = IntervalOf(e, ranges_, {xo_});
    const std::optional<SymbolicInterval> both =
        interval ? [&]() -> std::optional<SymbolicInterval> {
      const std::optional<SymbolicInterval> second = IntervalOf(other, ranges_, {xo_});
      if (!second) return std::nullopt;
      return Union(*interval, *second, ranges_, context_, Type::kI32);
    }()
        : std::nullopt;
    const ConstRange range = RangeOf(e, ranges_);
    const ConstRange difference = DifferenceRange(Decompose(e), Decompose(other), ranges_);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", ir::Print(e), " and ", ir::Print(other)));
    for (int64_t xo = 0; xo <= 3; ++xo) {
      for (int64_t xi = 0; xi <= 3; ++xi) {
        for (int64_t k = -1; k <= 1; ++k) {
          const std::map<std::string, int64_t> vars = {{"xo", xo}, {"xi", xi}, {"k", k}};
          const int64_t value = Evaluate(e, vars);
          const int64_t second = Evaluate(other, vars);
          ASSERT_EQ(Evaluate(ToExpr(Decompose(e), context_, Type::kI32), vars), value);
          ASSERT_TRUE(range.min <= value && value <= range.max) << value;
          ASSERT_TRUE(difference.min <= value - second && value - second <= difference.max);
          auto inside = [&](const SymbolicInterval& i, int64_t v) {
            const int64_t start = Evaluate(ToExpr(i.min, context_, Type::kI32), vars);
            return start <= v && v < start + i.size;
          };
          if (interval) ASSERT_TRUE(inside(*interval, value)) << value << " " << Values(e);
          if (both) ASSERT_TRUE(inside(*both, value) && inside(*both, second));
        }
      }
    }
  }
}

}  // namespace
}  // namespace polynao::arith
