#include "compiler/ir/shapes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ShapesTest : public ::testing::Test {
 protected:
  int64_t Value(Expr e) {
    absl::StatusOr<int64_t> value = EvaluateInt(e, {{n_, 10}, {m_, -7}});
    EXPECT_TRUE(value.ok()) << value.status();
    return value.ok() ? *value : -999;
  }
  std::string Error(Expr e) {
    absl::StatusOr<int64_t> value = EvaluateInt(e, {{n_, 10}, {m_, -7}});
    EXPECT_FALSE(value.ok()) << *value;
    return std::string(value.status().message());
  }
  std::shared_ptr<Context> c_ = std::make_shared<Context>();
  Var n_ = c_->NewVar("n");
  Var m_ = c_->NewVar("m");
};

TEST_F(ShapesTest, Arithmetic) {
  EXPECT_EQ(Value(n_ + m_ * 2), -4);
  EXPECT_EQ(Value(n_ - 1), 9);
  EXPECT_EQ(Value(m_ / 2), -4);
  EXPECT_EQ(Value(m_ % 2), 1);
  EXPECT_EQ(Value(n_ / m_), -2);
  EXPECT_EQ(Value(n_ % m_), -4);
  EXPECT_EQ(Value(n_ / -1), -10);
  EXPECT_EQ(Value(n_ % -1), 0);
  EXPECT_EQ(Value(Min(n_, m_)), -7);
  EXPECT_EQ(Value(Max(n_, m_)), 10);
  EXPECT_EQ(Value(c_->Cast(Type::kI8, n_ * 20)), -56);
  EXPECT_EQ(Value(c_->Select(n_ < 3, n_ / 0, m_)), -7);
  EXPECT_EQ(Value(c_->Select(Or(Eq(n_, n_), n_ / 0 < 1), n_, m_)), 10);
  EXPECT_EQ(Value(c_->Select(And(Ne(n_, n_), n_ / 0 < 1), n_, m_)), -7);
  EXPECT_EQ(Value(c_->Select(Not(n_ <= 10), n_, m_)), -7);
}

TEST_F(ShapesTest, Errors) {
  EXPECT_THAT(Error(c_->NewVar("k") + 1), HasSubstr("'k' is not known"));
  EXPECT_THAT(Error(n_ / 0), HasSubstr("division of 10 by zero"));
  EXPECT_THAT(Error(n_ * 1000000000), HasSubstr("overflows i32"));
  EXPECT_THAT(Error(c_->Cast(Type::kI32, c_->Float(Type::kF32, 1))), HasSubstr("found Cast"));
  EXPECT_THAT(Error(c_->I32(INT32_MIN) / -1), HasSubstr("overflows i32"));
}

TEST_F(ShapesTest, OfParameters) {
  Function f;
  f.name = "f";
  f.context = c_;
  f.body = c_->Nop();
  f.params.resize(4);
  f.params[0].buffer = c_->NewBuffer("A", Type::kF32, {n_, c_->I32(3)});
  f.params[1].var = n_;
  f.params[2].buffer = c_->NewBuffer("B", Type::kF32, {});
  f.params[3].buffer = c_->NewBuffer("C", Type::kF32, {n_ / 4});
  auto shapes = ParameterShapes(f, {{n_, 9}});
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_THAT(*shapes, ElementsAre(ElementsAre(9, 3), ElementsAre(), ElementsAre(2)));
  shapes = ParameterShapes(f, {{n_, -1}});
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_THAT((*shapes)[0], ElementsAre(0, 3));
  EXPECT_THAT(std::string(ParameterShapes(f, {}).status().message()),
              HasSubstr("f: extent 0 of 'A': the value of 'n'"));
}

// Elements are neighbours along the last dimension that has more than one.
TEST_F(ShapesTest, RowDimensionOfBuffers) {
  const auto row = [&](std::vector<Expr> extents) {
    return RowDimension(c_->NewBuffer("A", Type::kF32, std::move(extents)));
  };
  EXPECT_EQ(row({c_->I32(2), c_->I32(3)}), 1);
  EXPECT_EQ(row({c_->I32(2), c_->I32(3), c_->I32(1)}), 1);
  EXPECT_EQ(row({n_, c_->I32(1), c_->I32(1)}), 0);
  EXPECT_EQ(row({c_->I32(1), n_}), 1);
  EXPECT_EQ(row({c_->I32(2), c_->I32(0)}), 1);
  EXPECT_EQ(row({c_->I32(1)}), std::nullopt);
  EXPECT_EQ(row({}), std::nullopt);
}

}  // namespace
}  // namespace polynao::ir
