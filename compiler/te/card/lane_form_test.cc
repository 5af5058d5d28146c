// Integer operations in operations of i32 and f32: equal for all values.
#include "compiler/te/card/lane_form.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "gtest/gtest.h"

namespace polynao::te {
namespace {

using ir::Expr;

// The first operation by a number in a function.
Expr OperationIn(const ir::Function& function) {
  Expr found;
  ir::ForEachStmt(function.body, [&](ir::Stmt s) {
    if (s.Is(ir::StmtKind::kStore)) found = s.value();
    return true;
  });
  return found;
}

class FormTaker : public ir::Mutator {
 public:
  using ir::Mutator::Mutate;
  ir::Stmt Mutate(ir::Stmt s) override {
    s = MutateChildren(s);
    if (!s.Is(ir::StmtKind::kStore)) return s;
    return s.context().Store(s.buffer(), s.indices(), IntegerForm(s.value()));
  }
};

std::vector<double> Values(ir::Function function, const ir::Tensor& in) {
  ir::Tensor x = in, y(in.type, in.shape);
  EXPECT_TRUE(ir::Interpret(function, {ir::Argument::Of(&x), ir::Argument::Of(&y)}).ok());
  std::vector<double> values;
  for (int64_t i = 0; i < y.element_count(); ++i) values.push_back(y.Value(i));
  return values;
}

void MustBeEqual(const std::string& type, const std::string& operation,
                 const std::vector<int64_t>& numbers) {
  const std::string n = StrCat(numbers.size());
  const auto module =
      ir::ParseModule(StrCat("func f(X: ", type, "[", n, "] in, Y: ", type, "[", n,
                             "] out) {\n  for (i, 0, ", n, ") { Y[i] = X[i]", operation, " }\n}\n"),
                      "f.nir");
  ASSERT_TRUE(module.ok()) << module.status();
  const ir::Function& function = module->functions[0];
  ASSERT_TRUE(IntegerForm(OperationIn(function))) << type << operation;
  ir::Function other = function;
  other.body = FormTaker().Mutate(function.body);
  ir::Tensor in(function.params[0].buffer->type, {static_cast<int64_t>(numbers.size())});
  for (size_t i = 0; i < numbers.size(); ++i) {
    in.SetValue(static_cast<int64_t>(i), static_cast<double>(numbers[i]));
  }
  const std::vector<double> expected = Values(function, in), values = Values(other, in);
  for (size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(values[i], expected[i]) << numbers[i] << operation << " of " << type;
  }
}

// Around all powers of two and multiples of the number, and at the ends of the range.
std::vector<int64_t> Edges(int bits, int64_t number) {
  const int64_t end = int64_t{1} << (bits - 1);
  std::vector<int64_t> edges;
  const auto around = [&](int64_t at) {
    for (int64_t i = at - 2; i <= at + 2; ++i) {
      if (-end <= i && i < end) edges.push_back(i);
    }
  };
  for (int64_t power = 1; power <= end; power *= 2) around(power), around(-power);
  for (int64_t k = 1; k * number < end; k = k * 3 + 1) around(k * number), around(-k * number);
  around(0), around(end / number * number), around(-end / number * number);
  for (int64_t i = 0, x = 12345; i < 2000; ++i) {
    x = (x * 1103515245 + 12345) & 0x7fffffff;
    around(x % end), around(-(x % end));
  }
  return edges;
}

TEST(LaneFormTest, IntegerFormsAreEqualForAllValues) {
  for (const auto& [type, bits] :
       std::vector<std::pair<std::string, int>>{{"i32", 32}, {"i16", 16}, {"i8", 8}}) {
    for (const int64_t number : {1, 2, 3, 7, 10, 64, 100, 127}) {
      MustBeEqual(type, StrCat(" / ", number), Edges(bits, number));
      MustBeEqual(type, StrCat(" % ", number), Edges(bits, number));
    }
    for (const int64_t bit : {0, 1, 3, 7}) {
      MustBeEqual(type, StrCat(" >> ", bit), Edges(bits, 3));
      MustBeEqual(type, StrCat(" << ", bit), Edges(bits, 3));
    }
    MustBeEqual(type, " & 63", Edges(bits, 64));
  }
  for (const int64_t number : {1000, 65535, 65536, 999983, 4194303, 4194304}) {
    MustBeEqual("i32", StrCat(" / ", number), Edges(32, number));
    MustBeEqual("i32", StrCat(" % ", number), Edges(32, number));
  }
  for (const int64_t bit : {16, 22, 23, 30, 31}) {
    MustBeEqual("i32", StrCat(" >> ", bit), Edges(32, 3));
    MustBeEqual("i32", StrCat(" << ", bit), Edges(32, 3));
  }
}

TEST(LaneFormTest, NoFormOfWideOrOtherOperations) {
  const auto operation = [](const std::string& type, const std::string& operation) {
    const auto module =
        ir::ParseModule(StrCat("func f(X: ", type, "[4] in, Y: ", type,
                               "[4] out) {\n  for (i, 0, 4) { Y[i] = X[i]", operation, " }\n}\n"),
                        "f.nir");
    return module.ok() ? IntegerForm(OperationIn(module->functions[0])) : Expr();
  };
  EXPECT_FALSE(operation("i32", " / 8388608"));  // f32 does not hold all remainders
  EXPECT_FALSE(operation("i32", " / -3"));
  EXPECT_FALSE(operation("i32", " & 5"));
  EXPECT_FALSE(operation("i64", " / 3"));
  EXPECT_FALSE(operation("f32", " / 3.0"));
  EXPECT_FALSE(operation("i32", " + 3"));
}

}  // namespace
}  // namespace polynao::te
