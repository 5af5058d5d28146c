#include "compiler/codegen/loop_work.h"

#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

// What the work of `body`, a loop over A of f64[n, n] and x of f64[n], is for n and m.
double WorkAt(const std::string& body, int32_t n, int32_t m = 0) {
  const absl::StatusOr<ir::Function> parsed = ir::ParseFunction(
      "func f(work: f64[1] out, A: f64[n, n], x: f64[n], n: i32, m: i32) {\n" + body + "\n}\n");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  ir::Function f = *parsed;
  ir::Context& c = *f.context;
  const ir::Expr work = LoopWork(f.body);
  f.body = c.Store(f.params[0].buffer, {c.I32(0)}, work);
  ir::Tensor result(ir::Type::kF64, {1}), matrix(ir::Type::kF64, {n, n}), row(ir::Type::kF64, {n});
  const absl::Status status =
      ir::Interpret(f, {ir::Argument::Of(&result), ir::Argument::Of(&matrix),
                        ir::Argument::Of(&row), ir::Argument::Int(n), ir::Argument::Int(m)});
  EXPECT_TRUE(status.ok()) << status;
  return result.Value(0);
}

TEST(LoopWorkTest, Rectangle) {
  // 2 loads, a sum and a store in each iteration, and the loops themselves.
  EXPECT_EQ(WorkAt("parallel (i, 0, n) { for (j, 0, m) { x[i] = x[i] + A[i, j] } }", 10, 20),
            10 * (20 * 4 / 4 + 1));
}

TEST(LoopWorkTest, BoundsOfInnerLoopsAreTakenInTheMiddle) {
  EXPECT_EQ(WorkAt("parallel (i, 0, n) { for (j, 0, i) { x[i] = x[i] + A[i, j] } }", 100),
            100 * (50 + 1));
  EXPECT_EQ(
      WorkAt("parallel (i, 2, n) { let k: i32 = 2 * i for (j, k, n - k) { x[j] = 1.0 } }", 22),
      22 * ((22 - 24) * 0 + 1 + 1));
}

TEST(LoopWorkTest, TheLongerBranchCounts) {
  EXPECT_EQ(
      WorkAt("parallel (i, 0, n) { if (i < m) { x[i] = 1.0 } else { x[i] = x[i] + 1.0 } }", 8),
      8 * (1 + 3) / 4);
}

TEST(LoopWorkTest, EmptyAndNegativeExtentsHaveNoWork) {
  EXPECT_EQ(WorkAt("parallel (i, 0, m) { x[i] = 1.0 }", 1, 0), 0);
  EXPECT_EQ(WorkAt("parallel (i, 0, m) { x[i] = 1.0 }", 1, -5), 0);
  EXPECT_EQ(WorkAt("parallel (i, 0, n) { for (j, 0, m) { x[j] = 1.0 } }", 3, -2147483647), 3);
}

TEST(LoopWorkTest, ExtentsThatAreNotKnownInFront) {
  // Neither is an element read nor a quotient by a variable taken before the loop.
  EXPECT_EQ(WorkAt("parallel (i, 0, n) { for (j, 0, n / m) { x[j] = 1.0 } }", 3, 0),
            3 * (64 / 4 + 1));
  EXPECT_EQ(WorkAt("parallel (i, 0, n) { for (j, 0, cast(i32, x[i])) { x[j] = 1.0 } }", 3),
            3 * (64 / 4 + 1));
}

}  // namespace
}  // namespace polynao::codegen
