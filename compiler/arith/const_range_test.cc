#include "compiler/arith/const_range.h"

#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace polynao::arith {
namespace {

struct Operation {
  std::string name;
  std::function<ConstRange(ConstRange, ConstRange)> range;
  std::function<std::optional<int64_t>(int64_t, int64_t)> value;
  bool smallest;  // whether the interval must be the smallest possible
};

const std::vector<Operation>& Operations() {
  static const auto* operations = new std::vector<Operation>{
      {"+", [](auto a, auto b) { return a + b; }, [](auto a, auto b) { return a + b; }, true},
      {"-", [](auto a, auto b) { return a - b; }, [](auto a, auto b) { return a - b; }, true},
      {"*", [](auto a, auto b) { return a * b; }, [](auto a, auto b) { return a * b; }, true},
      {"min", [](auto a, auto b) { return Min(a, b); },
       [](auto a, auto b) { return std::min(a, b); }, true},
      {"max", [](auto a, auto b) { return Max(a, b); },
       [](auto a, auto b) { return std::max(a, b); }, true},
      {"/", [](auto a, auto b) { return FloorDiv(a, b); },
       [](int64_t a, int64_t b) -> std::optional<int64_t> {
         if (b == 0) return std::nullopt;
         return FloorDiv(a, b);
       },
       true},
      {"%", [](auto a, auto b) { return FloorMod(a, b); },
       [](int64_t a, int64_t b) -> std::optional<int64_t> {
         if (b == 0) return std::nullopt;
         return FloorMod(a, b);
       },
       false},
  };
  return *operations;
}

// Every pair of intervals inside [-5, 5], every pair of values in them.
TEST(ConstRangeTest, HoldsAllResultsAndNoMoreThanNeeded) {
  constexpr int64_t kEdge = 5;
  for (const Operation& op : Operations()) {
    for (int64_t a0 = -kEdge; a0 <= kEdge; ++a0) {
      for (int64_t a1 = a0; a1 <= kEdge; ++a1) {
        for (int64_t b0 = -kEdge; b0 <= kEdge; ++b0) {
          for (int64_t b1 = b0; b1 <= kEdge; ++b1) {
            ConstRange exact = ConstRange::Nothing();
            for (int64_t a = a0; a <= a1; ++a) {
              for (int64_t b = b0; b <= b1; ++b) {
                const auto value = op.value(a, b);
                if (value) exact = Union(exact, ConstRange::Point(*value));
              }
            }
            const ConstRange range = op.range({a0, a1}, {b0, b1});
            ASSERT_TRUE(range.Contains(exact))
                << ConstRange{a0, a1}.ToString() << op.name << ConstRange{b0, b1}.ToString()
                << " gives " << range.ToString() << ", must hold " << exact.ToString();
            if (op.smallest) {
              ASSERT_EQ(range, exact)
                  << ConstRange{a0, a1}.ToString() << op.name << ConstRange{b0, b1}.ToString();
            }
          }
        }
      }
    }
  }
}

TEST(ConstRangeTest, InfinityAbsorbs) {
  const ConstRange from_zero = {0, kInfinity};
  EXPECT_EQ(from_zero + ConstRange::Point(5), (ConstRange{5, kInfinity}));
  EXPECT_EQ(from_zero - from_zero, ConstRange::Everything());
  EXPECT_EQ(from_zero * ConstRange::Point(-2), (ConstRange{kMinusInfinity, 0}));
  EXPECT_EQ(from_zero * ConstRange::Point(0), ConstRange::Point(0));
  EXPECT_EQ(FloorDiv(from_zero, ConstRange::Point(4)), from_zero);
  EXPECT_EQ(FloorDiv(ConstRange{3, 9}, ConstRange{1, kInfinity}), (ConstRange{0, 9}));
  EXPECT_EQ(FloorDiv(ConstRange{-9, 9}, ConstRange{1, kInfinity}), (ConstRange{-9, 9}));
  EXPECT_EQ(FloorMod(ConstRange::Everything(), ConstRange::Point(4)), (ConstRange{0, 3}));
  EXPECT_EQ(FloorMod(ConstRange::Everything(), ConstRange::Point(-4)), (ConstRange{-3, 0}));
}

TEST(ConstRangeTest, SaturatesInsteadOfWrapping) {
  const ConstRange big = {int64_t{1} << 62, int64_t{1} << 62};
  EXPECT_EQ((big * ConstRange::Point(4)).max, kInfinity);
  EXPECT_EQ((big * ConstRange::Point(-4)).min, kMinusInfinity);
  EXPECT_EQ((big + big + big).max, kInfinity);
  EXPECT_EQ((ConstRange{5, kInfinity}.Count()), std::nullopt);
  EXPECT_EQ((ConstRange{5, 9}.Count()), 5);
}

TEST(ConstRangeTest, NothingStaysNothing) {
  EXPECT_TRUE((ConstRange::Nothing() + ConstRange::Point(1)).IsEmpty());
  EXPECT_TRUE(Min(ConstRange::Point(1), ConstRange::Nothing()).IsEmpty());
  EXPECT_TRUE(FloorDiv(ConstRange::Point(1), ConstRange::Point(0)).IsEmpty());
  EXPECT_EQ(ConstRange::Nothing().ToString(), "[]");
}

TEST(ConstRangeTest, TypesHoldTheirEnds) {
  for (ir::Type type :
       {ir::Type::kI1, ir::Type::kI8, ir::Type::kU8, ir::Type::kI16, ir::Type::kI32}) {
    const ConstRange range = ConstRange::OfType(type);
    EXPECT_TRUE(ir::FitsInt(type, range.min) && ir::FitsInt(type, range.max));
    EXPECT_FALSE(ir::FitsInt(type, range.min - 1) || ir::FitsInt(type, range.max + 1));
  }
}

// A lower end beyond int64_t is a bound that what is added may leave again.
TEST(ConstRangeTest, EndsBeyondInt64) {
  const ConstRange large = ConstRange{int64_t{1} << 62, int64_t{1} << 62} * ConstRange::Point(4);
  EXPECT_TRUE((large + ConstRange{kMinusInfinity, 0}).Contains(0));
  EXPECT_TRUE((large + ConstRange::Point(-100)).Contains(kInfinity - 100));
  EXPECT_TRUE(FloorDiv(large, ConstRange::Point(4)).Contains(int64_t{1} << 62));
  const ConstRange small = ConstRange{int64_t{1} << 62, int64_t{1} << 62} * ConstRange::Point(-4);
  EXPECT_TRUE((small + ConstRange{0, kInfinity}).Contains(0));
  EXPECT_TRUE((ConstRange::Point(0) - small).Contains(kInfinity));
}

// A single value at an end is a number, not an infinity: in all pairs of intervals between the ends.
TEST(ConstRangeTest, ValuesAtTheEndsOfInt64) {
  const std::vector<int64_t> ends = {
      kMinusInfinity, kMinusInfinity + 1, kMinusInfinity + 2, -2, -1, 0, 1, 2,
      kInfinity - 2,  kInfinity - 1,      kInfinity};
  using Wide = __int128;
  const auto check = [](const ConstRange& range, Wide value, const std::string& what) {
    // An infinite end holds everything beyond it.
    EXPECT_TRUE(range.min == kMinusInfinity || range.min <= value) << what;
    EXPECT_TRUE(range.max == kInfinity || value <= range.max) << what;
  };
  for (size_t a0 = 0; a0 < ends.size(); ++a0) {
    for (size_t a1 = a0; a1 < ends.size(); ++a1) {
      for (size_t b0 = 0; b0 < ends.size(); ++b0) {
        for (size_t b1 = b0; b1 < ends.size(); ++b1) {
          const ConstRange a = {ends[a0], ends[a1]}, b = {ends[b0], ends[b1]};
          const ConstRange sum = a + b, difference = a - b, product = a * b;
          const ConstRange quotient = FloorDiv(a, b), rest = FloorMod(a, b);
          for (size_t x = a0; x <= a1; ++x) {
            for (size_t y = b0; y <= b1; ++y) {
              const Wide p = ends[x], q = ends[y];
              const std::string what = a.ToString() + " and " + b.ToString();
              check(sum, p + q, what + ": +");
              check(difference, p - q, what + ": -");
              check(product, p * q, what + ": *");
              if (q == 0) continue;
              const Wide down = p / q - (p % q != 0 && (p < 0) != (q < 0) ? 1 : 0);
              check(quotient, down, what + ": /");
              check(rest, p - down * q, what + ": %");
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace polynao::arith
