#include "compiler/ir/parts_layout.h"

#include <vector>

#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/ir/type.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

Tensor Numbers(Type type, std::vector<int64_t> shape) {
  Tensor t(type, std::move(shape));
  for (int64_t i = 0; i < t.element_count(); ++i) t.SetInt(i, i);
  return t;
}

std::vector<int64_t> ValuesOf(const Tensor& t) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < t.element_count(); ++i) values.push_back(t.Int(i));
  return values;
}

TEST(PartsLayoutTest, APartOfAllRowsIsOnePiece) {
  const Tensor parts = InParts(Numbers(Type::kI32, {2, 3, 2}), 2, 3);
  EXPECT_EQ(ValuesOf(parts), (std::vector<int64_t>{0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11}));
  EXPECT_EQ(parts.shape, (std::vector<int64_t>{2, 3, 2}));
  EXPECT_EQ(ValuesOf(InParts(Numbers(Type::kI8, {3, 2}), 3, 1)),
            (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
}

TEST(PartsLayoutTest, AttributesArePrintedAndReadBack) {
  const auto parsed = ParseFunction("func f(n: i64, A: i8[4] in, F: i8[2, 4] in) { }", "f.nir");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  Function function = *parsed;
  AddPartsLayout(function, {.parameter = "F", .rows = 2, .parts = 2});
  const auto again = ParseFunction(Print(function), "f.nir");
  ASSERT_TRUE(again.ok()) << again.status();
  const std::vector<PartsLayout> layouts = PartsLayoutsOf(*again);
  ASSERT_EQ(layouts.size(), 1);
  EXPECT_EQ(layouts[0].parameter, "F");
  EXPECT_EQ(layouts[0].rows, 2);
  EXPECT_EQ(layouts[0].parts, 2);
}

}  // namespace
}  // namespace polynao::ir
