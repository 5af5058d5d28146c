#include "compiler/ir/agreement.h"

#include <deque>
#include <limits>

#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/ir/uniform_tensor.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

RandomArguments Values(double a, double b) {
  std::deque<Tensor> tensors = {Tensor(Type::kF64, {1}), Tensor(Type::kF64, {2})};
  tensors[1].SetValue(0, a);
  tensors[1].SetValue(1, b);
  return RandomArguments(std::move(tensors));
}

std::string Check(double a, double b, double tolerance) {
  const Function f = *ParseFunction("func f(N: f64[1], A: f64[2]) { A[0] = N[0] }");
  return FindDisagreement(f, Values(100, a), Values(100, b), tolerance);
}

TEST(AgreementTest, ComparesBitsWithoutTolerance) {
  EXPECT_EQ(Check(1, 1, 0), "");
  EXPECT_EQ(Check(0.0, -0.0, 0), "A: element 1 is 0, expected -0");
  EXPECT_EQ(Check(0.0, -0.0, 1e-9), "");
}

TEST(AgreementTest, ToleranceIsRelativeToTheLargestElement) {
  EXPECT_EQ(Check(1, 1.5, 0.01), "");
  EXPECT_EQ(Check(1, 2.5, 0.01), "A: element 1 is 1, expected 2.5 within 1");
  // Not to elements below 1.
  const Function f = *ParseFunction("func f(A: f64[1], B: f64[2]) { A[0] = B[0] }");
  EXPECT_EQ(FindDisagreement(f, Values(0, 0.001), Values(0, 0.002), 0.01), "");
}

TEST(AgreementTest, InfinitiesAndNansAgreeWithThemselves) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double tolerance : {0.0, 0.1}) {
    EXPECT_EQ(Check(inf, inf, tolerance), "");
    EXPECT_EQ(Check(nan, nan, tolerance), "");
    EXPECT_NE(Check(inf, -inf, tolerance), "");
    EXPECT_NE(Check(1, inf, tolerance), "");
    EXPECT_NE(Check(inf, 1, tolerance), "");
    EXPECT_NE(Check(nan, 1, tolerance), "");
  }
}

TEST(AgreementTest, UniformTensorsAreReproducible) {
  Tensor a(Type::kF64, {100}), b(Type::kF64, {100});
  FillUniform(a, 1);
  FillUniform(b, 1);
  EXPECT_EQ(a.bytes, b.bytes);
  FillUniform(b, 2);
  EXPECT_NE(a.bytes, b.bytes);
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_LE(-1, a.Value(i));
    EXPECT_LT(a.Value(i), 1);
  }
}

}  // namespace
}  // namespace polynao::ir
