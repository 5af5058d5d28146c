#include "compiler/arith/wraps.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "compiler/arith/evaluate_for_test.h"
#include "compiler/arith/random_expr_for_test.h"
#include "compiler/ir/text.h"
#include "gtest/gtest.h"

namespace polynao::arith {
namespace {

using ir::Type;

TEST(WrapsTest, DifferencesOfEachType) {
  for (const char* type : {"u8", "i8", "u16", "i16", "u32", "i32", "i64"}) {
    const absl::StatusOr<ir::Function> f = ir::ParseFunction(
        absl::StrCat("func f(A: ", type, "[9], n: ", type, ") { A[0] = n - 3 A[1] = max(n, 3) - 3 ",
                     "A[2] = min(n, 3) + 1 A[3] = n + 1 }"));
    ASSERT_TRUE(f.ok()) << f.status();
    Analyzer analyzer(*f->context);
    const auto wraps = [&](size_t i) { return CanWrap(analyzer, f->body.children()[i].value()); };
    EXPECT_TRUE(wraps(0)) << type;
    // Of i64, ranges do not tell the greatest value from more.
    if (std::string_view(type) != "i64") {
      EXPECT_FALSE(wraps(1)) << type;
      EXPECT_FALSE(wraps(2)) << type;
    }
    EXPECT_TRUE(wraps(3)) << type;
  }
}

TEST(WrapsTest, LastValuesOfLoops) {
  for (const Type type : {Type::kI8, Type::kI16, Type::kI32, Type::kU8, Type::kU16, Type::kU32}) {
    ir::Context c;
    Analyzer analyzer(c);
    const int64_t most = ir::GreatestInt(type);
    EXPECT_TRUE(HasValuesInType(analyzer, c.Int(type, most), c.Int(type, 1)));
    EXPECT_FALSE(HasValuesInType(analyzer, c.Int(type, most), c.Int(type, 2)));
    EXPECT_TRUE(HasValuesInType(analyzer, c.Int(type, 0), c.NewVar("n", type)));
    EXPECT_FALSE(HasValuesInType(analyzer, c.Int(type, 2), c.NewVar("n", type)));
  }
}

// What cannot wrap has the value of its sums over larger integers.
TEST(WrapsTest, RandomTreesOfNarrowTypes) {
  int exact = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    ir::Context context;
    const Type type = seed % 2 == 0 ? Type::kI8 : Type::kU8;
    RandomExpr make(context, seed, {type}, /*may_trap=*/false);
    Analyzer analyzer(context);
    for (ir::Var var : make.free_vars()) analyzer.BindRange(var, {3, 3 + make.Pick(60)});
    const ir::Expr a = make.Int(2), b = make.Int(2);
    const ir::Expr sum = a + b, difference = a - b;
    for (const ir::Expr e : {sum, difference}) {
      if (CanWrap(analyzer, e)) continue;
      ++exact;
      for (int64_t x = 3; x < 63; x += 7) {
        Values values;
        bool inside = true;
        for (size_t v = 0; v < make.free_vars().size(); ++v) {
          const ir::Var var = make.free_vars()[v];
          values[var.id()] = x + static_cast<int64_t>(v);
          inside = inside && analyzer.Range(var).Contains(values[var.id()]);
        }
        if (!inside) continue;
        const int64_t left = Evaluate(a, values, Mode::kIndex).value;
        const int64_t right = Evaluate(b, values, Mode::kIndex).value;
        ASSERT_EQ(Evaluate(e, values, Mode::kIndex).value, e == sum ? left + right : left - right)
            << ir::Print(e) << " at " << x;
      }
    }
  }
  EXPECT_GT(exact, 200);
}

}  // namespace
}  // namespace polynao::arith
