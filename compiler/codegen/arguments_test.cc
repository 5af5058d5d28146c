#include "compiler/codegen/arguments.h"

#include <bit>
#include <string>

#include "compiler/ir/argument.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

using ir::Argument;
using ir::Tensor;
using ir::Type;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ArgumentsTest : public ::testing::Test {
 protected:
  ArgumentsTest() {
    auto f = ir::ParseFunction("func f(A: f32[n, 3] in, n: i8, x: f32, B: i32[] out) { B[] = 1 }");
    EXPECT_TRUE(f.ok()) << f.status();
    f_ = *std::move(f);
  }
  std::string Error(absl::Span<const Argument> arguments) {
    auto raw = LayOutArguments(f_, arguments);
    EXPECT_FALSE(raw.ok());
    return std::string(raw.status().message());
  }
  ir::Function f_;
  Tensor a_{Type::kF32, {2, 3}};
  Tensor b_{Type::kI32, {}};
};

TEST_F(ArgumentsTest, LaysOut) {
  // 258 wraps to 2 in i8; 0.1 is rounded to f32.
  auto raw = LayOutArguments(
      f_, {Argument::Of(&a_), Argument::Int(258), Argument::Float(0.1), Argument::Of(&b_)});
  ASSERT_TRUE(raw.ok()) << raw.status();
  EXPECT_THAT(raw->buffers, ElementsAre(a_.bytes.data(), b_.bytes.data()));
  EXPECT_THAT(raw->scalars, ElementsAre(2, std::bit_cast<int64_t>(static_cast<double>(0.1f))));
}

TEST_F(ArgumentsTest, NegativeExtentsAreEmpty) {
  Tensor empty(Type::kF32, {0, 3});
  auto raw = LayOutArguments(
      f_, {Argument::Of(&empty), Argument::Int(-2), Argument::Float(0), Argument::Of(&b_)});
  EXPECT_TRUE(raw.ok()) << raw.status();
}

TEST_F(ArgumentsTest, Errors) {
  const Argument a = Argument::Of(&a_);
  const Argument b = Argument::Of(&b_);
  const Argument two = Argument::Int(2);
  const Argument x = Argument::Float(1);
  EXPECT_THAT(Error({a, two, x}), HasSubstr("f: expected 4 arguments, got 3"));
  EXPECT_THAT(Error({a, Argument::Int(3), x, b}),
              HasSubstr("'A': expected a tensor of type f32 and shape [3, 3], got f32 [2, 3]"));
  EXPECT_THAT(Error({a, b, x, b}), HasSubstr("'n': expected a scalar of type i8, got a tensor"));
  EXPECT_THAT(Error({a, two, x, x}), HasSubstr("'B': expected a tensor of type i32 and shape []"));
  Tensor wrong(Type::kI64, {});
  EXPECT_THAT(Error({a, two, x, Argument::Of(&wrong)}), HasSubstr("got i64 []"));
}

TEST_F(ArgumentsTest, ScalarsKeepWhatIsAsserted) {
  auto f =
      ir::ParseFunction("@assert(n % 4 == 0, 0 < n) @assert(x > 0.5) func f(n: i8, x: f32) { }");
  ASSERT_TRUE(f.ok()) << f.status();
  f_ = *std::move(f);
  EXPECT_TRUE(LayOutArguments(f_, {Argument::Int(8), Argument::Float(1)}).ok());
  EXPECT_EQ(Error({Argument::Int(6), Argument::Float(1)}),
            "function 'f': '@assert(n % 4 == 0)' does not hold: n = 6");
  EXPECT_EQ(Error({Argument::Int(128), Argument::Float(1)}),
            "function 'f': '@assert(0 < n)' does not hold: n = -128");
  EXPECT_EQ(Error({Argument::Int(4), Argument::Float(0.5)}),
            "function 'f': '@assert(0.5 < x)' does not hold: x = 0.5");
}

TEST_F(ArgumentsTest, OneTensorForTwoParameters) {
  auto f = ir::ParseFunction("func f(A: f32[2, 3], B: f32[2, 3]) { }");
  ASSERT_TRUE(f.ok()) << f.status();
  f_ = *std::move(f);
  EXPECT_THAT(Error({Argument::Of(&a_), Argument::Of(&a_)}), HasSubstr("must not alias"));
  f = ir::ParseFunction("@may_alias(\"A\", \"B\") func f(A: f32[2, 3], B: f32[2, 3]) { }");
  ASSERT_TRUE(f.ok()) << f.status();
  EXPECT_TRUE(LayOutArguments(*f, {Argument::Of(&a_), Argument::Of(&a_)}).ok());
}

}  // namespace
}  // namespace polynao::codegen
